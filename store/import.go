package store

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"symbolize/ingest/files"
)

// maxProblems bounds the problems that a result lists.
const maxProblems = 1000

// ImportResult counts the imported data.
type ImportResult struct {
	Objects, Sources int
	Problems         []error // sources and variants that were refused; the others are merged
	More             int     // problems beyond the first maxProblems
}

// Import merges an archive into a sink, inputs as they are. Every table is checked as Verify checks it
// before it is merged. An archive that is cut off or malformed is an error; objects before it are merged all the
// same.
func Import(ctx context.Context, r io.Reader, to InputSink) (*ImportResult, error) {
	in, packed := unpacked(r)
	defer in.Close()
	im := &importer{ctx: ctx, t: tar.NewReader(in), packed: packed, to: to, res: new(ImportResult),
		blobs: make(map[BlobID]bool)}
	return im.res, im.run()
}

// unpacked returns the tar file of an archive, and whether it was compressed.
func unpacked(r io.Reader) (in io.ReadCloser, packed bool) {
	b := bufio.NewReader(r)
	if head, _ := b.Peek(files.MagicBytes); files.PackingOf(head) != files.Zstd {
		return io.NopCloser(b), false
	}
	return files.ZstdReader(b, maxArchiveWindow), true
}

// importer is the state of one Import.
type importer struct {
	ctx context.Context
	t   *tar.Reader

	packed bool // t reads a compressed file

	to  InputSink
	res *ImportResult

	all  int             // objects and aliases read
	m    *Manifest       // the object being read
	came map[Digest]bool // its inputs: true for whole ones, false until they come

	blobs map[BlobID]bool // that were read
}

func (im *importer) run() error {
	h, err := im.t.Next()
	switch {
	case im.packed && errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("import: archive is cut off")
	case im.packed && err != nil:
		return fmt.Errorf("import: %w", err)
	case err != nil || h.Name != headName:
		return errors.New("import: no archive of a store")
	}
	if err := im.head(); err != nil {
		return err
	}
	for {
		h, err := im.t.Next()
		if err == io.EOF {
			err = errors.New("archive is cut off")
		}
		if err == nil && h.Name == endName {
			return im.end()
		}
		if err == nil {
			err = im.ctx.Err()
		}
		if err == nil {
			err = im.entry(h)
		}
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = errors.New("archive is cut off")
		}
		if err != nil {
			return fmt.Errorf("import: %w", errors.Join(err, im.finishObject()))
		}
	}
}

func (im *importer) head() error {
	b, err := im.read(64)
	if err != nil {
		return fmt.Errorf("import: %w", err)
	}
	var schema int
	if _, err := fmt.Sscanf(string(b), "schema %d\n", &schema); err != nil {
		return fmt.Errorf("import: no archive of a store")
	}
	if schema < archiveVersion {
		return fmt.Errorf("import: archive of schema %d: export it again with this version", schema)
	}
	return CheckSchema("import", schema)
}

// end checks the last entry of the archive.
func (im *importer) end() error {
	err := im.finishObject()
	b, readErr := im.read(64)
	if err = errors.Join(err, readErr); err != nil {
		return fmt.Errorf("import: %w", err)
	}
	if string(b) != fmt.Sprintf("objects %d\n", im.all) {
		return fmt.Errorf("import: %d objects read, archive says %q", im.all, b)
	}
	return nil
}

// read returns the whole content of the current entry. Memory grows with the data, not with the size in the
// entry's header.
func (im *importer) read(limit int64) ([]byte, error) {
	var b bytes.Buffer
	n, err := io.Copy(&b, io.LimitReader(im.t, limit+1))
	if err != nil {
		return nil, err
	}
	if n > limit {
		return nil, fmt.Errorf("entry of over %d bytes: %w", limit, ErrTooLarge)
	}
	return b.Bytes(), nil
}

