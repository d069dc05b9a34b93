package input

import (
	"bytes"
	"compress/gzip"
	"path/filepath"
	"reflect"
	"testing"

	"symbolize/fixtures/must"
	"symbolize/fixtures/perfbuild"
	"symbolize/ingest"
	"symbolize/ingest/format/perfdata"
)

// TestEverything folds a file with every record and feature from each container, in both byte
// orders: nothing of it is unknown or bad, and the profiles are equal.
func TestEverything(t *testing.T) {
	for _, big := range []bool{false, true} {
		compressed := func(z perfbuild.Zstd) *perfbuild.File {
			f, kernel := perfbuild.Everything(big)
			f.Compress(kernel, z)
			return f
		}
		plain, _ := perfbuild.Everything(big)
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		w.Write(plain.Pipe())
		w.Close()
		var want *ingest.Profile
		for _, c := range []struct {
			name string
			data []byte
		}{
			{name: "file", data: plain.Bytes()},
			{name: "pipe", data: plain.Pipe()},
			{name: "version 1", data: plain.Version1()},
			{name: "zstd", data: compressed(perfbuild.Zstd{Piece: 100}).Bytes()},
			{name: "second zstd", data: compressed(perfbuild.Zstd{Second: true}).Bytes()},
			{name: "zstd pipe", data: compressed(perfbuild.Zstd{}).Pipe()},
			{name: "gzip", data: packed.Bytes()},
		} {
			path := filepath.Join(t.TempDir(), "perf.data")
			must.Write(t, path, c.data)
			_, p := foldPath(t, path, Options{})
			st := &p.Stats
			if st.UnknownRecords+st.BadRecords+st.UnknownIDs > 0 || len(st.Warnings) > 2 { // a trace, losses
				t.Errorf("%s, big endian %v: %d unknown, %d bad, %d unknown IDs: %v", c.name, big,
					st.UnknownRecords, st.BadRecords, st.UnknownIDs, st.Warnings)
			}
			for n := perfdata.TypeMmap; n <= perfdata.TypeCallchainDeferred; n++ {
				if st.RecordTypes[n.String()] == 0 {
					t.Errorf("%s, big endian %v: no record %s", c.name, big, n)
				}
			}
			p.Meta, p.Stats = ingest.Meta{}, ingest.Stats{}
			if want == nil {
				want = p
			} else if !reflect.DeepEqual(p, want) {
				t.Errorf("%s, big endian %v: another profile: %+v, want %+v", c.name, big, p.Samples, want.Samples)
			}
		}
		if len(want.Samples) != 2 || len(want.Stack(nil, want.Samples[0].Stack)) != 3 {
			t.Errorf("big endian %v: %+v", big, want.Samples)
		}
	}
}
