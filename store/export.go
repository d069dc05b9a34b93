package store

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"symbolize/buildid"
)

// An archive is a tar file in one zstd frame, with the files of a store:
//
//	symbolize-store          "schema N\n"
//	inputs/DIGEST            inputs of blobs, before the first object that names them
//	OBJECT/manifest          an object with where its sources are (AppendStored)
//	inputs/DIGEST            inputs of its sources
//	end                      "objects N\n"
//
// OBJECT is SPACE-HEX of the build ID. Objects are sorted by key, and so are the inputs of each,
// without times and owners: one store has one sequence of bytes. Path rows stay behind, for they are
// true on one machine only.

// Names in an archive.
const (
	headName     = "symbolize-store"
	inputPrefix  = "inputs/"
	manifestName = "/manifest"
	endName      = "end" // tar itself cannot detect an archive that was cut between two files
)

// archiveVersion is the version of an archive's form.
const archiveVersion = 3

// MaxInput bounds an input, in bytes: it is in memory at once.
const MaxInput = 1 << 30

// ExportSource provides the objects that Export writes: db.Reader.
type ExportSource interface {
	// Objects returns all manifests, sorted by ID, with the inputs of their sources.
	Objects() iter.Seq2[*Manifest, error]
	// Input returns the content of an input.
	Input(id Digest) ([]byte, error)
	// BlobInput returns the input that a blob is kept in.
	BlobInput(id BlobID) (Digest, error)
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
	x := exporter{from: from, blobs: make(map[Digest]bool)}
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
	blobs map[Digest]bool // inputs of blobs that are in the archive
}

// object writes one object, with the inputs of blobs that are not in the archive yet.
func (x *exporter) object(m *Manifest) error {
	if err := x.putBlobs(m); err != nil {
		return err
	}
	if err := x.put(ObjectName(m.ID)+manifestName, AppendStored(nil, m)); err != nil {
		return err
	}
	var inputs []Digest
	m.Inputs(func(id Digest) { inputs = append(inputs, id) })
	slices.SortFunc(inputs, func(a, b Digest) int { return bytes.Compare(a[:], b[:]) })
	for _, id := range slices.Compact(inputs) {
		if err := x.input(id); err != nil {
			return fmt.Errorf("tables of %s: %w", m.ID, err)
		}
	}
	return nil
}

func (x *exporter) input(id Digest) error {
	b, err := x.from.Input(id)
	if err != nil {
		return err
	}
	return x.put(inputPrefix+id.String(), b)
}

// putBlobs writes the inputs of an object's blobs that are not in the archive yet.
func (x *exporter) putBlobs(m *Manifest) error {
	for i := range m.Variants {
		for _, blob := range m.Variants[i].Blobs() {
			id, err := x.from.BlobInput(blob)
			if err == nil && !x.blobs[id] {
				x.blobs[id] = true
				err = x.input(id)
			}
			if err != nil {
				return fmt.Errorf("variants of %s: %w", m.ID, err)
			}
		}
	}
	return nil
}
