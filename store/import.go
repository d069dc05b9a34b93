package store

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
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

// Import merges an archive into a Sink. Every table is checked as Verify checks it before it is
// merged. An archive that is cut off or malformed is an error; objects before it are merged all the
// same.
func Import(ctx context.Context, r io.Reader, to Sink) (*ImportResult, error) {
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

	to  Sink
	res *ImportResult

	all  int             // objects and aliases read
	m    *Manifest       // the object being read
	left map[Digest]bool // its inputs that are still to come

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
			im.finishObject()
			return fmt.Errorf("import: %w", err)
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
	im.finishObject()
	b, err := im.read(64)
	if err != nil {
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
	im.finishObject()
	b, err := im.read(2 * MaxManifest)
	if err != nil {
		return fmt.Errorf("%q: %w", name, err)
	}
	m, err := DecodeStored(name, b)
	if err != nil {
		return err
	}
	if ObjectName(m.ID) != dir {
		return fmt.Errorf("%q: manifest is that of %s", name, m.ID)
	}
	im.m, im.left = m, make(map[Digest]bool)
	m.Inputs(func(id Digest) { im.left[id] = true })
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
	facts := *m
	facts.Sources = nil
	return im.to.Merge(im.ctx, &Contribution{Manifest: facts})
}

// input merges the blobs or sources of an input. What is wrong with it is a problem.
func (im *importer) input(id Digest, b []byte) error {
	if im.m != nil {
		delete(im.left, id)
	}
	r := bytes.NewReader(b)
	in, err := ReadInput(id, r, r.Size())
	if got := Digest(sha256.Sum256(b)); err == nil && got != id {
		err = Damagef("input %s: its content is that of %s", id, got)
	}
	if err != nil {
		im.problem(err)
		return nil
	}
	c := &Contribution{}
	for i := range in.Sources { // in its order, so that it is made again as it is
		s := &in.Sources[i]
		if s.Kind == 0 {
			if err := im.blob(in, r, s); err != nil {
				return err
			}
			continue
		}
		if im.m == nil {
			return fmt.Errorf("input %s belongs to no object", id)
		}
		at := FindSource(im.m.Sources, &SourceInfo{Kind: s.Kind, Digest: s.Digest})
		if at < 0 { // superseded
			continue
		}
		src, err := in.NewSource(r, &im.m.Sources[at])
		if err != nil {
			im.problem(fmt.Errorf("%s of %s: %w", s.Kind, im.m.ID, err))
			continue
		}
		c.Sources = append(c.Sources, *src)
	}
	if len(c.Sources) == 0 {
		return nil
	}
	im.res.Sources += len(c.Sources)
	c.Manifest = *im.m
	c.Manifest.Sources = nil
	return im.to.Merge(im.ctx, c)
}

// blob imports a blob.
func (im *importer) blob(in *Input, r *bytes.Reader, s *InputSource) error {
	if s.RawSize > MaxBlob {
		im.problem(fmt.Errorf("input %s: %w", in.ID, ErrTooLarge))
		return nil
	}
	data, err := in.UnpackRaw(r, s)
	if err == nil && NewBlobID(data) != s.Digest {
		err = Damagef("input %s: it is not blob %x", in.ID, s.Digest)
	}
	if err != nil {
		im.problem(err)
		return nil
	}
	id, err := im.to.PutBlob(im.ctx, data)
	if err != nil {
		return err
	}
	im.blobs[id] = true
	return nil
}

// finishObject ends the current object.
func (im *importer) finishObject() {
	for range im.left {
		im.problem(fmt.Errorf("an input of %s is not in the archive", im.m.ID))
	}
	im.m, im.left = nil, nil
}

func (im *importer) problem(err error) {
	if len(im.res.Problems) == maxProblems {
		im.res.More++
		return
	}
	im.res.Problems = append(im.res.Problems, err)
}
