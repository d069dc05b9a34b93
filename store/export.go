package store

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"symbolize/buildid"
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
// OBJECT is SPACE-HEX of the build ID, DIGEST the whole digest in hexadecimal. Objects are sorted
// by key and everything in an object as above, without times and owners: one store has one
// sequence of bytes. Path rows stay behind, for they are true on one machine only.

// Names in an archive.
const (
	headName   = "symbolize-store"
	blobPrefix = "blob-"
	endName    = "end" // tar itself cannot detect an archive that was cut between two files
)

// archiveVersion is the version of an archive's form; older ones are read.
const archiveVersion = 2

// Bounds of an archive, so that a hostile one cannot fill the memory.
const (
	maxTableHeader = 64 << 20  // of a table
	MaxSource      = 512 << 20 // of one source, in memory at once
)

// ExportSource provides the objects that Export writes: db.Reader.
type ExportSource interface {
	// Objects returns all manifests, sorted by ID.
	Objects() iter.Seq2[*Manifest, error]
	// EachPart calls put with the parts of m.Sources[i], one at a time, in the order that Assembly
	// needs.
	EachPart(m *Manifest, i int, put func(name string, b []byte) error) error
	// Blob returns the content of a blob.
	Blob(id BlobID) ([]byte, error)
}

// Export writes the objects of a store that match accepts, nil for all, with their sources and
// captured inputs. It returns how many there were.
func Export(ctx context.Context, w io.Writer, from ExportSource,
	match func(*Manifest) bool) (objects int, err error) {
	z := archiveZstd.Writer(w)
	objects, err = exportPlain(ctx, z, from, match)
	return objects, errors.Join(err, z.Close())
}

// exportPlain is Export without the compression.
func exportPlain(ctx context.Context, w io.Writer, from ExportSource,
	match func(*Manifest) bool) (objects int, err error) {
	t := tar.NewWriter(w)
	x := exporter{from: from, blobs: make(map[BlobID]bool)}
	x.put = func(name string, b []byte) error {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(b)), Mode: 0o644}
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		_, err := t.Write(b)
		return err
	}
	if err := x.put(headName, fmt.Appendf(nil, "schema %d\n", archiveVersion)); err != nil {
		return 0, err
	}
	chosen, all := make(map[buildid.ID]bool), 0
	for m, err := range from.Objects() {
		if err := errors.Join(err, ctx.Err()); err != nil {
			return objects, err
		}
		if match != nil {
			if !match(m) && !m.LeadsTo(chosen) { // aliases come after all objects
				continue
			}
			chosen[m.ID] = true
		}
		all++
		if !m.IsAlias() {
			objects++
		}
		if err := x.object(m); err != nil {
			return objects, err
		}
	}
	if err := x.put(endName, fmt.Appendf(nil, "objects %d\n", all)); err != nil {
		return objects, err
	}
	return objects, t.Close()
}

// exporter is the state of one Export.
type exporter struct {
	from  ExportSource
	put   func(name string, b []byte) error
	blobs map[BlobID]bool // that are in the archive
}

// object writes one object, with the blobs that are not in the archive yet.
func (x *exporter) object(m *Manifest) error {
	if err := x.putBlobs(m); err != nil {
		return err
	}
	dir := ObjectName(m.ID)
	if err := x.put(dir+"/manifest", EncodeManifest(m)); err != nil {
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
func (x *exporter) putBlobs(m *Manifest) error {
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

func sourceName(dir string, info *SourceInfo) string {
	return fmt.Sprintf("%s/%s-%x", dir, info.Kind, info.Digest)
}

func (x *exporter) source(m *Manifest, i int, dir string) error {
	name := sourceName(dir, &m.Sources[i])
	return x.from.EachPart(m, i, func(part string, b []byte) error {
		return x.put(name+"/"+part, b)
	})
}
