package db

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
	"strconv"
	"strings"

	"github.com/klauspost/compress/zstd"

	"symbolize/ingest/magic"
	"symbolize/store"
	"symbolize/store/symtab"
	"symbolize/store/unwindtab"
)

// ImportResult counts the imported data.
type ImportResult struct {
	Objects, Sources int
	Problems         []error // sources and variants that were refused; the others are merged
	More             int     // problems beyond the first maxProblems
}

// Import merges an archive into a Sink. Every table is checked as Verify checks
// it before it is merged. An archive that is cut off or malformed is an error;
// objects before it are merged all the same.
func Import(ctx context.Context, r io.Reader, to store.Sink) (*ImportResult, error) {
	in, packed, err := unpacked(r)
	if err != nil {
		return new(ImportResult), fmt.Errorf("import: %w", err)
	}
	defer in.Close()
	im := &importer{ctx: ctx, t: tar.NewReader(in), packed: packed, to: to, res: new(ImportResult),
		blobs: make(map[store.BlobID]bool)}
	return im.res, im.run()
}

// unpacked returns an archive as a tar file, and whether it was compressed.
func unpacked(r io.Reader) (in io.ReadCloser, packed bool, err error) {
	b := bufio.NewReader(r)
	if head, _ := b.Peek(magic.Bytes); magic.Of(head) != magic.Zstd {
		return io.NopCloser(b), false, nil
	}
	z, err := zstd.NewReader(b, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return nil, true, err
	}
	return z.IOReadCloser(), true, nil
}

// importer is the state of one Import.
type importer struct {
	ctx context.Context
	t   *tar.Reader

	packed bool // t is of a compressed file

	to  store.Sink
	res *ImportResult

	m    *store.Manifest     // the object being read
	dir  string              // its name in the archive
	left []*store.SourceInfo // its sources that are still to come, by name
	src  *store.NewSource    // the source being read, nil before the first
	name string              // its name in the archive
	size int                 // of it in memory

	blobs map[store.BlobID]bool // that were read
}

