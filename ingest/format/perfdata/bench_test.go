package perfdata

import (
	"math/rand/v2"
	"sync"
	"testing"

	"symbolize/fixtures/perfbuild"
)

// benchFile is 64 MB of samples as a system-wide recording has them, 11 words of chain on average,
// with a side-band record for every 1,000.
var benchFile = sync.OnceValue(func() *perfbuild.File {
	return fillBench(perfbuild.New())
})

const benchSize = 64 << 20

func fillBench(b *perfbuild.File) *perfbuild.File {
	b.Events[0].SampleType |= perfbuild.CPU
	rng := rand.New(rand.NewPCG(1, 2))
	chain := make([]uint64, 22)
	chain[0] = perfbuild.ContextUser
	for n := 0; b.Len() < benchSize; n++ {
		if n%1000 == 0 {
			b.Mmap2(perfbuild.Mmap{PID: 7, Addr: uint64(n) << 12, Len: 4096, BuildID: id20,
				Filename: "/usr/lib/x86_64-linux-gnu/libc.so.6"}, perfbuild.At{Time: uint64(n)})
		}
		for i := range chain[1:] {
			chain[1+i] = 0x400000 + rng.Uint64N(1<<20)
		}
		b.Sample(perfbuild.Sample{PID: 7, TID: 7, Time: uint64(n), Chain: chain[:2+rng.IntN(20)]})
	}
	return b
}

// benchRecords reads the whole file once per round and passes each record to use.
func benchRecords(b *testing.B, built *perfbuild.File, use func(*File, *Record)) {
	f := openBuilt(b, built)
	r := f.AllRecords()
	records := 0
	b.SetBytes(f.Data.Size)
	b.ReportAllocs()
	for b.Loop() {
		r.Reset(f.Data.Offset, f.Data.End())
		for records = 0; r.Next(); records++ {
			use(f, r.Record())
		}
		if r.Err() != nil {
			b.Fatal(r.Err())
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(records), "ns/record")
}

// BenchmarkRecords iterates without decoding samples, as the first pass does.
func BenchmarkRecords(b *testing.B) {
	benchRecords(b, benchFile(), func(*File, *Record) {})
}

// BenchmarkSamples decodes every sample.
func BenchmarkSamples(b *testing.B) {
	var s Sample
	benchRecords(b, benchFile(), decodeInto(b, &s))
}

func decodeInto(b *testing.B, s *Sample) func(*File, *Record) {
	return func(f *File, rec *Record) {
		if rec.Type != TypeSample {
			return
		}
		if err := f.DecodeSample(rec, s); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSamplesBigEndian decodes every sample in the other byte order, with swapped chains.
func BenchmarkSamplesBigEndian(b *testing.B) {
	var s Sample
	benchRecords(b, fillBench(perfbuild.NewOrder(true)), decodeInto(b, &s))
}

// BenchmarkSamplesOfSeveralEvents looks the event up by its ID.
func BenchmarkSamplesOfSeveralEvents(b *testing.B) {
	built := perfbuild.New()
	built.Events[0].SampleType |= perfbuild.IDField
	built.Events = append(built.Events, built.Events[0])
	built.Events[1].IDs = []uint64{13, 14}
	built.Events[1].SampleType |= perfbuild.CPU
	var s Sample
	benchRecords(b, fillBench(built), decodeInto(b, &s))
}
