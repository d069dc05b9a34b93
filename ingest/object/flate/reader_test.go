package flate

import (
	"bytes"
	stdflate "compress/flate"
	stdzlib "compress/zlib"
	"errors"
	"fmt"
	"hash/adler32"
	"io"
	"math/rand/v2"
	"testing"
	"testing/iotest"
)

// samples are contents of different kinds: each results in other kinds of blocks.
func samples() map[string][]byte {
	rnd := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 300<<10)
	for i := range noise {
		noise[i] = byte(rnd.Uint32())
	}
	var text, skewed, mixed []byte
	for len(text) < 700<<10 {
		text = fmt.Appendf(text, "DW_TAG_%d name%d line %d\n", rnd.IntN(40), rnd.IntN(5000), len(text))
	}
	for len(skewed) < 100<<10 { // long codes for rare bytes
		n := 0
		for n < 255 && rnd.IntN(2) == 0 {
			n++
		}
		skewed = append(skewed, byte(n*7))
	}
	for dist := 1; dist < 40; dist++ { // matches that repeat themselves
		mixed = append(mixed, noise[:dist]...)
		for range 300 {
			mixed = append(mixed, mixed[len(mixed)-dist])
		}
	}
	mixed = append(mixed, noise[:40<<10]...)
	mixed = append(mixed, noise[7<<10+8<<10:40<<10]...) // at the far end of the window
	return map[string][]byte{
		"empty": nil, "byte": {7}, "zeros": make([]byte, 1<<20), "noise": noise, "text": text,
		"skewed": skewed, "mixed": mixed,
	}
}

