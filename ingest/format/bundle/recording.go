package bundle

import (
	"os"
	"path/filepath"
	"time"

	"symbolize/ingest/files"
	"symbolize/ingest/format/perfdata"
)

// Recording is a perf.data file that the command of a bundle wrote.
type Recording struct {
	Path  string `json:"path"`            // absolute
	Size  int64  `json:"size"`            // bytes; of a directory, of its file "data"
	First uint64 `json:"first,omitempty"` // time of the first sample, of the recording's clock; 0 if unknown
}

// RecordingAt describes the perf.data file or directory at a path, and when it was written. ok is
// false if there is none.
func RecordingAt(path string) (r Recording, modified time.Time, ok bool) {
	file := path
	if fi, err := os.Stat(path); err == nil && fi.IsDir() {
		file = filepath.Join(path, "data")
	}
	f, err := files.Open(file)
	if err != nil {
		return r, modified, false
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return r, modified, false
	}
	data, err := perfdata.Open(file, f, fi.Size())
	if err != nil {
		return r, modified, false
	}
	return Recording{Path: path, Size: fi.Size(), First: data.Features.FirstTime}, fi.ModTime(), true
}

// Find returns the path of the recording: beside the bundle, or where it was written; "" if no file
// there is this recording. changed reports that another one is there: a later recording replaced it.
func (r *Recording) Find(bundle string) (path string, changed bool) {
	for _, p := range []string{filepath.Join(filepath.Dir(bundle), filepath.Base(r.Path)), r.Path} {
		switch now, _, ok := RecordingAt(p); {
		case ok && now.Size == r.Size && now.First == r.First:
			return p, false
		case ok:
			changed = true
		}
	}
	return "", changed
}
