package symlist

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"symbolize/ingest/addr"
)

// perfText prints the ranges of a map, a line each.
func perfText(m *PerfMap) string {
	var b strings.Builder
	for _, s := range m.Symbols {
		fmt.Fprintf(&b, "%x-%x %s+%d", s.Start, s.End, s.Name, s.Start-s.Function)
		if s.Reused {
			b.WriteString(" reused")
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func TestPerfMap(t *testing.T) {
	for _, c := range []struct {
		name, in, want string
		bad            uint64
		firstBad       string
	}{
		{name: "names with spaces", in: "7f00 10 LazyCompile:*f a b.js:1\n0x8000 0x1 g\r\n",
			want: "7f00-7f10 LazyCompile:*f a b.js:1+0\n8000-8001 g+0\n"},
		{name: "a later line replaces", in: "100 10 a\n100 10 b\n", want: "100-110 b+0 reused\n"},
		{name: "the same line twice", in: "100 10 a\n100 10 a\n", want: "100-110 a+0\n"},
		{name: "a later line in the middle", in: "100 30 a\n110 10 b\n",
			want: "100-110 a+0\n110-120 b+0 reused\n120-130 a+32\n"},
		{name: "an earlier line in the middle", in: "110 10 b\n100 30 a\n",
			want: "100-110 a+0\n110-120 a+16 reused\n120-130 a+32\n"},
		{name: "of three the last", in: "100 10 a\n108 10 b\n104 8 c\n",
			want: "100-104 a+0\n104-10c c+0 reused\n10c-110 b+4 reused\n110-118 b+8\n"},
		{name: "size 0", in: "100 0 a\n", want: "100-101 a+0\n"},
		{name: "the last byte of the address space", in: "fffffffffffffff0 f a\nfffffffffffffff0 11 b\n",
			want: "fffffffffffffff0-ffffffffffffffff a+0\n", bad: 1, firstBad: "address space"},
		{name: "other lines", in: "hello\n100\n100 10\n100 10 \n1ffffffffffffffff 1 a\n200 1 ok\n",
			want: "200-201 ok+0\n", bad: 5, firstBad: "m: offset 0x0: no start address"},
		{name: "cut off", in: "100 10 a\n200 10 b", want: "100-110 a+0\n", bad: 1,
			firstBad: "offset 0x9: the file breaks off"},
		{name: "a long line", in: "100 10 " + strings.Repeat("x", maxLine) + "\n200 10 b\n",
			want: "200-210 b+0\n", bad: 1, firstBad: "longer than"},
		{name: "empty"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := ReadPerfMap("m", iotest.HalfReader(strings.NewReader(c.in)))
			if err != nil {
				t.Fatal(err)
			}
			if got := perfText(m); got != c.want {
				t.Errorf("got\n%swant\n%s", got, c.want)
			}
			if m.Bad != c.bad || c.bad > 0 && !strings.Contains(m.FirstBad.Error(), c.firstBad) {
				t.Errorf("%d bad, the first: %v", m.Bad, m.FirstBad)
			}
		})
	}
}

// TestPerfMapError: lines before an error are kept.
func TestPerfMapError(t *testing.T) {
	broken := errors.New("broken")
	m, err := ReadPerfMap("m", io.MultiReader(strings.NewReader("100 10 a\n"), iotest.ErrReader(broken)))
	if !errors.Is(err, broken) || perfText(m) != "100-110 a+0\n" {
		t.Errorf("%v, %s", err, perfText(m))
	}
}

func TestPerfMapFind(t *testing.T) {
	m, _ := ReadPerfMap("m", strings.NewReader("100 10 a\n200 10 b\n"))
	for at, want := range map[addr.Addr]string{0xff: "", 0x100: "a", 0x10f: "a", 0x110: "", 0x20f: "b"} {
		got := ""
		if s := m.Find(at); s != nil {
			got = s.Name
		}
		if got != want {
			t.Errorf("%#x: %q, want %q", at, got, want)
		}
	}
}

func TestPerfMapPID(t *testing.T) {
	for name, want := range map[string]int32{"/tmp/perf-77.map": 77, "perf-1.map": 1, "perf-077.map": 0,
		"perf--1.map": 0, "perf-77.map.gz": 0, "perf-9999999999.map": 0} {
		if got, ok := PerfMapPID(name); ok != (want > 0) || ok && got != want {
			t.Errorf("%s: %d, %v", name, got, ok)
		}
	}
	if pid, ok := PerfMapPID(PerfMapName(77)); pid != 77 || !ok {
		t.Error("PerfMapName and PerfMapPID differ")
	}
}

func TestIsPerfMap(t *testing.T) {
	for in, want := range map[string]bool{"7f00 10 f\n": true, "7f00 10 a name that is cut": true,
		"": false, "7f00 10\n": false, "MZ\x00": false, "10 20 \x01\n": false} {
		if got := IsPerfMap([]byte(in)); got != want {
			t.Errorf("%q: %v", in, got)
		}
	}
}

// checkPerfMap holds the invariants of a PerfMap: ranges ascend, are not empty and do not overlap.
func checkPerfMap(t *testing.T, m *PerfMap) {
	t.Helper()
	var last addr.Addr
	for _, s := range m.Symbols {
		if s.Start < last || s.End <= s.Start || s.Function > s.Start || s.Name == "" {
			t.Fatalf("range %+v after %#x", s, last)
		}
		last = s.End
	}
}

func FuzzPerfMap(f *testing.F) {
	f.Add([]byte("100 10 a\n108 10 b\n104 8 c\n"))
	f.Add([]byte("0x7f00 0x10 LazyCompile:*f a b.js:1\n7f00 0 g\r\nffffffffffffffff 1 z\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := ReadPerfMap("m", strings.NewReader(string(b)))
		if err != nil {
			t.Fatal(err)
		}
		checkPerfMap(t, m)
	})
}

// TestPerfMapTruncated: of each part of a file the whole lines are read.
func TestPerfMapTruncated(t *testing.T) {
	const whole = "100 10 a\n108 10 b\n0x104 8 c d\n"
	for n := range len(whole) {
		m, err := ReadPerfMap("m", strings.NewReader(whole[:n]))
		if err != nil {
			t.Fatal(err)
		}
		checkPerfMap(t, m)
		if lines := uint64(strings.Count(whole[:n], "\n")); m.Lines-m.Bad != lines {
			t.Errorf("%d bytes: %d lines of %d", n, m.Lines-m.Bad, lines)
		}
	}
}

func BenchmarkPerfMap(b *testing.B) {
	var in strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&in, "%x 40 LazyCompile:*function%d /srv/app.js:%d\n", 0x7f0000000000+i%90_000*64, i, i)
	}
	b.SetBytes(int64(in.Len()))
	for b.Loop() {
		if _, err := ReadPerfMap("m", strings.NewReader(in.String())); err != nil {
			b.Fatal(err)
		}
	}
}
