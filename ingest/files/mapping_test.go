package files

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// mapped maps a file of n bytes in a directory of the test, and returns the file's path.
func mapped(t *testing.T, n int) (*Mapping, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	content := make([]byte, n)
	for i := range content {
		content[i] = byte(i % 251)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	m, err := Map(f, int64(n))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close(); f.Close() })
	return m, path
}

func TestMapping(t *testing.T) {
	const size = 10_000
	m, path := mapped(t, size)
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		off    int64
		n, got int
	}{
		{"start", 0, 100, 100},
		{"middle", 4_000, 5_000, 5_000},
		{"over the end", size - 10, 20, 10},
		{"at the end", size, 1, 0},
		{"behind the end", size + 4096, 1, 0},
		{"before the start", -1, 4, 0},
		{"nothing", 5, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var part []byte
			if c.got > 0 {
				part = want[c.off:][:c.got]
			}
			if w := m.Window(c.off, c.n); !bytes.Equal(w, part) {
				t.Errorf("Window has %d bytes, want %d", len(w), c.got)
			}
			b := make([]byte, c.n)
			n, err := m.ReadAt(b, c.off)
			if n != c.got || !bytes.Equal(b[:n], part) || (n < c.n) != errors.Is(err, io.EOF) {
				t.Errorf("ReadAt returned %d, %v, want %d", n, err, c.got)
			}
		})
	}
}

// TestMappingCutOff: a file that becomes shorter is an error, and not the end of the process.
func TestMappingCutOff(t *testing.T) {
	const size = 1 << 20
	m, path := mapped(t, size)
	before := m.Window(0, size)
	if err := os.Truncate(path, 100); err != nil {
		t.Fatal(err)
	}
	if n := len(m.Window(0, size)); n != 100 {
		t.Errorf("Window has %d bytes, want 100", n)
	}
	b := make([]byte, 10)
	if n, err := m.ReadAt(b, 50); n != 10 || err != nil || b[0] != 50 {
		t.Errorf("ReadAt of the rest returned %d, %v", n, err)
	}
	if n, err := m.ReadAt(b, size/2); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("ReadAt of lost bytes returned %d, %v", n, err)
	}
	sum, reached := 0, false
	err := Guard(func() {
		for _, c := range before {
			sum += int(c)
		}
		reached = true
	})
	if reached || !errors.Is(err, ErrCutOff) {
		t.Errorf("Guard returned %v", err)
	}
}

func TestGuardPassesPanics(t *testing.T) {
	defer func() {
		if r := recover(); r != "other" {
			t.Errorf("recovered %v", r)
		}
	}()
	_ = Guard(func() { panic("other") })
}

func TestMapRefuses(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, size := range []int64{0, -1} {
		if m, err := Map(f, size); err == nil {
			t.Errorf("%d bytes were mapped: %v", size, m)
		}
	}
}
