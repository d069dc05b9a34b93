package container

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"symbolize/fixtures/perfbuild"
	"symbolize/ingest/files"
	"symbolize/ingest/format/perfdata"
)

// samples is the number of samples of most tests.
const samples = 200

// built are the containers of one recording, by their names.
func built(t testing.TB, big bool, n int) map[string]func() *Perf {
	t.Helper()
	zstdOf := func(z perfbuild.Zstd) *perfbuild.File { return compress(input(big, n), z) }
	round := perfbuild.NewOrder(big)
	round.FinishedRound()
	part := func(from, to int) []byte {
		b := perfbuild.NewOrder(big)
		b.Events = input(big, 0).Events
		addSamples(b, from, to)
		return b.Raw()
	}
	zpart := func(from, to int) []byte {
		b := perfbuild.NewOrder(big)
		b.Events = input(big, 0).Events
		addSamples(b, from, to)
		b.Compress(0, perfbuild.Zstd{Piece: 333})
		return b.Raw()
	}
	killed := zstdOf(perfbuild.Zstd{})
	killed.Killed = true
	file := func(data []byte) func() *Perf { return func() *Perf { return open(t, data) } }
	dir := func(files map[string][]byte) func() *Perf {
		return func() *Perf { return openDir(t, files) }
	}
	return map[string]func() *Perf{
		"file":             file(input(big, n).Bytes()),
		"version 1":        file(input(big, n).Version1()),
		"pipe":             file(input(big, n).Pipe()),
		"zstd":             file(zstdOf(perfbuild.Zstd{}).Bytes()),
		"zstd, tiny":       file(zstdOf(perfbuild.Zstd{Piece: 7}).Bytes()),
		"zstd, one":        file(zstdOf(perfbuild.Zstd{Piece: 1 << 20}).Bytes()),
		"zstd, between":    file(zstdOf(perfbuild.Zstd{Piece: 501, Between: round.Raw()}).Bytes()),
		"zstd, second":     file(zstdOf(perfbuild.Zstd{Second: true, Piece: 501}).Bytes()),
		"zstd pipe":        file(zstdOf(perfbuild.Zstd{}).Pipe()),
		"zstd killed":      file(killed.Bytes()),
		"gzip":             file(pack(t, input(big, n).Bytes(), gzipped)),
		"zstd file":        file(pack(t, zstdOf(perfbuild.Zstd{}).Pipe(), zstded)),
		"directory of one": dir(map[string][]byte{"data": input(big, n).Bytes()}),
		"directory": dir(map[string][]byte{"data": input(big, 0).Bytes(),
			"data.0": part(0, n/3), "data.1": part(n/3, n/2), "data.2": nil,
			"data.10": part(n/2, n), "data.x": []byte("none"), "data.01": []byte("none")}),
		"directory, zstd": dir(map[string][]byte{"data": compress(input(big, 0),
			perfbuild.Zstd{}).Bytes(), "data.0": zpart(0, n/2), "data.1": zpart(n/2, n)}),
	}
}

// TestContainers reads the same from every container of a recording.
func TestContainers(t *testing.T) {
	for _, big := range []bool{false, true} {
		want := listed(t, perfFile(t, input(big, samples).Bytes()))
		if len(want) != 2+1+samples {
			t.Fatalf("%d lines", len(want))
		}
		for name, openIt := range built(t, big, samples) {
			p := openIt()
			got := listed(t, p.File)
			if name == "zstd killed" {
				got[0], got[1] = want[0], want[1] // the names of events are a feature
			} else if len(p.File.Warnings) > 0 {
				t.Errorf("%s: %v", name, p.File.Warnings)
			}
			if p.File.BigEndian != big || !slices.Equal(got, want) {
				t.Errorf("%s, big-endian %v: %d lines, want %d", name, big, len(got), len(want))
			}
			checkChunks(t, name, p.File)
		}
	}
}

