package input

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

func TestSqueeze(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	seen := map[string]string{}
	for range 20000 {
		var words []byte
		word := uint64(0x7f1234567000)
		for range rng.IntN(20) {
			switch rng.IntN(6) {
			case 0:
				word = contextUser
			case 1:
				word = rng.Uint64()
			case 2:
				word = uint64(rng.IntN(3))
			default:
				word += uint64(rng.IntN(1<<21)) - 1<<20
			}
			words = binary.LittleEndian.AppendUint64(words, word)
		}
		small := encodeChain([]byte("x"), words)[1:]
		if got := decodeChain(nil, small); !bytes.Equal(got, words) {
			t.Fatalf("%x\nbecame %x", words, got)
		}
		if old, ok := seen[string(small)]; ok && old != string(words) {
			t.Fatalf("%x and %x have one form", old, words)
		}
		seen[string(small)] = string(words)
	}
	near := make([]byte, 0, 160)
	for i := range uint64(20) {
		near = binary.LittleEndian.AppendUint64(near, 0xffffffff81000000+i*0x1000)
	}
	if n := len(encodeChain(nil, near)); n > len(near)*6/10 {
		t.Errorf("%d bytes of %d", n, len(near))
	}
	if got := encodeChain(nil, nil); len(got) != 0 || len(decodeChain(nil, got)) != 0 {
		t.Errorf("nothing becomes %x", got)
	}
}

func BenchmarkEncodeChain(b *testing.B) {
	var words, buf []byte
	for i := range uint64(12) {
		words = binary.LittleEndian.AppendUint64(words, 0x7f1234567000+i*0x3333)
	}
	b.SetBytes(int64(len(words)))
	for b.Loop() {
		buf = encodeChain(buf[:0], words)
	}
}
