package sampler

import (
	"bufio"
	"os"
	"runtime"
	"strconv"
	"strings"
)

// x86Kernel is where the kernel lies on x86-64: modules and BPF programs come behind it
// (Documentation/arch/x86/x86_64/mm.rst).
var x86Kernel = Range{Start: 0xffffffff80000000, End: 0xffffffffc0000000}

// steadyRange returns the addresses of the kernel itself, at which nothing else can come to lie;
// an empty range where that is not known.
func steadyRange() (r Range) {
	if runtime.GOARCH == "amd64" {
		return x86Kernel
	}
	f, err := os.Open("/proc/kallsyms")
	if err != nil {
		return Range{}
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan() && r.End == 0; {
		switch line := lines.Text(); {
		case strings.HasSuffix(line, " _stext"):
			r.Start = firstWord(line)
		case strings.HasSuffix(line, " _end"):
			r.End = firstWord(line)
		}
	}
	if r.Start == 0 || r.End < r.Start {
		return Range{}
	}
	return r
}

// firstWord returns the hexadecimal number that a line begins with; 0 if there is none.
func firstWord(line string) uint64 {
	word, _, _ := strings.Cut(line, " ")
	n, err := strconv.ParseUint(word, 16, 64)
	if err != nil {
		return 0
	}
	return n
}
