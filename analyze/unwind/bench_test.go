package unwind

import (
	"debug/elf"
	"testing"
)

// BenchmarkUnwind unwinds a stack of 63 frames, by stack and by frame pointer in turn, in a copy of
// 8 KB, which is the number of bytes.
func BenchmarkUnwind(b *testing.B) {
	words := []uint64{1, 2, 3, 4, codeAt + 0x120}
	const pairs = 30
	for range pairs {
		words = append(words, slot(len(words)+7), codeAt+0x210, 1, 2, 3, 4, codeAt+0x120)
	}
	words = append(words, 0, codeAt+0x10)
	words = append(words, make([]uint64, 1024-len(words))...)
	s := x86Stack(codeAt+0x210, slot(5), 0, words...)
	w := newTables(b, elf.EM_X86_64, program, false).For(objects()).Worker()
	chain, end, _ := w.Unwind(s, nil)
	if len(chain) != 2*pairs+3 {
		b.Fatalf("%q, end %d", text(chain), end)
	}
	b.SetBytes(int64(len(s.Memory)))
	for b.Loop() {
		chain, _, _ = w.Unwind(s, chain[:0])
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(chain)), "ns/frame")
}
