package db

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"

	"symbolize/buildid"
	"symbolize/store"
)

// An archive is a tar file in one zstd frame, or in none, as before archives were compressed:
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
	archiveEnd  = "end" // tar itself cannot detect an archive that was cut between two files
)

// Bounds of an archive, so that a hostile one cannot fill the memory.
const (
	maxHeader = 64 << 20  // of a table
	MaxSource = 512 << 20 // of one source, in memory at once
)

// archiveWindow is the window of the compression, in bytes; readers refuse one over maxWindow.
const (
	archiveWindow = 4 << 20
	maxWindow     = 64 << 20
)

// Export writes the objects that want accepts, nil for all, with their sources and captured
// inputs. It returns how many there were.
func (d *database) Export(ctx context.Context, w io.Writer,
	want func(*store.Manifest) bool) (objects int, err error) {
	// One goroutine: the bytes depend on nothing else.
	z, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(archiveWindow))
	if err != nil {
		return 0, err
	}
	objects, err = d.exportPlain(ctx, z, want)
	return objects, errors.Join(err, z.Close())
}

// exportPlain is Export without the compression.
func (d *database) exportPlain(ctx context.Context, w io.Writer,
	want func(*store.Manifest) bool) (objects int, err error) {
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
		return 0, err
	}
	blobs := make(map[store.BlobID]bool)
	for m, err := range d.Objects() {
		if err := errors.Join(err, ctx.Err()); err != nil {
			return objects, err
		}
		if want != nil && !want(m) {
			continue
		}
		objects++
		if err := d.exportObject(m, blobs, put); err != nil {
			return objects, err
		}
	}
	if err := put(archiveEnd, fmt.Appendf(nil, "objects %d\n", objects)); err != nil {
		return objects, err
	}
	return objects, t.Close()
}

// exportObject writes one object, with the blobs that are not in the archive yet.
func (d *database) exportObject(m *store.Manifest, blobs map[store.BlobID]bool,
	put func(name string, b []byte) error) error {
	if err := d.exportBlobs(m, blobs, put); err != nil {
		return err
	}
	dir := objectName(m.ID)
	if err := put(dir+"/manifest", store.EncodeManifest(m)); err != nil {
		return err
	}
	for i := range m.Sources {
		if err := d.exportSource(m, i, dir, put); err != nil {
			return err
		}
	}
	return nil
}

// exportBlobs writes the blobs of an object that are not in the archive yet.
func (d *database) exportBlobs(m *store.Manifest, done map[store.BlobID]bool,
	put func(name string, b []byte) error) error {
	for i := range m.Variants {
		for _, id := range m.Variants[i].Blobs() {
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

func sourceName(dir string, info *store.SourceInfo) string {
	return fmt.Sprintf("%s/%s-%x", dir, info.Kind, info.Digest)
}

func (d *database) exportSource(m *store.Manifest, i int, dir string,
	put func(name string, b []byte) error) error {
	name := sourceName(dir, &m.Sources[i])
	return d.EachPart(m, i, func(part string, b []byte) error { return put(name+"/"+part, b) })
}
