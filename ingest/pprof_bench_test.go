package ingest_test

import (
	"bytes"
	"io"
	"testing"

	"symbolize/fixtures/profilebuild"
	"symbolize/ingest"
)

func BenchmarkWritePprof(b *testing.B) {
	p := profilebuild.Random(1, profilebuild.LikeBig)
	var out bytes.Buffer
	if err := ingest.WritePprof(&out, p, ingest.PprofOptions{}); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(out.Len()))
	b.ReportAllocs()
	for b.Loop() {
		if err := ingest.WritePprof(io.Discard, p, ingest.PprofOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReadPprof(b *testing.B) {
	p := profilebuild.Random(1, profilebuild.LikeBig)
	var out bytes.Buffer
	if err := ingest.WritePprof(&out, p, ingest.PprofOptions{}); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(out.Len()))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ingest.ReadPprofForTest("x", out.Bytes(), ingest.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
