package files

import (
	"bytes"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"testing"
)

// TestSpool: a spool reads back its content, in memory and in a file, also after an entry that was
// truncated.
func TestSpool(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	r := rand.New(rand.NewPCG(1, 2))
	for _, tt := range []struct {
		name   string
		size   int64 // of the kept part
		behind int64 // of the truncated part
	}{
		{name: "empty", size: 0, behind: 0}, {name: "nothing kept", size: 0, behind: 100}, {name: "small",
			size: 100, behind: 10},
		{name: "one piece", size: pieceSize, behind: pieceSize}, {name: "pieces",
			size: 3*pieceSize + 5, behind: 2 * pieceSize},
		{name: "to the end of a piece", size: 2 * pieceSize, behind: 7}, {name: "in a file",
			size: memory + 99, behind: 33},
		{name: "a file by what is taken back", size: memory - 5, behind: pieceSize},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var s Spool
			defer s.Close()
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
			s.Truncate(tt.size)
			write(want[tt.size+tt.behind:])
			want = append(want[:tt.size], want[tt.size+tt.behind:]...)
			got, err := io.ReadAll(io.NewSectionReader(&s, 0, s.size))
			if err != nil || !bytes.Equal(got, want) {
				t.Fatalf("%d bytes, %v; want %d", len(got), err, len(want))
			}
			if n, err := s.ReadAt(make([]byte, 5), s.size-2); n != 2 || !errors.Is(err, io.EOF) {
				t.Errorf("at the end %d bytes, %v", n, err)
			}
			if held := int64(len(s.mem)) * pieceSize; held > s.size+pieceSize {
				t.Errorf("%d bytes of memory for %d", held, s.size)
			}
		})
	}
}

// TestSpoolToFile forgets the content of a file.
func TestSpoolToFile(t *testing.T) {
	var s Spool
	block := bytes.Repeat([]byte{7}, memory/2)
	for range 3 {
		if n, err := s.Write(block); n != len(block) || err != nil {
			t.Fatal(n, err)
		}
	}
	defer s.Close()
	s.Truncate(int64(2 * len(block)))
	s.Write([]byte{8})
	got := make([]byte, 2)
	if s.file == nil || s.size != int64(2*len(block)+1) {
		t.Fatalf("%d bytes, file %v", s.size, s.file)
	}
	if _, err := s.ReadAt(got, int64(2*len(block)-1)); err != nil || got[0] != 7 || got[1] != 8 {
		t.Error(got, err)
	}
}

// TestSkip leaves a hole, which reads as zeros.
func TestSkip(t *testing.T) {
	s := NewSpool(1 << 20)
	defer s.Close()
	s.Write([]byte("before"))
	if err := s.Skip(1 << 40); err != nil {
		t.Fatal(err)
	}
	s.Write([]byte("after"))
	got := make([]byte, 8)
	if n, err := s.ReadAt(got, 1<<40+3); n != 8 || err != nil || string(got) != "\x00\x00\x00after" {
		t.Errorf("%q, %v", got[:n], err)
	}
	if s.Size() != 1<<40+11 {
		t.Errorf("size %d", s.Size())
	}
}

// TestNoDirectory reports a temporary directory that is not there.
func TestNoDirectory(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()+"/absent")
	s := NewSpool(10)
	if _, err := s.Write(make([]byte, 11)); err == nil {
		t.Error("no error")
	}
}

// TestUnpacked: the bound grows with the file's size, and does not overflow.
func TestUnpacked(t *testing.T) {
	for _, tt := range []struct{ packed, most, want int64 }{
		{packed: 128 << 10, want: 288 << 20}, {packed: 0, want: 256 << 20},
		{packed: 128 << 10, most: 5, want: 5}, {packed: math.MaxInt64, want: math.MaxInt64},
		{packed: math.MaxInt64 / 256, want: math.MaxInt64},
	} {
		if got := MaxUnpacked(tt.packed, tt.most); got != tt.want {
			t.Errorf("%d packed, %d allowed: %d, want %d", tt.packed, tt.most, got, tt.want)
		}
	}
}
