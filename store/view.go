package store

import (
	"context"

	"symbolize/buildid"
	"symbolize/store/symtab"
	"symbolize/store/unwindtab"
)

// Sink receives the indexer's output: a store opened for writing, or an Overlay. Its methods may be
// called from several goroutines.
type Sink interface {
	// Merge adds a file's facts to its object. Contributions may come in any order and more than
	// once: the result is the same bytes. The sink keeps no reference to c once it has returned,
	// but an Overlay keeps the tables.
	Merge(ctx context.Context, c *Contribution) error
	// PutBlob keeps a captured input under the hash of its content. The next GC drops it unless
	// a variant names it. The sink keeps no reference to data.
	PutBlob(ctx context.Context, data []byte) (BlobID, error)
	// PutDir replaces the path rows of a directory, named by its clean absolute path. No rows
	// remove the directory.
	PutDir(dir string, rows DirRows) error
}

// View serves resolve: a published generation, an Overlay, or several layered. Its methods may be
// called from several goroutines; a table may not.
type View interface {
	// Find returns the manifests of the objects that id matches: none, one, or several if id is
	// inexact, sorted by ID. They belong to the caller.
	Find(id buildid.ID) ([]*Manifest, error)
	// Open returns the table of m.Sources[i], which is not of kind Unwind. It is valid until the
	// view is closed.
	Open(m *Manifest, i int) (*symtab.Table, error)
	// OpenUnwind is Open for a source of kind Unwind.
	OpenUnwind(m *Manifest, i int) (*unwindtab.Table, error)
	// Blob returns the content of a blob, which must not be changed; ErrNotFound if the view
	// does not have it.
	Blob(id BlobID) ([]byte, error)
	// Dir returns the path rows of a directory; ok is false if none are known.
	Dir(dir string) (rows DirRows, ok bool, err error)
}
