package store

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"

	"symbolize/buildid"
	"symbolize/store/symtab"
)

// An archive is a plain tar file:
//
//	symbolize-store                               "schema N\n"
//	blob-HASH                                     content of a blob, before the first
//	                                              object that names it
//	OBJECT/manifest                               as the store has it
//	OBJECT/KIND-DIGEST/table                      header of the table
//	OBJECT/KIND-DIGEST/chunk-N, strings-N         its blocks, from 0
//	OBJECT/KIND-DIGEST/raw                        captured input, plain
//	end                                           "objects N\n"
//
// OBJECT is SPACE-HEX of the build ID, DIGEST the whole digest in hexadecimal.
// Objects are sorted by key and everything in an object as above, without times
// and owners: one store gives one sequence of bytes. Path rows stay behind, for
// they are true on one machine only.
const (
	archiveHead = "symbolize-store"
	archiveBlob = "blob-"
	archiveEnd  = "end" // tar itself does not tell an archive that was cut between two files
)

// What an archive may hold, so that a hostile one cannot fill the memory.
const (
	maxHeader  = 64 << 20  // of a table
	maxArchive = 512 << 20 // of one source, in memory at once
)

// Export writes all objects with their sources and captured inputs.
func (d *database) Export(ctx context.Context, w io.Writer) error {
	t := tar.NewWriter(w)
	put := func(name string, b []byte) error {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(b)), Mode: 0o644}
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		_, err := t.Write(b)
		return err
	}
	if err := put(archiveHead, fmt.Appendf(nil, "schema %d\n", SchemaVersion)); err != nil {
		return err
	}
	objects, blobs := 0, make(map[BlobID]bool)
	for m, err := range d.Objects() {
		if err := errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		objects++
		if err := d.exportBlobs(m, blobs, put); err != nil {
			return err
		}
		dir := objectName(m.ID)
		if err := put(dir+"/manifest", encodeManifest(m)); err != nil {
			return err
		}
		for i := range m.Sources {
			if err := d.exportSource(m, i, dir, put); err != nil {
				return err
			}
		}
	}
	if err := put(archiveEnd, fmt.Appendf(nil, "objects %d\n", objects)); err != nil {
		return err
	}
	return t.Close()
}

// exportBlobs writes the blobs of an object that are not in the archive yet.
func (d *database) exportBlobs(m *Manifest, done map[BlobID]bool,
	put func(name string, b []byte) error) error {
	for i := range m.Variants {
		for _, id := range m.Variants[i].blobs() {
			if done[id] {
				continue
			}
			done[id] = true
			data, err := d.Blob(id)
			if err != nil {
				return fmt.Errorf("variants of %s: %w", m.ID, err)
			}
			if err := put(archiveBlob+id.String(), data); err != nil {
				return err
			}
		}
	}
	return nil
}

func objectName(id buildid.ID) string { return id.Space().String() + "-" + id.Hex() }

func sourceName(dir string, info *SourceInfo) string {
	return fmt.Sprintf("%s/%s-%x", dir, info.Kind, info.Digest)
}

func (d *database) exportSource(m *Manifest, i int, dir string,
	put func(name string, b []byte) error) error {
	info := &m.Sources[i]
	name := sourceName(dir, info)
	prefix := sourcePrefix(prefixTable, m.ID, info)
	copyPart := func(to string, part byte, i uint32) error {
		b, err := d.get(tableKey(prefix, part, i))
		if err != nil {
			return fmt.Errorf("%s of %s: %w", info.Kind, m.ID, err)
		}
		return put(name+"/"+to, b)
	}
	if err := copyPart("table", partHeader, 0); err != nil {
		return err
	}
	for i := range info.Chunks {
		if err := copyPart("chunk-"+strconv.Itoa(int(i)), partChunk, i); err != nil {
			return err
		}
	}
	for i := range info.Strings {
		if err := copyPart("strings-"+strconv.Itoa(int(i)), partStrings, i); err != nil {
			return err
		}
	}
	raw, err := d.Raw(m, i)
	if err != nil || raw == nil {
		return err
	}
	return put(name+"/raw", raw)
}

