package container

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"symbolize/fixtures/perfbuild"
	"symbolize/ingest/format/perfdata"
)

// input is a file of n samples of two events, at times from 10 on, and records around them.
func input(big bool, n int) *perfbuild.File {
	b := perfbuild.NewOrder(big)
	b.Events = append(b.Events, b.Events[0])
	for i := range b.Events {
		b.Events[i].SampleType |= perfbuild.Identifier
		b.Events[i].IDs = []uint64{uint64(10*i + 1)}
	}
	b.FeatureString(perfbuild.FeatureHostname, "host")
	b.EventDesc()
	b.Comm(1, 1, "x", false, perfbuild.At{})
	addSamples(b, 0, n)
	return b
}

// addSamples appends samples number from to to.
func addSamples(b *perfbuild.File, from, to int) {
	for i := from; i < to; i++ {
		b.Sample(perfbuild.Sample{PID: 1, TID: 1, Time: uint64(10 + i), Event: i % 2,
			IP: 0x400000 + uint64(i), Chain: []uint64{perfbuild.ContextUser, 0x400000 + uint64(i),
				0x500000, uint64(i)}})
	}
}

// compress packs all records but the first, which perf makes itself.
func compress(b *perfbuild.File, z perfbuild.Zstd) *perfbuild.File {
	first := perfbuild.NewOrder(b.BigEndian)
	first.Events = b.Events
	first.Comm(1, 1, "x", false, perfbuild.At{})
	b.Compress(first.Len(), z)
	b.Compressed(1, 5, 528384)
	return b
}

// listed is the content of a File in a comparable form: its events, and its records of types
// that all containers of one recording have.
func listed(t testing.TB, f *perfdata.File) (list []string) {
	t.Helper()
	for _, ev := range f.Events {
		list = append(list, fmt.Sprintf("event %s %v", ev.Name, ev.IDs))
	}
	r := f.AllRecords()
	for r.Next() {
		rec := r.Record()
		switch rec.Type {
		case perfdata.TypeSample, perfdata.TypeComm:
			id, err := f.SampleID(rec)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, fmt.Sprintf("%s %d %d %x", rec.Type, rec.Misc, id.Time, rec.Body))
		}
	}
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	return list
}

func open(t testing.TB, data []byte) *Perf {
	t.Helper()
	p, err := Open(context.Background(), "test.data", bytes.NewReader(data), int64(len(data)), 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// writeDir writes a directory of these files.
func writeDir(t testing.TB, files map[string][]byte) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "perf.data")
	for name, data := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func openDir(t testing.TB, files map[string][]byte) *Perf {
	t.Helper()
	p, err := OpenDir(context.Background(), writeDir(t, files), 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func pack(t testing.TB, data []byte, writer func(io.Writer) io.WriteCloser) []byte {
	t.Helper()
	var out bytes.Buffer
	w := writer(&out)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func gzipped(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }

func zstded(w io.Writer) io.WriteCloser {
	z, err := zstd.NewWriter(w)
	if err != nil {
		panic(err)
	}
	return z
}