func (im *importer) run() error {
	h, err := im.t.Next()
	switch {
	case im.packed && errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("import: archive is cut off")
	case im.packed && err != nil:
		return fmt.Errorf("import: %w", err)
	case err != nil || h.Name != archiveHead:
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
		if err == nil && h.Name == archiveEnd {
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
	if schema > SchemaVersion {
		return versionError("import", schema)
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
	if string(b) != fmt.Sprintf("objects %d\n", im.res.Objects) {
		return fmt.Errorf("import: %d objects read, archive says %q", im.res.Objects, b)
	}
	return nil
}

// read returns the present entry whole. Memory grows with the data, not with
// the size in the entry's header.
func (im *importer) read(limit int64) ([]byte, error) {
	var b bytes.Buffer
	n, err := io.Copy(&b, io.LimitReader(im.t, limit+1))
	if err != nil {
		return nil, err
	}
	if n > limit {
		return nil, fmt.Errorf("entry of over %d bytes: %w", limit, store.ErrTooLarge)
	}
	return b.Bytes(), nil
}

// entry takes one file of the archive.
func (im *importer) entry(h *tar.Header) error {
	dir, file := path.Split(h.Name)
	dir = strings.TrimSuffix(dir, "/")
	if h.Typeflag != tar.TypeReg {
		return fmt.Errorf("%q: no plain file", h.Name)
	}
	if dir == "" && strings.HasPrefix(file, archiveBlob) {
		return im.blob(h.Name)
	}
	if file == "manifest" {
		return im.object(dir, h.Name)
	}
	if im.m == nil || path.Dir(dir) != im.dir {
		return fmt.Errorf("%q: belongs to no object", h.Name)
	}
	if file == "table" {
		return im.source(dir, h.Name)
	}
	if im.src == nil || dir != im.name {
		return fmt.Errorf("%q: belongs to no table", h.Name)
	}
	return im.block(file, h.Name)
}

// blob takes a blob.
func (im *importer) blob(name string) error {
	if err := im.finishObject(); err != nil {
		return err
	}
	data, err := im.read(store.MaxBlob)
	if err != nil {
		return fmt.Errorf("%q: %w", name, err)
	}
	if id := store.NewBlobID(data); archiveBlob+id.String() != name {
		im.problem(store.Damagef("%q: its content is that of %s", name, id))
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
	b, err := im.read(store.MaxManifest)
	if err != nil {
		return fmt.Errorf("%q: %w", name, err)
	}
	m, err := store.DecodeManifest(name, b)
	if err != nil {
		return err
	}
	if objectName(m.ID) != dir {
		return fmt.Errorf("%q: manifest is that of %s", name, m.ID)
	}
	im.m, im.dir, im.left = m, dir, nil
	for i := range m.Sources {
		im.left = append(im.left, &m.Sources[i])
	}
	im.res.Objects++
	m.Variants = slices.DeleteFunc(m.Variants, func(v store.Variant) bool {
		err := store.CheckBlobs([]store.Variant{v}, func(id store.BlobID) (bool, error) { return im.blobs[id], nil })
		if err != nil {
			im.problem(fmt.Errorf("variant of %s: %w", m.ID, err))
		}
		return err != nil
	})
	facts := *m
	facts.Sources = nil
	return im.to.Merge(im.ctx, &store.Contribution{Manifest: facts})
}

// source begins a source of the object.
func (im *importer) source(dir, name string) error {
	if err := im.finishSource(); err != nil {
		return err
	}
	b, err := im.read(maxHeader)
	if err != nil {
		return fmt.Errorf("%q: %w", name, err)
	}
	for i, info := range im.left {
		if sourceName(im.dir, info) != dir {
			continue
		}
		im.left = append(im.left[:i:i], im.left[i+1:]...)
		im.name, im.size = dir, len(b)
		im.src = &store.NewSource{Info: *info, Table: &symtab.Encoded{Header: b, Digest: info.Digest}}
		return nil
	}
	return fmt.Errorf("%q: the manifest lists no such table", name)
}

// block takes a block or the captured input of the present source.
func (im *importer) block(file, name string) error {
	t := im.src.Table
	var list *[][]byte
	limit := int64(symtab.MaxBlock)
	switch file {
	case "raw":
		limit = maxArchive
	case "chunk-" + strconv.Itoa(len(t.Chunks)):
		list = &t.Chunks
	case "strings-" + strconv.Itoa(len(t.Strings)):
		list = &t.Strings
	default:
		return fmt.Errorf("%q: not what comes next", name)
	}
	b, err := im.read(limit)
	if err != nil {
		return fmt.Errorf("%q: %w", name, err)
	}
	if im.size += len(b); im.size > maxArchive {
		return fmt.Errorf("%q: source of over %d bytes: %w", name, maxArchive, store.ErrTooLarge)
	}
	if list == nil {
		im.src.Raw = b
		return nil
	}
	*list = append(*list, b)
	return nil
}

// finishObject merges the rest of the present object.
func (im *importer) finishObject() error {
	err := im.finishSource()
	for _, info := range im.left {
		im.problem(fmt.Errorf("%s of %s is not in the archive", info.Kind, im.m.ID))
	}
	im.m, im.left = nil, nil
	return err
}

// finishSource checks and merges the present source.
func (im *importer) finishSource() error {
	src := im.src
	im.src = nil
	if src == nil {
		return nil
	}
	if err := checkImported(src); err != nil {
		im.problem(fmt.Errorf("%s of %s: %w", src.Info.Kind, im.m.ID, err))
		return nil
	}
	im.res.Sources++
	facts := *im.m
	facts.Sources = nil
	return im.to.Merge(im.ctx, &store.Contribution{Manifest: facts, Sources: []store.NewSource{*src}})
}

func (im *importer) problem(err error) {
	if len(im.res.Problems) == maxProblems {
		im.res.More++
		return
	}
	im.res.Problems = append(im.res.Problems, err)
}

// checkImported reads a table through and fills in the fields that describe takes from it.
func checkImported(src *store.NewSource) error {
	e := src.Table
	if src.Info.Kind == store.Unwind {
		return checkUnwind(e)
	}
	t, err := symtab.Open(e.Header, e)
	if err != nil {
		return err
	}
	if err := checkBlocks(t, e); err != nil {
		return err
	}
	for p, err := range t.Pieces() {
		if err != nil {
			return err
		}
		if p.Func.Flags&symtab.Nameless == 0 {
			e.Named += uint64(p.Range.End - p.Range.Start)
		}
	}
	e.Funcs = t.NumFuncs()
	return nil
}

// checkUnwind is checkImported for the table of an Unwind source.
func checkUnwind(e *symtab.Encoded) error {
	t, err := unwindtab.Open(e.Header, e)
	if err != nil {
		return err
	}
	if err := checkBlocks(t, e); err != nil {
		return err
	}
	e.Funcs, _, e.Named = t.Counts()
	return nil
}

// blockTable is a table of either format.
type blockTable interface {
	NumBlocks(symtab.BlockKind) int
	Digest() ([32]byte, error)
}

// checkBlocks checks that a table has the blocks of its header and its digest, and fills
// in its size.
func checkBlocks(t blockTable, e *symtab.Encoded) error {
	if t.NumBlocks(symtab.Chunk) != len(e.Chunks) || t.NumBlocks(symtab.Strings) != len(e.Strings) {
		return store.Damagef("%d chunks and %d string blocks, header says otherwise", len(e.Chunks),
			len(e.Strings))
	}
	sum, err := t.Digest()
	if err != nil {
		return err
	}
	if sum != e.Digest {
		return store.Damagef("table has digest %x", sum)
	}
	sumSize(e)
	return nil
}

// sumSize fills in the bytes of a table.
func sumSize(e *symtab.Encoded) {
	e.Size = int64(len(e.Header))
	for _, list := range [][][]byte{e.Chunks, e.Strings} {
		for _, b := range list {
			e.Size += int64(len(b))
		}
	}
}
