package input

import (
	"bytes"
	"io"
	"os"
	"slices"
	"syscall"
	"testing"

	"symbolize/fixtures/must"
	"symbolize/ingest"
	"symbolize/ingest/files"
)

// failingAt fails with EIO at one of the reads of a file.
type failingAt struct {
	io.ReaderAt
	left int
}

func (r *failingAt) ReadAt(b []byte, at int64) (int, error) {
	if r.left--; r.left == 0 {
		return 0, &os.PathError{Op: "read", Path: "x", Err: syscall.EIO}
	}
	return r.ReaderAt.ReadAt(b, at)
}

// TestReadError fails each read of a capture once: the capture cannot be read, or has the error and a
// warning that the result is partial.
func TestReadError(t *testing.T) {
	b := must.Read(t, "../../fixtures/captures/mixed-buildid.data")
	for n := 1; ; n++ {
		r := &failingAt{bytes.NewReader(b), n}
		in := &file{path: "x", size: int64(len(b)), reads: &files.Reads{}}
		in.r = in.reads.Of(r)
		src, err := openSource(t.Context(), in, &Options{Workers: 1})
		if err == nil {
			c := &Capture{file: in, source: src}
			var p *ingest.Profile
			if p, err = c.Profile(t.Context()); r.left > 0 {
				if n == 1 || err != nil || c.ReadError() != nil {
					t.Fatalf("%d reads: %v, %v", n-1, err, c.ReadError())
				}
				return
			}
			if err == nil && (!files.OfMachine(c.ReadError()) ||
				!slices.ContainsFunc(p.Stats.Warnings, func(w ingest.Warning) bool { return w.Partial })) {
				t.Errorf("read %d fails: %v, warnings %v", n, c.ReadError(), p.Stats.Warnings)
			}
		}
		if err != nil && in.reads.Err() == nil {
			t.Errorf("read %d fails: %v", n, err)
		}
	}
}