// ImportResult counts what Import read.
type ImportResult struct {
	Objects, Sources int
	Problems         []error // sources and variants that were refused; the others are merged
	More             int     // problems beyond the first maxProblems
}

// Import merges an archive into a Sink. Every table is checked as Verify checks
// it before it is merged. An archive that is cut off or malformed is an error;
// what was read before it is merged all the same.
func Import(ctx context.Context, r io.Reader, to Sink) (*ImportResult, error) {
	im := &importer{ctx: ctx, t: tar.NewReader(r), to: to, res: new(ImportResult),
		blobs: make(map[BlobID]bool)}
	return im.res, im.run()
}

// importer is the state of one Import.
type importer struct {
	ctx context.Context
	t   *tar.Reader
	to  Sink
	res *ImportResult

	m    *Manifest     // the object being read
	dir  string        // its name in the archive
	left []*SourceInfo // its sources that are still to come, by name
	src  *NewSource    // the source being read, nil before the first
	name string        // its name in the archive
	size int           // of it in memory

	blobs map[BlobID]bool // that were read
}

func (im *importer) run() error {
	h, err := im.t.Next()
	if err != nil || h.Name != archiveHead {
		return fmt.Errorf("import: no archive of a store")
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

// read returns the present entry whole. Memory grows with what is there, not with
// what the entry's header says.
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
	data, err := im.read(maxBlob)
	if err != nil {
		return fmt.Errorf("%q: %w", name, err)
	}
	if id := NewBlobID(data); archiveBlob+id.String() != name {
		im.problem(damaged("%q: its content is that of %s", name, id))
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
	b, err := im.read(maxManifest)
	if err != nil {
		return fmt.Errorf("%q: %w", name, err)
	}
	m, err := decodeManifest(name, b)
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
	m.Variants = slices.DeleteFunc(m.Variants, func(v Variant) bool {
		err := checkBlobs([]Variant{v}, func(id BlobID) (bool, error) { return im.blobs[id], nil })
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
		im.src = &NewSource{Info: *info, Table: &symtab.Encoded{Header: b, Digest: info.Digest}}
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
		return fmt.Errorf("%q: source of over %d bytes: %w", name, maxArchive, ErrTooLarge)
	}
	if list == nil {
		im.src.Raw = b
		return nil
	}
	*list = append(*list, b)
	return nil
}

// finishObject merges what is left of the present object.
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
	return im.to.Merge(im.ctx, &Contribution{Manifest: facts, Sources: []NewSource{*src}})
}

func (im *importer) problem(err error) {
	if len(im.res.Problems) == maxProblems {
		im.res.More++
		return
	}
	im.res.Problems = append(im.res.Problems, err)
}

// checkImported reads a table through and fills in what describe takes from it.
func checkImported(src *NewSource) error {
	e := src.Table
	t, err := symtab.Open(e.Header, e)
	if err != nil {
		return err
	}
	if t.NumBlocks(symtab.Chunk) != len(e.Chunks) || t.NumBlocks(symtab.Strings) != len(e.Strings) {
		return damaged("%d chunks and %d string blocks, header says otherwise", len(e.Chunks),
			len(e.Strings))
	}
	sum, err := t.Digest()
	if err != nil {
		return err
	}
	if sum != e.Digest {
		return damaged("table has digest %x", sum)
	}
	for p, err := range t.Pieces() {
		if err != nil {
			return err
		}
		e.Named += uint64(p.Range.End - p.Range.Start)
	}
	e.Funcs, e.Size = t.NumFuncs(), int64(len(e.Header))
	for _, list := range [][][]byte{e.Chunks, e.Strings} {
		for _, b := range list {
			e.Size += int64(len(b))
		}
	}
	return nil
}
