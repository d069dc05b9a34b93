package archive

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/klauspost/compress/zstd"

	"symbolize/store"
)

// Names in an archive.
const (
	headName   = "symbolize-store"
	blobPrefix = "blob-"
	endName    = "end" // tar itself cannot detect an archive that was cut between two files
)

// Bounds of an archive, so that a hostile one cannot fill the memory.
const (
	maxHeader = 64 << 20  // of a table
	MaxSource = 512 << 20 // of one source, in memory at once
)

// window is the window of the compression, in bytes; readers refuse one over maxWindow.
const (
	window    = 4 << 20
	maxWindow = 64 << 20
)

// Store is where Export takes objects from: db.Reader.
type Store interface {
	// Objects returns all manifests, sorted by ID.
	Objects() iter.Seq2[*store.Manifest, error]
	// EachPart calls put with the parts of m.Sources[i], one at a time, as an Assembly takes them.
	EachPart(m *store.Manifest, i int, put func(name string, b []byte) error) error
	// Blob returns the content of a blob.
	Blob(id store.BlobID) ([]byte, error)
}

// Export writes the objects of a store that want accepts, nil for all, with their sources and
// captured inputs. It returns how many there were.
func Export(ctx context.Context, w io.Writer, from Store,
	want func(*store.Manifest) bool) (objects int, err error) {
	// One goroutine: the bytes depend on nothing else.
	z, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(window))
	if err != nil {
		return 0, err
	}
	objects, err = exportPlain(ctx, z, from, want)
	return objects, errors.Join(err, z.Close())
}

// exportPlain is Export without the compression.
func exportPlain(ctx context.Context, w io.Writer, from Store,
	want func(*store.Manifest) bool) (objects int, err error) {
	t := tar.NewWriter(w)
	x := exporter{from: from, blobs: make(map[store.BlobID]bool)}
	x.put = func(name string, b []byte) error {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(b)), Mode: 0o644}
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		_, err := t.Write(b)
		return err
	}
	if err := x.put(headName, fmt.Appendf(nil, "schema %d\n", store.SchemaVersion)); err != nil {
		return 0, err
	}
	for m, err := range from.Objects() {
		if err := errors.Join(err, ctx.Err()); err != nil {
			return objects, err
		}
		if want != nil && !want(m) {
			continue
		}
		objects++
		if err := x.object(m); err != nil {
			return objects, err
		}
	}
	if err := x.put(endName, fmt.Appendf(nil, "objects %d\n", objects)); err != nil {
		return objects, err
	}
	return objects, t.Close()
}

// exporter is the state of one Export.
type exporter struct {
	from  Store
	put   func(name string, b []byte) error
	blobs map[store.BlobID]bool // that are in the archive
}

// object writes one object, with the blobs that are not in the archive yet.
func (x *exporter) object(m *store.Manifest) error {
	if err := x.putBlobs(m); err != nil {
		return err
	}
	dir := store.ObjectName(m.ID)
	if err := x.put(dir+"/manifest", store.EncodeManifest(m)); err != nil {
		return err
	}
	for i := range m.Sources {
		if err := x.source(m, i, dir); err != nil {
			return err
		}
	}
	return nil
}

// putBlobs writes the blobs of an object that are not in the archive yet.
func (x *exporter) putBlobs(m *store.Manifest) error {
	for i := range m.Variants {
		for _, id := range m.Variants[i].Blobs() {
			if x.blobs[id] {
				continue
			}
			x.blobs[id] = true
			data, err := x.from.Blob(id)
			if err != nil {
				return fmt.Errorf("variants of %s: %w", m.ID, err)
			}
			if err := x.put(blobPrefix+id.String(), data); err != nil {
				return err
			}
		}
	}
	return nil
}

func sourceName(dir string, info *store.SourceInfo) string {
	return fmt.Sprintf("%s/%s-%x", dir, info.Kind, info.Digest)
}

func (x *exporter) source(m *store.Manifest, i int, dir string) error {
	name := sourceName(dir, &m.Sources[i])
	return x.from.EachPart(m, i, func(part string, b []byte) error {
		return x.put(name+"/"+part,
			b)
	})
}