func perfFile(t testing.TB, data []byte) *perfdata.File {
	t.Helper()
	f, err := perfdata.Open("test.data", bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// checkChunks reads the records one by one at their offsets, and in two ranges.
func checkChunks(t *testing.T, name string, f *perfdata.File) {
	t.Helper()
	type place struct {
		at   int64
		size int
	}
	var all []place
	for r := f.AllRecords(); r.Next(); {
		all = append(all, place{r.Record().Offset, r.Record().Size})
	}
	single := f.Records(0, 0)
	for _, want := range all {
		rec, err := single.At(want.at, want.size)
		if err != nil || rec.Offset != want.at || rec.Size != want.size {
			t.Fatalf("%s: record at %#x: %v", name, want.at, err)
		}
	}
	middle := all[len(all)/2].at
	first, n := f.Records(f.Data.Offset, middle), 0
	for ; first.Next(); n++ {
	}
	for second := f.Records(first.Offset(), f.Data.End()); second.Next(); n++ {
	}
	if first.Offset() != middle || n != len(all) {
		t.Errorf("%s: %d records in two ranges, %d in one", name, n, len(all))
	}
}

// TestDamage keeps the data before damage, and the other files of a directory.
func TestDamage(t *testing.T) {
	raw := func(from, to int) []byte {
		b := perfbuild.New()
		b.Events = input(false, 0).Events
		addSamples(b, from, to)
		return b.Raw()
	}
	bad := compress(input(false, samples), perfbuild.Zstd{Piece: 1000})
	broken := bad.Bytes()
	copy(broken[len(broken)/2:], bytes.Repeat([]byte{0xff}, 64))
	gz := pack(t, input(false, 5000).Bytes(), gzipped)
	trace := perfbuild.New()
	trace.Events = input(false, 0).Events
	trace.Auxtrace(make([]byte, 64))
	for _, tt := range []struct {
		name    string
		open    func() *Perf
		samples int // at least
		warning string
	}{
		{name: "zstd", open: func() *Perf { return open(t, broken) }, samples: 20,
			warning: "COMPRESSED record"},
		{name: "gzip cut off", open: func() *Perf { return open(t, gz[:len(gz)*2/3]) },
			samples: 500, warning: "unexpected EOF"},
		{name: "cut file of a directory", open: func() *Perf {
			return openDir(t, map[string][]byte{"data": input(false, 0).Bytes(),
				"data.0": raw(0, 10)[:700], "data.1": raw(10, 20)})
		}, samples: 10, warning: "data.0: offset "},
		{name: "cut trace of a directory", open: func() *Perf {
			return openDir(t, map[string][]byte{"data": input(false, 0).Bytes(),
				"data.0": trace.Raw()[:90], "data.1": raw(10, 20)})
		}, samples: 10, warning: "after the AUXTRACE record overrun"},
		{name: "no record in the stream", open: func() *Perf {
			b := perfbuild.New()
			b.Damage(make([]byte, 100))
			b.Compress(0, perfbuild.Zstd{})
			b.Damage(raw(0, 10))
			b.Compressed(1, 5, 528384)
			return open(t, b.Bytes())
		}, samples: 10, warning: "unpacked: offset 0x0: record of type UNKNOWN_0 and 0 bytes"},
		{name: "a record without an end", open: func() *Perf {
			b := perfbuild.New()
			b.Damage(raw(0, 10)[:700])
			b.Compress(0, perfbuild.Zstd{})
			b.Compressed(1, 5, 528384)
			return open(t, b.Bytes())
		}, samples: 3, warning: "bytes of a record that has no end"},
	} {
		p := tt.open()
		n := 0
		r := p.File.AllRecords()
		for r.Next() {
			if r.Record().Type == perfdata.TypeSample {
				n++
			}
		}
		text := ""
		for _, w := range p.File.Warnings {
			text += w.Error() + "\n"
		}
		cut := tt.name == "gzip cut off" // the file within is cut off, too
		if !cut && (r.Err() != nil || !strings.Contains(text, "all records before it are used")) ||
			n < tt.samples || !strings.Contains(text, tt.warning) {
			t.Errorf("%s: %d samples, %v, warnings:\n%s", tt.name, n, r.Err(), text)
		}
	}
}

// TestTraces leaves traces out of the spool, and keeps the records behind them.
func TestTraces(t *testing.T) {
	b := input(false, 10)
	b.Auxtrace(bytes.Repeat([]byte{7}, 3<<20))
	compress(b, perfbuild.Zstd{})
	b = input(false, 10)
	b.Compress(0, perfbuild.Zstd{})
	b.Auxtrace(bytes.Repeat([]byte{7}, 3<<20))
	b.FinishedRound()
	b.Compressed(1, 5, 528384)
	p := open(t, b.Bytes())
	last := perfdata.Type(0)
	for r := p.File.AllRecords(); r.Next(); {
		last = r.Record().Type
	}
	if last != perfdata.TypeFinishedRound || p.File.Data.Size < 3<<20 {
		t.Errorf("last record %s, %d bytes", last, p.File.Data.Size)
	}
}

// TestOpenErrors has files that are no perf.data.
func TestOpenErrors(t *testing.T) {
	for _, tt := range []struct {
		name string
		data []byte
		want error
	}{
		{name: "text", data: []byte("hello, world"), want: perfdata.ErrNotPerfData},
		{name: "cut header", data: input(false, 1).Bytes()[:40], want: perfdata.ErrCutHeader},
		{name: "packed text", data: pack(t, []byte("hello"), gzipped),
			want: perfdata.ErrNotPerfData},
		{name: "bad gzip", data: []byte("\x1f\x8b\x08garbage"), want: perfdata.ErrNotPerfData},
	} {
		_, err := Open(t.Context(), "x", bytes.NewReader(tt.data), int64(len(tt.data)), 0)
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	data := compress(input(false, 10), perfbuild.Zstd{}).Bytes()
	if _, err := Open(ctx, "x", bytes.NewReader(data), int64(len(data)), 0); !errors.Is(err,
		context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	if _, err := OpenDir(t.Context(), t.TempDir(), 0, nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a directory without data: %v", err)
	}
}

// TestFullDisk ends with one error where the spool has no place.
func TestFullDisk(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "absent"))
	b := input(false, 10)
	b.Auxtrace(make([]byte, 100))
	b = compress(b, perfbuild.Zstd{})
	b.Auxtrace(make([]byte, 100)) // a hole needs a file
	data := b.Bytes()
	_, err := Open(t.Context(), "x", bytes.NewReader(data), int64(len(data)), 0)
	if err == nil || !errors.Is(err, os.ErrNotExist) || errors.Is(err, files.ErrFull) {
		t.Error(err)
	}
}

// TestBomb: what unpacks to more than is allowed ends with an error, packed as a whole, by record and
// in a directory; with a higher limit it is read.
func TestBomb(t *testing.T) {
	plain := input(false, 200).Bytes()
	recorded := compress(input(false, 2000), perfbuild.Zstd{}).Bytes()
	dir := writeDir(t, map[string][]byte{"data": recorded})
	for _, tt := range []struct {
		name string
		data []byte // nil for dir
		need int64
	}{
		{name: "packed", data: pack(t, plain, zstded), need: int64(len(plain))},
		{name: "records", data: recorded, need: input(false, 2000).Len()},
		{name: "directory", need: input(false, 2000).Len()},
	} {
		open := func(most int64) error {
			p, err := OpenDir(t.Context(), dir, most, nil)
			if tt.data != nil {
				p, err = Open(t.Context(), "x", bytes.NewReader(tt.data), int64(len(tt.data)), most)
			}
			if err == nil {
				p.Close()
			}
			return err
		}
		if err := open(tt.need - 1); !errors.Is(err, files.ErrTooLarge) {
			t.Errorf("%s: %v", tt.name, err)
		}
		for _, most := range []int64{tt.need + 1<<10, 0} {
			if err := open(most); err != nil {
				t.Errorf("%s, %d bytes: %v", tt.name, most, err)
			}
		}
	}
}

// TestIsPacked looks for perf.data in packed files.
func TestIsPacked(t *testing.T) {
	for _, tt := range []struct {
		name string
		data []byte
		want bool
	}{
		{name: "gzip", data: pack(t, input(false, 1).Pipe(), gzipped), want: true},
		{name: "zstd", data: pack(t, input(true, 1).Bytes(), zstded), want: true},
		{name: "plain", data: input(false, 1).Bytes()},
		{name: "other", data: pack(t, []byte("other content"), gzipped)},
		{name: "damaged", data: []byte("\xfd7zXZ\x00garbage")},
		{name: "empty"},
	} {
		if got := IsPacked(bytes.NewReader(tt.data), int64(len(tt.data))); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}
