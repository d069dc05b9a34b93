package symlist

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"symbolize/ingest/decode"
)

const kernelList = `0000000000000000 A fixed_percpu_data
0000000000001000 A cpu_debug_store
ffffffff81000000 T _text
ffffffff81000000 T _stext
ffffffff81000030 t do_one_initcall
ffffffff81200000 W arch_weak
ffffffff82000000 D jiffies
ffffffffc0a01000 t ext4_map_blocks	[ext4]
ffffffffc0a02000 T ext4_iget	[ext4]
ffffffffc0201000 t ftrace_trampoline	[__builtin__ftrace]
ffffffffc0202000 t kprobe_insn_page	[__builtin__kprobes]
ffffffffc0300000 t bpf_prog_6deef7357e7b4530_sd_fw_egress	[bpf]
`

func readKernel(text string) (got []string, stats KernelStats, err error) {
	stats, err = ScanKallsyms("kallsyms", strings.NewReader(text), false, func(s KernelSymbol) bool {
		got = append(got, fmt.Sprintf("%x %c %s [%s]", s.Addr, s.Type, s.Name, s.Module))
		return true
	})
	return got, stats, err
}

func TestKallsyms(t *testing.T) {
	want := []string{
		"1000 A cpu_debug_store []", "ffffffff81000000 T _text []", "ffffffff81000000 T _stext []",
		"ffffffff81000030 t do_one_initcall []", "ffffffff81200000 W arch_weak []",
		"ffffffff82000000 D jiffies []", "ffffffffc0a01000 t ext4_map_blocks [ext4]",
		"ffffffffc0a02000 T ext4_iget [ext4]",
	}
	counts := KernelStats{Lines: 12, Symbols: 8, BPF: 1, Trampolines: 2, Zero: 1}
	for _, text := range []string{kernelList, strings.ReplaceAll(kernelList, "\n", "\r\n")} {
		got, stats, err := readKernel(text)
		if err != nil || !slices.Equal(got, want) || stats != counts {
			t.Errorf("got %q, %+v, %v", got, stats, err)
		}
	}
}

func TestIsCode(t *testing.T) {
	var got []byte
	for c := byte('A'); c <= 'z'; c++ {
		if s := (KernelSymbol{Type: c}); s.IsCode() {
			got = append(got, c)
		}
	}
	if string(got) != "TWtw" {
		t.Errorf("code types are %q", got)
	}
	for name, want := range map[string]bool{"f": true, ".List": true, ".L": true, ".L12": false,
		".L0 ": false, "$x": false, "$d": false, "$xrv64i2p1_m2p0": false} {
		if s := (KernelSymbol{Type: 't', Name: name}); s.IsCode() != want {
			t.Errorf("%q is code: %v", name, !want)
		}
	}
}

func TestKallsymsLines(t *testing.T) {
	tests := []struct{ line, want string }{ // want: a symbol, or "bad: REASON"
		{line: "c0de t short", want: "c0de t short []"},
		{line: "FFFF81 T Upper", want: "ffff81 T Upper []"},
		{line: "ffffffff81000000 t name.with.dots.123",
			want: "ffffffff81000000 t name.with.dots.123 []"},
		{line: "ffffffff81000000 t spaced [mod]", want: "ffffffff81000000 t spaced [mod]"},
		{line: "ffffffff81000000 t trailing\t ", want: "ffffffff81000000 t trailing []"},
		{line: "ffffffff81000000 t f\xff\xfe", want: "ffffffff81000000 t f\xff\xfe []"},
		{want: "bad: offset 0x0: no address"},
		{line: "xyz t f", want: "bad: offset 0x0: no address"},
		{line: "11112222333344445 t f", want: "bad: offset 0x0: no address of 1 to 16"},
		{line: "ffffffff81000000", want: "bad: offset 0x10: no type"},
		{line: "ffffffff81000000 t", want: "bad: offset 0x10: no type"},
		{line: "ffffffff81000000 t ", want: "bad: offset 0x10: no type"},
		{line: "ffffffff81000000 tt f", want: "bad: offset 0x10: no type"},
		{line: "ffffffff81000000\tt\tf", want: "bad: offset 0x10: no type"},
		{line: "ffffffff81000000 t \t[mod]", want: "bad: offset 0x13: no name"},
		{line: "ffffffff81000000 t f\tmod", want: "bad: offset 0x14: no [module]"},
		{line: "ffffffff81000000 t f\t[]", want: "bad: offset 0x14: no [module]"},
		{line: "ffffffff81000000 t " + strings.Repeat("x", maxLine),
			want: "bad: offset 0x0: line is longer"},
	}
	for _, tt := range tests {
		// The line after it is read in any case.
		got, stats, err := readKernel(tt.line + "\nffffffff81000040 t next\n")
		if err != nil || len(got) == 0 || got[len(got)-1] != "ffffffff81000040 t next []" {
			t.Errorf("%.40q: %q, %v", tt.line, got, err)
			continue
		}
		reason, bad := strings.CutPrefix(tt.want, "bad: ")
		switch {
		case !bad && (len(got) != 2 || got[0] != tt.want || stats.Bad != 0):
			t.Errorf("%.40q: got %q, want %q", tt.line, got[0], tt.want)
		case bad && (stats.Bad != 1 || len(got) != 1 ||
			!strings.Contains(stats.FirstBad.Error(), reason)):
			t.Errorf("%.40q: got %q, %v, want %q", tt.line, got, stats.FirstBad, reason)
		}
	}
}

