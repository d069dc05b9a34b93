package procmaps

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestParseCode(t *testing.T) {
	const line = "55d0c0001000-55d0c0003000 r-xp 00001000 08:01 1234                       /bin/a b (deleted)"
	want := Mapping{0x55d0c0001000, 0x55d0c0003000, 0x1000, File{8, 1, 1234, "/bin/a b (deleted)"}}
	for _, text := range []string{line, line + "\n"} {
		if m, ok := ParseCode(text); !ok || m != want {
			t.Errorf("%q: %+v, %v", text, m, ok)
		}
	}
	for text, want := range map[string]string{
		"7f00-7f10 r-xp 00000000 00:00 0                          [vdso]": "[vdso]",
		"7f00-7f10 rwxp 00000000 00:00 0 ":                                "",
		"7f00-7f10 --xp 00000000 00:00 0":                                 "",
	} {
		if m, ok := ParseCode(text); !ok || m.File != (File{Path: want}) {
			t.Errorf("%q: %+v, %v", text, m, ok)
		}
	}
	for _, text := range []string{"", "\n", "x", "7f00-7f10 r--p 0 08:01 7 /a", "7f00-7f10 r-",
		"7f00 r-xp 0 08:01 7 /a", "7f10-7f00 r-xp 0 08:01 7 /a", "g-h r-xp 0 08:01 7 /a",
		"0-1 r-xp z 08:01 7 /a", "0-10000000000000000 r-xp 0 08:01 7 /a", "0-1 r-xp 0 08:01",
		"1-2 r-xp 0 0802 1 /a", "1-2 r-xp 0 08:02 inode /a"} {
		if m, ok := ParseCode(text); ok {
			t.Errorf("%q is %+v", text, m)
		}
	}
	for cut := range len(line) - len("/bin/a b (deleted)") { // up to the path, which may be any
		if m, ok := ParseCode(line[:cut]); ok && (m.Start != want.Start || m.Offset != want.Offset) {
			t.Errorf("%q is %+v", line[:cut], m)
		}
	}
}

func TestLine(t *testing.T) {
	for _, path := range []string{"", "[vdso]", "/bin/a b (deleted)", "/a\n1000-2000 r-xp 0 08:01 7 /b"} {
		m := Mapping{0x1000, 0x7fff00003000, 0x2000, File{8, 0x123, 1 << 40, path}}
		line := m.Line()
		m.File.Path = strings.ReplaceAll(path, "\n", `\012`)
		if got, ok := ParseCode(line); !ok || got != m || strings.Count(line, "\n") != 1 {
			t.Errorf("%q: %+v, %v", line, got, ok)
		}
	}
}

func TestInVsyscall(t *testing.T) {
	for pc, want := range map[uint64]bool{Vsyscall: true, Vsyscall + 4095: true, Vsyscall + 4096: false,
		Vsyscall - 1: false, 0: false, ^uint64(0): false} {
		if InVsyscall(pc) != want {
			t.Errorf("%#x: %v", pc, !want)
		}
	}
}

func FuzzParseCode(f *testing.F) {
	f.Add("55d0c0001000-55d0c0003000 r-xp 00001000 08:01 1234  /bin/a b")
	f.Add("7fff0-7fff1 r-xp 00000000 00:00 0 [vdso]\n")
	f.Fuzz(func(t *testing.T, line string) {
		if m, ok := ParseCode(line); ok && m.Start >= m.End {
			t.Errorf("%q: %+v", line, m)
		}
	})
}

func TestInnerPID(t *testing.T) {
	for status, want := range map[string]int32{"Name:\tx\nNSpid:\t40\t3\n": 3, "Name:\tx\n": 40,
		"\nNSpid:\t\n": 40, "\nNSpid:\tx\n": 40} {
		if got := InnerPID(status, 40); got != want {
			t.Errorf("%q: %d, want %d", status, got, want)
		}
	}
}

func TestCode(t *testing.T) {
	const text = "00400000-00401000 r--p 00000000 08:01 7 /srv/app/bin/a\n" +
		"00401000-00402000 r-xp 00001000 08:01 7 /srv/app/bin/a\n" +
		"rubbish\n" +
		"7ffd0000-7ffd2000 r-xp 00000000 00:00 0 [vdso]" // cut off at the newline
	var got []string
	for m, line := range Code([]byte(text)) {
		got = append(got, fmt.Sprintf("%#x %s %q", m.Start, m.File.Path, line[len(line)-5:]))
	}
	want := []string{`0x401000 /srv/app/bin/a "in/a\n"`, `0x7ffd0000 [vdso] "vdso]"`}
	if !slices.Equal(got, want) {
		t.Errorf("mappings %q, want %q", got, want)
	}
	for m := range Code([]byte(text)) {
		if m.Start != 0x401000 {
			t.Errorf("went on to %#x after a break", m.Start)
		}
		break
	}
}

// TestFileAt finds mappings without code, too, by their first address.
func TestFileAt(t *testing.T) {
	const text = "1000-2000 r--p 00000000 00:28 257 /b/a\n" +
		"2000-3000 r-xp 00001000 00:28 257 /b/a\n3000-4000 rw-p 00000000 00:00 0\n"
	for at, want := range map[uint64]bool{0x1000: true, 0x1800: false, 0x2000: true, 0x3000: false, 0x4000: false} {
		file, ok := FileAt([]byte(text), at)
		if ok != want || ok && file != (File{0, 0x28, 257, "/b/a"}) {
			t.Errorf("%#x: %+v, %v", at, file, ok)
		}
	}
}
