package store

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
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

	all  int           // objects and aliases read
	m    *Manifest     // the object being read
	dir  string        // its name in the archive
	left []*SourceInfo // its sources that are still to come, by name
	src  *Assembly     // the source being read, nil before the first
	name string        // its name in the archive

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
		if err != nil {
			return errors.Join(fmt.Errorf("import: %w", err), im.finishObject())
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
	if schema > archiveVersion {
		return fmt.Errorf("import: %w: schema %d, this program knows %d", ErrVersion, schema,
			archiveVersion)
	}
	return nil
}

// end checks the last entry of the archive.
func (im *importer) end() error {
	if err := im.finishObject(); err != nil {
		return fmt.Errorf("import: %w", err)
	}
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
	dir, file := path.Split(h.Name)
	dir = strings.TrimSuffix(dir, "/")
	if h.Typeflag != tar.TypeReg {
		return fmt.Errorf("%q: no plain file", h.Name)
	}
	if dir == "" && strings.HasPrefix(file, blobPrefix) {
		return im.blob(h.Name)
	}
	if file == "manifest" {
		return im.object(dir, h.Name)
	}
	if im.m == nil || path.Dir(dir) != im.dir {
		return fmt.Errorf("%q: belongs to no object", h.Name)
	}
	if file == PartTable {
		return im.source(dir, h.Name)
	}
	if im.src == nil || dir != im.name {
		return fmt.Errorf("%q: belongs to no table", h.Name)
	}
	return im.block(file, h.Name)
}

// blob imports a blob.
func (im *importer) blob(name string) error {
	if err := im.finishObject(); err != nil {
		return err
	}
	data, err := im.read(MaxBlob)
	if err != nil {
		return fmt.Errorf("%q: %w", name, err)
	}
	if id := NewBlobID(data); blobPrefix+id.String() != name {
		im.problem(Damagef("%q: its content is that of %s", name, id))
		return nil
	}
	id, err := im.to.PutBlob(im.ctx, data)
	if err != nil {
		return fmt.Errorf("%q: %w", name, err)
	}
	im.blobs[id] = true
	return nil
}

// object begins an object.
func (im *importer) object(dir, name string) error {
	if err := im.finishObject(); err != nil {
		return err
	}
	b, err := im.read(MaxManifest)
	if err != nil {
		return fmt.Errorf("%q: %w", name, err)
	}
	m, err := DecodeManifest(name, b)
	if err != nil {
		return err
	}
	if ObjectName(m.ID) != dir {
		return fmt.Errorf("%q: manifest is that of %s", name, m.ID)
	}
	im.m, im.dir, im.left = m, dir, nil
	for i := range m.Sources {
		im.left = append(im.left, &m.Sources[i])
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
	facts := *m
	facts.Sources = nil
	return im.to.Merge(im.ctx, &Contribution{Manifest: facts})
}

// source begins a source of the object.
func (im *importer) source(dir, name string) error {
	if err := im.finishSource(); err != nil {
		return err
	}
	b, err := im.read(maxTableHeader)
	if err != nil {
		return fmt.Errorf("%q: %w", name, err)
	}
	for i, info := range im.left {
		if sourceName(im.dir, info) != dir {
			continue
		}
		im.left = append(im.left[:i:i], im.left[i+1:]...)
		im.name, im.src = dir, NewAssembly(info)
		return im.src.Add(PartTable, b)
	}
	return fmt.Errorf("%q: the manifest lists no such table", name)
}

// block reads a block, or the captured input, of the current source.
func (im *importer) block(file, name string) error {
	limit, err := im.src.limitOf(file)
	if err != nil {
		return fmt.Errorf("%q: not what comes next", name)
	}
	b, err := im.read(limit)
	if err == nil {
		err = im.src.Add(file, b)
	}
	if err != nil {
		return fmt.Errorf("%q: %w", name, err)
	}
	return nil
}

// finishObject merges the rest of the current object.
func (im *importer) finishObject() error {
	err := im.finishSource()
	for _, info := range im.left {
		im.problem(fmt.Errorf("%s of %s is not in the archive", info.Kind, im.m.ID))
	}
	im.m, im.left = nil, nil
	return err
}

// finishSource checks and merges the current source.
func (im *importer) finishSource() error {
	a := im.src
	im.src = nil
	if a == nil {
		return nil
	}
	src, err := a.Source()
	if err != nil {
		im.problem(fmt.Errorf("%s of %s: %w", a.src.Info.Kind, im.m.ID, err))
		return nil
	}
	im.res.Sources++
	facts := *im.m
	facts.Sources = nil
	return im.to.Merge(im.ctx, &Contribution{Manifest: facts, Sources: []NewSource{*src}})
}

func (im *importer) problem(err error) {
	if len(im.res.Problems) == maxProblems {
		im.res.More++
		return
	}
	im.res.Problems = append(im.res.Problems, err)
}
