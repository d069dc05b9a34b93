package local

import (
	"os"
	"path/filepath"
	"strings"

	"symbolize/ingest"
	"symbolize/store"
	"symbolize/store/indexer"
)

// rowless is a Sink that keeps no path rows: the rows of Finder.Rows are kept apart, so that they
// hide no row that a store has of an earlier state of a file.
type rowless struct{ store.Sink }

// PutDir implements store.Sink.
func (rowless) PutDir(string, store.DirRows) error { return nil }

// Rows returns the path rows that AddRow has read.
func (f *Finder) Rows() store.View { return f.rows }

// AddRow reads the path row of the file that is now at a recorded path, which may prove that the
// file is the recorded one, or that it is another: below Options.Roots, otherwise on this host if
// here is set, that the capture was made on it.
func (f *Finder) AddRow(file *ingest.FileRef, here bool) {
	path := filepath.Clean(file.Path)
	if f.looked[path] || !strings.HasPrefix(path, "/") {
		return
	}
	f.looked[path] = true
	row := f.row(path, here)
	if row == nil {
		return
	}
	dir := filepath.Dir(path)
	if rows, _, err := f.rows.Dir(dir); err == nil {
		f.rows.PutDir(dir, append(store.DirRows{*row}, rows...).Sort()) // an Overlay's cannot fail
	}
}

// row reads the row of a recorded path; nil if no file is there.
func (f *Finder) row(path string, here bool) *store.PathRow {
	for _, root := range f.opts.Roots {
		if row, err := indexer.FileRow(filepath.Join(root, path), true); err == nil {
			row.Name = filepath.Base(path)
			row.Inode = 0 // a copy: it neither is the recorded file nor took its place
			return &row
		}
	}
	if !here || !f.opts.Host {
		return nil
	}
	row, err := indexer.FileRow(path, true)
	if err != nil {
		return nil
	}
	row.Name = filepath.Base(path) // not of the link's target
	return &row
}

// exists reports whether a regular file is there.
func exists(path string) bool {
	fi, err := os.Stat(path)
	return err == nil && fi.Mode().IsRegular()
}
