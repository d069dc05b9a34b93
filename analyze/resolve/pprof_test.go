package resolve

import (
	"path/filepath"
	"testing"

	"github.com/google/pprof/profile"

	"symbolize/fixtures/must"
	"symbolize/ingest"
	"symbolize/ingest/input"
)

// readPprof reads a pprof file as a capture.
func readPprof(t *testing.T, data []byte) *ingest.Profile {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.pb.gz")
	must.Write(t, path, data)
	c, err := input.Open(t.Context(), path, input.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	p, err := c.Profile(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// parsePprof reads it with google/pprof's own package.
func parsePprof(t *testing.T, data []byte) *profile.Profile {
	t.Helper()
	p, err := profile.ParseData(data)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.CheckValid(); err != nil {
		t.Fatal(err)
	}
	return p
}
