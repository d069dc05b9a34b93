package container

import (
	"bytes"
	"context"
	"testing"

	"symbolize/fixtures/perfbuild"
	"symbolize/fixtures/sweep"
	"symbolize/ingest/format/perfdata"
)

// walk reads all records of a File; damage must leave it consistent.
func walk(t *testing.T, f *perfdata.File) {
	next := f.Data.Offset
	r := f.AllRecords()
	for r.Next() {
		rec := r.Record()
		if rec.Offset < next || r.Offset() < rec.Offset+int64(rec.Size) {
			t.Fatalf("record at %#x of %d bytes, the one before ended at %#x", rec.Offset, rec.Size,
				next)
		}
		next = r.Offset()
	}
}

// FuzzOpen opens any bytes as a file: an error or a File.
func FuzzOpen(f *testing.F) {
	for _, big := range []bool{false, true} {
		f.Add(input(big, 3).Pipe())
		f.Add(compress(input(big, 30), perfbuild.Zstd{Piece: 100}).Bytes())
		f.Add(compress(input(big, 30), perfbuild.Zstd{Piece: 100, Second: true}).Pipe())
	}
	f.Add(pack(f, input(false, 3).Bytes(), gzipped))
	f.Add(pack(f, compress(input(false, 30), perfbuild.Zstd{}).Pipe(), zstded))
	f.Fuzz(func(t *testing.T, data []byte) {
		IsPacked(bytes.NewReader(data), int64(len(data)))
		p, err := Open(context.Background(), "fuzz", bytes.NewReader(data), int64(len(data)), 0)
		if (p == nil) == (err == nil) {
			t.Fatalf("file %v and error %v", p, err)
		}
		if err != nil {
			return
		}
		walk(t, p.File)
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzUnpacked unpacks any bytes of a zstd stream that itself is sound, cut into payloads
// anywhere.
func FuzzUnpacked(f *testing.F) {
	f.Add(input(false, 10).Raw(), uint16(77), false)
	f.Add(input(true, 10).Raw(), uint16(5), true)
	f.Fuzz(func(t *testing.T, records []byte, piece uint16, second bool) {
		if len(records) == 0 || len(records)/(int(piece)%5000+1) > 200 {
			return // a file without records is that of a killed recorder
		}
		b := perfbuild.New()
		b.Damage(records)
		b.Compress(0, perfbuild.Zstd{Piece: int(piece)%5000 + 1, Second: second})
		b.Compressed(1, 5, 528384)
		p := open(t, b.Bytes())
		walk(t, p.File)
		if p.File.Data.Size > int64(len(records)) {
			t.Fatalf("%d bytes of records, %d in the stream", p.File.Data.Size, len(records))
		}
	})
}

// TestTruncated opens every prefix of three small files of each container.
func TestTruncated(t *testing.T) {
	rnd := sweep.Rand(t)
	zstdOf := func(in *perfbuild.File, z perfbuild.Zstd) *perfbuild.File { return compress(in, z) }
	for _, tt := range []struct {
		name  string
		build func(in *perfbuild.File) []byte
		whole bool // of one block: no prefix can be opened
	}{
		{name: "file", build: (*perfbuild.File).Bytes},
		{name: "pipe", build: (*perfbuild.File).Pipe},
		{name: "version 1", build: (*perfbuild.File).Version1},
		{name: "zstd", build: func(in *perfbuild.File) []byte { return zstdOf(in, perfbuild.Zstd{Piece: 100}).Bytes() }},
		{name: "zstd second", build: func(in *perfbuild.File) []byte {
			return zstdOf(in, perfbuild.Zstd{Piece: 300, Second: true}).Bytes()
		}},
		{name: "zstd pipe", build: func(in *perfbuild.File) []byte { return zstdOf(in, perfbuild.Zstd{Piece: 100}).Pipe() }},
		{name: "gzip", build: func(in *perfbuild.File) []byte { return pack(t, in.Bytes(), gzipped) }},
		{name: "zstd file", build: func(in *perfbuild.File) []byte { return pack(t, in.Pipe(), zstded) }, whole: true},
	} {
		for _, of := range []struct {
			big     bool
			samples int
		}{{samples: 1}, {big: true, samples: 3}, {samples: 10}} {
			data := tt.build(input(of.big, of.samples))
			opened := 0
			for n := range sweep.Of(rnd, len(data), 100) {
				p, err := Open(t.Context(), tt.name, bytes.NewReader(data[:n]), int64(n), 0)
				if err == nil {
					opened++
					walk(t, p.File)
					p.Close()
				}
			}
			if opened == 0 && !tt.whole && tt.name != "gzip" || opened == len(data) {
				t.Errorf("%s, %d samples: %d of %d prefixes opened", tt.name, of.samples, opened, len(data))
			}
		}
	}
}

// TestTruncatedDir opens directories with a file of every length.
func TestTruncatedDir(t *testing.T) {
	b := perfbuild.New()
	b.Events = input(false, 0).Events
	addSamples(b, 0, 2)
	raw := b.Raw()
	b.Compress(0, perfbuild.Zstd{Piece: 50})
	rnd := sweep.Rand(t)
	for _, part := range [][]byte{raw, b.Raw()} {
		for n := range sweep.Of(rnd, len(part), 100) {
			p := openDir(t, map[string][]byte{"data": input(false, 1).Bytes(), "data.0": part[:n],
				"data.1": part})
			count := 0
			r := p.File.AllRecords()
			for r.Next() {
				count++
			}
			if r.Err() != nil || count < 1+1+2 {
				t.Fatalf("%d bytes: %d records, %v", n, count, r.Err())
			}
			p.Close()
		}
	}
}
