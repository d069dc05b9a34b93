package bundle

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
)

// TestSpool: a spool reads back its content, in memory and in a file, also behind an entry
// that was taken back.
func TestSpool(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	r := rand.New(rand.NewPCG(1, 2))
	for _, tt := range []struct {
		name   string
		size   int64 // of the kept part
		behind int64 // of the part taken back
	}{
		{"empty", 0, 0}, {"nothing kept", 0, 100}, {"small", 100, 10},
		{"one piece", spoolPiece, spoolPiece}, {"pieces", 3*spoolPiece + 5, 2 * spoolPiece},
		{"to the end of a piece", 2 * spoolPiece, 7}, {"in a file", spoolMemory + 99, 33},
		{"a file by what is taken back", spoolMemory - 5, spoolPiece},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var s spool
			defer s.close()
			want := make([]byte, tt.size+tt.behind+11)
			for i := range want {
				want[i] = byte(r.Uint32())
			}
			write := func(b []byte) {
				for len(b) > 0 {
					n := min(len(b), 1+r.IntN(50_000))
					if _, err := s.Write(b[:n]); err != nil {
						t.Fatal(err)
					}
					b = b[n:]
				}
			}
			write(want[:tt.size+tt.behind])
			s.truncate(tt.size)
			write(want[tt.size+tt.behind:])
			want = append(want[:tt.size], want[tt.size+tt.behind:]...)
			got, err := io.ReadAll(io.NewSectionReader(&s, 0, s.size))
			if err != nil || !bytes.Equal(got, want) {
				t.Fatalf("%d bytes, %v; want %d", len(got), err, len(want))
			}
			if n, err := s.ReadAt(make([]byte, 5), s.size-2); n != 2 || !errors.Is(err, io.EOF) {
				t.Errorf("at the end %d bytes, %v", n, err)
			}
			if held := int64(len(s.mem)) * spoolPiece; held > s.size+spoolPiece {
				t.Errorf("%d bytes of memory for %d", held, s.size)
			}
		})
	}
}
