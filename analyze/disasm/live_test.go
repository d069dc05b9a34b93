package disasm

import (
	"bufio"
	"debug/elf"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"symbolize/ingest/addr"
)

// listed is an instruction as another disassembler has it.
type listed struct {
	at   uint64
	text string
}

// objdump disassembles a section of a file.
func objdump(t *testing.T, file, section string) []listed {
	t.Helper()
	cmd := exec.Command("objdump", "-d", "-w", "--no-show-raw-insn", "-j", section, file)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	return parseObjdump(t, out)
}

func parseObjdump(t *testing.T, r io.Reader) []listed {
	t.Helper()
	var list []listed
	sc := bufio.NewScanner(r)
	for sc.Scan() {
		at, text, ok := strings.Cut(sc.Text(), ":\t")
		if !ok {
			continue
		}
		v, err := strconv.ParseUint(strings.TrimSpace(at), 16, 64)
		if err != nil {
			continue
		}
		list = append(list, listed{v, text})
	}
	if err := sc.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

// zeroRun is how many zeros objdump skips.
const zeroRun = 8

func isZero(b []byte) bool { return !slices.ContainsFunc(b, func(c byte) bool { return c != 0 }) }

// comments match objdump's additions to an instruction: names of targets.
var comments = regexp.MustCompile(`\s*(<[^>]*>|# .*)`)

func plain(s string) string {
	return strings.Join(strings.Fields(comments.ReplaceAllString(s, "")), " ")
}

// TestLiveObjdump: boundaries and texts of whole libraries against objdump. Where
// objdump sees no instruction nothing is compared.
func TestLiveObjdump(t *testing.T) {
	if os.Getenv("SYMBOLIZE_LIVE") == "" {
		t.Skip("needs objdump; run with SYMBOLIZE_LIVE=1")
	}
	if _, err := exec.LookPath("objdump"); err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	for _, file := range []string{"/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2",
		"/usr/bin/perf"} {
		t.Run(file, func(t *testing.T) { compareObjdump(t, file) })
	}
}

func compareObjdump(t *testing.T, file string) {
	f, err := elf.Open(file)
	if err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	defer f.Close()
	sec := f.Section(".text")
	code, err := sec.Data()
	if err != nil {
		t.Fatal(err)
	}
	d, err := New("x86_64", ATT)
	if err != nil {
		t.Fatal(err)
	}
	ours := make(map[uint64]Inst)
	for inst := range d.Decode(code, addr.PC(sec.Addr)) {
		ours[sec.Addr+uint64(inst.Offset)] = inst
	}
	list := objdump(t, file, ".text")
	boundaries, texts := 0, 0
	examples := make(map[string]string)
	count := make(map[string]int)
	note := func(kind string, w listed, got string) {
		op := kind + " " + strings.Fields(w.text)[0]
		count[op]++
		examples[op] = fmt.Sprintf("%x: %q, want %q", w.at, got, plain(w.text))
	}
	for i, w := range list {
		if i+1 == len(list) || strings.Contains(w.text, "(bad)") {
			continue
		}
		end := list[i+1].at
		if i > 0 && list[i-1].at+zeroRun < end && isZero(code[end-sec.Addr-zeroRun:end-sec.Addr]) {
			continue // objdump prints "..." for zeros
		}
		inst, ok := ours[w.at]
		if !ok || w.at+uint64(inst.Len) != end {
			boundaries++
			note("boundary", w, fmt.Sprintf("%s, %d bytes of % x", inst.Text, inst.Len,
				code[w.at-sec.Addr:end-sec.Addr]))
			continue
		}
		if got := plain(inst.Text); got != plain(w.text) {
			texts++
			note("text", w, got)
		}
	}
	t.Logf("%d instructions; %d boundaries and %d texts differ", len(list), boundaries, texts)
	// Another binutils may spell a few otherwise.
	if len(list) < 1000 || boundaries > 0 || texts > len(list)/1000 {
		t.Error("not what objdump prints")
	}
	var ops []string
	for op := range count {
		ops = append(ops, op)
	}
	sort.Slice(ops, func(i, j int) bool { return count[ops[i]] > count[ops[j]] })
	for _, op := range ops[:min(len(ops), 40)] {
		t.Logf("%6d %s: %s", count[op], op, examples[op])
	}
}