// entry reads one file of the archive.
func (im *importer) entry(h *tar.Header) error {
	if h.Typeflag != tar.TypeReg {
		return fmt.Errorf("%q: no plain file", h.Name)
	}
	if dir, ok := strings.CutSuffix(h.Name, manifestName); ok {
		return im.object(dir, h.Name)
	}
	name, _ := strings.CutPrefix(h.Name, inputPrefix)
	id, ok := ParseDigest(name)
	if !ok {
		return fmt.Errorf("%q: neither an object nor an input", h.Name)
	}
	b, err := im.read(MaxInput)
	if err != nil {
		return fmt.Errorf("%q: %w", h.Name, err)
	}
	return im.input(id, b)
}

// object begins an object.
func (im *importer) object(dir, name string) error {
	if err := im.finishObject(); err != nil {
		return err
	}
	b, err := im.read(2 * MaxManifest)
	if err != nil {
		return fmt.Errorf("%q: %w", name, err)
	}
	m, err := DecodeStored(name, b)
	if err != nil {
		return err
	}
	if ObjectName(m.ID) != dir {
		return fmt.Errorf("%q: manifest belongs to %s", name, m.ID)
	}
	im.m, im.came = m, make(map[Digest]bool)
	for i := range m.Sources {
		s := &m.Sources[i]
		if im.came[s.Input] = false; s.RawSize > 0 {
			im.came[s.RawInput] = false
		}
	}
	if im.all++; !m.IsAlias() {
		im.res.Objects++
	}
	m.Variants = slices.DeleteFunc(m.Variants, func(v Variant) bool {
		err := CheckBlobs([]Variant{v},
			func(id BlobID) (bool, error) { return im.blobs[id], nil })
		if err != nil {
			im.problem(fmt.Errorf("variant of %s: %w", m.ID, err))
		}
		return err != nil
	})
	return nil
}

// input keeps an input. What is wrong with it is a problem, and sources that are damaged are left out of
// the object.
func (im *importer) input(id Digest, b []byte) error {
	_, named := im.came[id]
	in, err := ParseInput(id, b)
	if err != nil {
		im.problem(err)
		delete(im.came, id)
		return nil
	}
	for i := range in.Sources {
		s := &in.Sources[i]
		if s.Kind != 0 && im.m == nil {
			return fmt.Errorf("input %s belongs to no object", id)
		}
		if s.Kind != 0 {
			continue
		}
		if _, err := in.Blob(nil, s); err != nil {
			im.problem(err)
			return nil
		}
		im.blobs[s.Digest], named = true, true
	}
	if !named { // superseded
		return nil
	}
	if im.m != nil {
		im.came[id] = true
		im.m.Sources = slices.DeleteFunc(im.m.Sources, func(s SourceInfo) bool {
			err := s.Check()
			if err == nil && s.Input == id {
				err = in.check(&s)
			}
			if err == nil && s.RawInput == id {
				err = in.checkRaw(&s)
			}
			if err != nil {
				im.problem(fmt.Errorf("%s of %s: %w", s.Kind, im.m.ID, err))
			}
			return err != nil
		})
	}
	return im.to.PutInput(im.ctx, id, b)
}

// finishObject merges the current object with the sources that are whole.
func (im *importer) finishObject() error {
	m := im.m
	if m == nil {
		return nil
	}
	im.m = nil
	for _, came := range im.came {
		if !came {
			im.problem(fmt.Errorf("an input of %s is not in the archive", m.ID))
		}
	}
	m.Sources = slices.DeleteFunc(m.Sources, func(s SourceInfo) bool {
		return !im.came[s.Input] || s.RawSize > 0 && !im.came[s.RawInput]
	})
	im.res.Sources += len(m.Sources)
	return im.to.MergeObject(im.ctx, m)
}

func (im *importer) problem(err error) {
	if len(im.res.Problems) == maxProblems {
		im.res.More++
		return
	}
	im.res.Problems = append(im.res.Problems, err)
}
