package pprof_test

import (
	"compress/gzip"
	"io"
	"testing"

	"github.com/google/pprof/profile"

	"symbolize/fixtures/profilebuild"
	"symbolize/ingest/input/pprof"
)

func BenchmarkWrite(b *testing.B) {
	p := profilebuild.Random(1, profilebuild.LikeBig)
	b.SetBytes(int64(len(write(b, p, pprof.WriteOptions{}))))
	b.ReportAllocs()
	for b.Loop() {
		if err := pprof.Write(io.Discard, p, pprof.WriteOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkLibraryWrite is google/pprof's time for the same file, once its structs are built: the
// reason for an encoder of our own.
func BenchmarkLibraryWrite(b *testing.B) {
	data := write(b, profilebuild.Random(1, profilebuild.LikeBig), pprof.WriteOptions{})
	prof := parse(b, data)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		z, err := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed)
		if err != nil {
			b.Fatal(err)
		}
		if err := prof.WriteUncompressed(z); err != nil {
			b.Fatal(err)
		}
		if err := z.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRead(b *testing.B) {
	data := write(b, profilebuild.Random(1, profilebuild.LikeBig), pprof.WriteOptions{})
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := pprof.Read("x", data, pprof.ReadOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkLibraryRead is google/pprof's time and memory for the same file, without making a
// Profile of it: the reason for a decoder of samples of our own.
func BenchmarkLibraryRead(b *testing.B) {
	data := write(b, profilebuild.Random(1, profilebuild.LikeBig), pprof.WriteOptions{})
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := profile.ParseData(data); err != nil {
			b.Fatal(err)
		}
	}
}
