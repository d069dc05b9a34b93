package input

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"symbolize/fixtures/perfbuild"
	"symbolize/ingest/format/perfdata"
)

// serviceSamples is a recording of one service: size bytes of samples with the given
// number of distinct chains, of 8 to 40 frames in a program, a library and the kernel.
func serviceSamples(chains int, size int64) []byte {
	c := newCapture()
	const text = 0xffffffff81000000
	c.KernelMap("_text", text, text, 0x1000000)
	c.Comm(1, 1, "service", false, at(0))
	c.lib(1, 0x400000, 0x1000000, 0, "/bin/service", 0)
	c.lib(1, 0x7f0000000000, 0x200000, 0, "/lib/libc.so", 0)
	rng := rand.New(rand.NewPCG(3, 4))
	stack := func() []uint64 {
		var chain []uint64
		if rng.IntN(3) == 0 {
			chain = append(chain, cK)
			for range 3 + rng.IntN(10) {
				chain = append(chain, text+rng.Uint64N(1<<12)<<4)
			}
		}
		chain = append(chain, cU, 0x7f0000000000+rng.Uint64N(1<<10)<<4)
		for range 6 + rng.IntN(24) {
			chain = append(chain, 0x400000+rng.Uint64N(1<<13)<<4)
		}
		return chain
	}
	stacks := make([][]uint64, chains)
	for i := range stacks {
		stacks[i] = stack()
	}
	for t := uint64(1); c.Len() < size; t++ {
		// As of a service: few of the stacks make up most samples.
		n := int(rng.Float64() * rng.Float64() * float64(chains))
		c.Sample(perfbuild.Sample{PID: 1, TID: 1, Time: t, Chain: stacks[n], Period: 1})
	}
	return c.Bytes()
}

// BenchmarkSecondPass reads and folds samples on one core: of a service, which has few distinct
// chains, and of a recording with distinct chains in half of the samples.
func BenchmarkSecondPass(b *testing.B) {
	const size = 64 << 20
	for _, bb := range []struct {
		name   string
		chains int
	}{{name: "few", chains: 2_000}, {name: "many", chains: 150_000}} {
		b.Run(bb.name, func(b *testing.B) {
			data := serviceSamples(bb.chains, size)
			r := bytes.NewReader(data)
			f, err := perfdata.Open("bench", r, int64(len(data)))
			if err != nil {
				b.Fatal(err)
			}
			s := &perfSource{file: &file{path: "bench", r: r, size: int64(len(data))}, data: f,
				opts: Options{Workers: 1}}
			state, err := s.scan(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				c, err := newCollector(state, &s.opts)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := collect(b.Context(), c); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