func packed(t testing.TB, data []byte, level int, zlib bool) []byte {
	t.Helper()
	var out bytes.Buffer
	var w io.WriteCloser
	var err error
	if zlib {
		w, err = stdzlib.NewWriterLevel(&out, level)
	} else {
		w, err = stdflate.NewWriter(&out, level)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestReader(t *testing.T) {
	for name, data := range samples() {
		for _, level := range []int{stdflate.HuffmanOnly, 0, 1, 6, 9} {
			raw, z := packed(t, data, level, false), packed(t, data, level, true)
			for how, r := range map[string]io.Reader{
				"raw":       NewReader(bytes.NewReader(raw)),
				"zlib":      NewZlibReader(bytes.NewReader(z)),
				"trickling": NewZlibReader(iotest.HalfReader(bytes.NewReader(z))),
				"by bits":   iotest.OneByteReader(NewReader(bytes.NewReader(raw))),
				"with tail": NewZlibReader(io.MultiReader(bytes.NewReader(z), bytes.NewReader(data))),
			} {
				got, err := io.ReadAll(r)
				if err != nil || !bytes.Equal(got, data) {
					t.Errorf("%s, level %d, %s: %d of %d bytes, error %v", name, level, how,
						len(got), len(data), err)
				}
			}
		}
	}
}

func TestReset(t *testing.T) {
	all := samples()
	z := NewZlibReader(bytes.NewReader([]byte("no zlib")))
	if _, err := io.Copy(io.Discard, z); !errors.Is(err, ErrFormat) {
		t.Fatalf("error %v, want %v", err, ErrFormat)
	}
	for name, data := range all {
		z.Reset(bytes.NewReader(packed(t, data, 6, true)))
		var got bytes.Buffer
		if n, err := z.WriteTo(&got); err != nil || n != int64(len(data)) ||
			!bytes.Equal(got.Bytes(), data) {
			t.Errorf("%s: %d of %d bytes, error %v", name, n, len(data), err)
		}
	}
}

func TestErrors(t *testing.T) {
	whole := packed(t, []byte("hello, hello, hello"), 6, true)
	sum := bytes.Clone(whole)
	sum[len(sum)-1] ^= 1
	for name, c := range map[string]struct {
		in   []byte
		want error
	}{
		"empty":           {want: io.ErrUnexpectedEOF},
		"method":          {in: []byte{0x77, 0x01, 3, 0}, want: ErrFormat},
		"window":          {in: []byte{0x88, 0x1c, 3, 0}, want: ErrFormat},
		"header checksum": {in: []byte{0x78, 0x9d, 3, 0}, want: ErrFormat},
		"dictionary":      {in: []byte{0x78, 0xbb, 0, 0, 0, 1, 3, 0}, want: ErrFormat},
		"block type":      {in: []byte{0x78, 0x9c, 7, 0}, want: ErrFormat},
		"stored length":   {in: []byte{0x78, 0x9c, 1, 1, 0, 1, 0, 'x'}, want: ErrFormat},
		"stored, cut": {in: []byte{0x78, 0x9c, 1, 9, 0, 0xf6, 0xff, 'x'},
			want: io.ErrUnexpectedEOF},
		"distance": {in: []byte{0x78, 0x9c, 0x03 | 0x80<<1&0xff, 0x02, 0, 0},
			want: ErrFormat},
		"checksum":    {in: sum, want: ErrChecksum},
		"no checksum": {in: whole[:len(whole)-4], want: io.ErrUnexpectedEOF},
	} {
		in := c.in
		if c.want == ErrFormat { // near the end it would be one cut short
			in = append(in, "behind"...)
		}
		_, err := io.Copy(io.Discard, NewZlibReader(bytes.NewReader(in)))
		if !errors.Is(err, c.want) {
			t.Errorf("%s: error %v, want %v", name, err, c.want)
		}
	}
	broken := errors.New("disk")
	src := io.MultiReader(bytes.NewReader(whole[:5]), iotest.ErrReader(broken))
	if _, err := io.Copy(io.Discard, NewZlibReader(src)); !errors.Is(err, broken) {
		t.Errorf("error %v, want that of the source", err)
	}
}

// TestTruncation cuts streams everywhere: the output is a prefix of the content, and
// the error is io.ErrUnexpectedEOF.
func TestTruncation(t *testing.T) {
	text := samples()["text"][:3000]
	for _, level := range []int{stdflate.HuffmanOnly, 0, 1, 9} {
		whole := packed(t, text, level, true)
		z := NewZlibReader(nil)
		for n := range whole {
			z.Reset(bytes.NewReader(whole[:n]))
			got, err := io.ReadAll(z)
			if !errors.Is(err, io.ErrUnexpectedEOF) || !bytes.HasPrefix(text, got) {
				t.Fatalf("level %d, %d of %d bytes: %d bytes, error %v", level, n, len(whole),
					len(got), err)
			}
		}
	}
}

// TestFlippedBits changes every bit of a stream: the checksum detects all other damage.
func TestFlippedBits(t *testing.T) {
	text := samples()["text"][:2000]
	for _, level := range []int{0, 1, 9} {
		whole := packed(t, text, level, true)
		z := NewZlibReader(nil)
		for i := range 8 * len(whole) {
			b := bytes.Clone(whole)
			b[i/8] ^= 1 << (i % 8)
			z.Reset(bytes.NewReader(b))
			got, err := io.ReadAll(z)
			if err == nil && !bytes.Equal(got, text) {
				t.Fatalf("level %d, bit %d: other bytes and no error", level, i)
			}
		}
	}
}

func TestAdler(t *testing.T) {
	for name, data := range samples() {
		for n := 0; n < len(data); n = n*3 + 1 {
			if got, want := adler(1, data[:n]), adler32.Checksum(data[:n]); got != want {
				t.Errorf("%s, %d bytes: %#x, want %#x", name, n, got, want)
			}
		}
	}
	full := bytes.Repeat([]byte{0xff}, 100<<10) // as near to overflow as can be
	const greatest = (adlerMod-1)<<16 | adlerMod - 1
	if a, b := adler(greatest, full[:8]), adler(adler(greatest, full[:3]), full[3:8]); a != b {
		t.Errorf("in one piece %#x, in two %#x", a, b)
	}
	if got, want := adler(1, full), adler32.Checksum(full); got != want {
		t.Errorf("%#x, want %#x", got, want)
	}
}

// FuzzReader compares with the standard library: both accept a stream, with the same
// bytes, or both refuse it.
func FuzzReader(f *testing.F) {
	for _, data := range samples() {
		for _, level := range []int{stdflate.HuffmanOnly, 0, 1, 9} {
			f.Add(packed(f, data[:min(len(data), 2000)], level, false))
		}
	}
	z := NewReader(nil)
	f.Fuzz(func(t *testing.T, in []byte) {
		const limit = 1 << 20
		z.Reset(bytes.NewReader(in))
		got, err := io.ReadAll(io.LimitReader(z, limit))
		want, wantErr := io.ReadAll(io.LimitReader(stdflate.NewReader(bytes.NewReader(in)), limit))
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("error %v after %d bytes; the standard library: %v after %d", err, len(got),
				wantErr, len(want))
		}
		if err == nil && !bytes.Equal(got, want) {
			t.Fatal("other bytes than the standard library's")
		}
	})
}

func BenchmarkReader(b *testing.B) {
	data := samples()["text"]
	in := packed(b, data, 6, true)
	for name, open := range map[string]func(io.Reader) (io.Reader, error){
		"own": func(r io.Reader) (io.Reader, error) { return NewZlibReader(r), nil },
		"std": func(r io.Reader) (io.Reader, error) { return stdzlib.NewReader(r) },
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				r, err := open(bytes.NewReader(in))
				if err != nil {
					b.Fatal(err)
				}
				if _, err := io.Copy(io.Discard, r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