func TestReadReportsBadLines(t *testing.T) {
	n := 0
	err := ReadKallsyms("kallsyms", strings.NewReader(kernelList+"rubbish\n\n"),
		func(KernelSymbol) bool { n++; return true })
	if de := (*decode.Error)(nil); !errors.As(err, &de) || n != 8 ||
		!strings.Contains(err.Error(), "2 of 14 lines") {
		t.Errorf("%d symbols, %v", n, err)
	}
	if err := ReadKallsyms("kallsyms", strings.NewReader(kernelList),
		func(KernelSymbol) bool { return true }); err != nil {
		t.Error(err)
	}
}

func TestRestricted(t *testing.T) {
	for _, more := range []string{"", "0000000000000000 t bpf_prog_1_f\t[bpf]\n",
		"0000000000000000 t ftrace_trampoline\t[__builtin__ftrace]\n"} {
		got, stats, err := readKernel("0000000000000000 T _text\n0000000000000000 t f\t[ext4]\n" + more)
		if !errors.Is(err, ErrRestricted) || len(got) != 0 || stats.Zero != stats.Lines {
			t.Errorf("got %q, %+v, %v", got, stats, err)
		}
	}
}

func TestNoKallsyms(t *testing.T) {
	for _, text := range []string{"", "\n", "#!/bin/sh\n", "\x7fELF\x02\x01\x01"} {
		got, _, err := readKernel(text)
		if de := (*decode.Error)(nil); !errors.As(err, &de) || len(got) != 0 {
			t.Errorf("%q: got %q, %v", text, got, err)
		}
	}
	r := io.MultiReader(strings.NewReader(kernelList), iotest.ErrReader(io.ErrClosedPipe))
	n := 0
	stats, err := ScanKallsyms("kallsyms", r, false, func(KernelSymbol) bool { n++; return true })
	if !errors.Is(err, io.ErrClosedPipe) || n != 8 || stats.Symbols != 8 {
		t.Errorf("a list that breaks off: %d symbols, %v", n, err)
	}
}

func TestKallsymsStop(t *testing.T) {
	n := 0
	if err := ReadKallsyms("kallsyms", strings.NewReader(kernelList),
		func(KernelSymbol) bool { n++; return n < 3 }); err != nil || n != 3 {
		t.Errorf("%d visits, %v", n, err)
	}
}

// TestKallsymsTruncated cuts the list at every length: all complete lines are visited.
func TestKallsymsTruncated(t *testing.T) {
	all, _, _ := readKernel(kernelList)
	for n := range kernelList {
		got, stats, err := readKernel(kernelList[:n])
		whole := n == 0 || kernelList[n-1] == '\n'
		if len(got) == 0 && stats.Zero == 0 && err == nil || whole != (stats.Bad == 0) {
			t.Errorf("cut at %d: %q, %+v, %v", n, got, stats, err)
		}
		if len(got) > len(all) || !slices.Equal(got, all[:len(got)]) {
			t.Errorf("cut at %d: %q", n, got)
		}
	}
}

// TestLiveHost reads this machine's list, if it may.
func TestLiveHost(t *testing.T) {
	if os.Getenv("SYMBOLIZE_LIVE") == "" {
		t.Skip("SKIPPED: SYMBOLIZE_LIVE is not set: reads the list of the running kernel")
	}
	f, err := os.Open("/proc/kallsyms")
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	stext := false
	stats, err := ScanKallsyms("/proc/kallsyms", f, false, func(s KernelSymbol) bool {
		stext = stext || s.Name == "_stext" && s.Module == "" && s.IsCode()
		return true
	})
	if errors.Is(err, ErrRestricted) {
		t.Skip(err)
	}
	if err != nil || stats.Bad > 0 || stats.Symbols < 1000 || !stext {
		t.Errorf("%+v, _stext %v, %v", stats, stext, err)
	}
}

func FuzzKallsyms(f *testing.F) {
	f.Add([]byte(kernelList))
	f.Add([]byte("0 t f\n"))
	f.Add([]byte("1 t f\t[m]"))
	f.Fuzz(func(t *testing.T, b []byte) {
		n := uint64(0)
		stats, err := ScanKallsyms("fuzz", bytes.NewReader(b), false, func(s KernelSymbol) bool {
			if n++; s.Addr == 0 || s.Name == "" || strings.ContainsAny(s.Name, "\t\n ") ||
				s.Module == "bpf" {
				t.Errorf("bad symbol %+v", s)
			}
			return true
		})
		left := stats.Zero + stats.BPF + stats.Trampolines + stats.Bad
		if stats.Symbols != n || stats.Lines != n+left || n == 0 && left == 0 && err == nil {
			t.Errorf("%d visits, %+v, %v", n, stats, err)
		}
	})
}

func BenchmarkKallsyms(b *testing.B) {
	var text bytes.Buffer
	for i := range 100_000 {
		fmt.Fprintf(&text, "%016x t function_number_%d", 0xffffffff81000000+uint64(i)*64, i)
		if i > 70_000 {
			fmt.Fprintf(&text, "\t[module_%d]", i/1000)
		}
		text.WriteByte('\n')
	}
	b.SetBytes(int64(text.Len()))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ScanKallsyms("bench", bytes.NewReader(text.Bytes()), false,
			func(KernelSymbol) bool { return true }); err != nil {
			b.Fatal(err)
		}
	}
}
