package flow

import (
	"bufio"
	"encoding/binary"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// objdumpLine is an instruction as objdump prints it: its word, name and operands.
var objdumpLine = regexp.MustCompile(`^ +[0-9a-f]+:\t([0-9a-f]{8}) +\t(\S+)\t?([^/]*)`)

// TestObjdumpARM64 compares what instructions of C libraries write, and their operands in memory, with what
// objdump prints of them.
func TestObjdumpARM64(t *testing.T) {
	objdump, err := exec.LookPath("aarch64-linux-gnu-objdump")
	if os.Getenv("SYMBOLIZE_LIVE") == "" || err != nil {
		t.Skip("SYMBOLIZE_LIVE is not set, or no aarch64-linux-gnu-objdump")
	}
	n, failed := 0, make(map[string]bool)
	for _, path := range []string{"libc.so.6", "libm.so.6", "libgcc_s.so.1", "libstdc++.so.6"} {
		path = "/usr/aarch64-linux-gnu/lib/" + path
		if _, err := os.Stat(path); err != nil {
			t.Logf("SKIP: no %s", path)
			continue
		}
		cmd := exec.CommandContext(t.Context(), objdump, "-d", path)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for lines := bufio.NewScanner(out); lines.Scan(); {
			m := objdumpLine.FindStringSubmatch(lines.Text())
			if m == nil || strings.HasPrefix(m[2], ".") {
				continue
			}
			n++
			w, _ := strconv.ParseUint(m[1], 16, 32)
			o := printed{name: m[2], args: splitOperands(m[3])}
			x, ok := decodeARM64(binary.LittleEndian.AppendUint32(nil, uint32(w)), 0)
			if fault := o.compare(&x); (fault != "" || !ok) && !failed[o.name] {
				failed[o.name] = true
				t.Errorf("%s %s %s: %s: %s", m[1], m[2], m[3], fault, x.String())
			}
		}
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	if n < 100_000 {
		t.Skipf("SKIP: %d instructions", n)
	}
	t.Logf("%d instructions", n)
}

// splitOperands splits at the commas outside of brackets.
func splitOperands(text string) (list []string) {
	depth, from := 0, 0
	text = strings.TrimSpace(text)
	for i, c := range text {
		switch {
		case strings.ContainsRune("[{", c):
			depth++
		case strings.ContainsRune("]}", c):
			depth--
		case c == ',' && depth == 0:
			list = append(list, strings.TrimSpace(text[from:i]))
			from = i + 1
		}
	}
	if text != "" {
		list = append(list, strings.TrimSpace(text[from:]))
	}
	return list
}

// printed is an instruction as objdump prints it.
type printed struct {
	name string
	args []string
}

// Names of instructions with a first operand that is not the result.
var (
	withoutResult = regexp.MustCompile(`^(st|cmp|cmn|tst|cb|tb|b$|b\.|bl|br|ret|ccm|prfm|msr|fc?cmp|dc$|ic$|hint|svc|nop|udf|brk|` +
		`dmb|dsb|isb|sys$|tlbi|at$)`)
	secondResult = regexp.MustCompile(`^(ld|swp)(add|set|clr|eor|[su]max|[su]min|a?l?[bh]?$)`)
	twoResults   = regexp.MustCompile(`^ld(a?x|n)?p`)
	status       = regexp.MustCompile(`^stl?x[rp]`)
	modifies     = regexp.MustCompile(`^(cas|swp|ld(add|set|clr|eor|[su]max|[su]min))`)
	signedLoad   = regexp.MustCompile(`^ld(u|t|p|a)*r?s([bhw])$`)
)

// register is a register by its name, noReg for zero, of vectors, and of no register.
func register(s string) reg {
	if s == "sp" {
		return armSP
	}
	if n, err := strconv.Atoi(strings.TrimLeft(s, "xw")); err == nil && (s[0] == 'x' || s[0] == 'w') {
		return reg(n)
	}
	return noReg
}

// immediateOf is an operand like #16.
func immediateOf(s string) (n int64) {
	if text, ok := strings.CutPrefix(s, "#"); ok {
		n, _ = strconv.ParseInt(text, 0, 64)
	}
	return n
}

// compare returns how the effects differ; "" if they do not.
func (o *printed) compare(x *insn) string {
	at := slices.IndexFunc(o.args, func(s string) bool { return strings.HasPrefix(s, "[") })
	var want insn
	want.mem.base, want.mem.index = noReg, noReg
	if at >= 0 {
		o.operand(at, &want)
	}
	if want.update != 0 {
		want.kill |= want.mem.base.bit()
	} else if at >= 0 && at+1 < len(o.args) && register(o.args[at+1]) != noReg {
		want.kill |= want.mem.base.bit() // it is added
	}
	results := o.args[:min(1, len(o.args))]
	switch {
	case withoutResult.MatchString(o.name) && !status.MatchString(o.name):
		results = nil
	case secondResult.MatchString(o.name) && len(o.args) > 2:
		results = o.args[1:2]
	case twoResults.MatchString(o.name):
		results = o.args[:2]
	}
	for _, r := range results {
		want.kill |= register(r).bit()
	}
	m, v := &x.mem, &want.mem
	switch changed := x.changed(); {
	case want.kill&^changed != 0, want.kill != changed && x.kill == 0:
		return "registers " + strconv.FormatUint(uint64(want.kill), 16)
	case x.vague, o.name == "prfm", o.name == "prfum":
	case at < 0 && x.access != 0 && !x.mem.absolute:
		return "no operand in memory"
	case at >= 0 && (x.access == 0 || m.base != v.base || m.index != v.index || m.disp != v.disp ||
		m.part != v.part || v.index != noReg && m.scale != v.scale || x.update != want.update):
		return "another operand in memory"
	case at >= 0 && x.writes != (strings.HasPrefix(o.name, "st") || modifies.MatchString(o.name)):
		return "a write, or none"
	case at >= 0 && o.size(x.pair) != 0 && o.size(x.pair) != x.access:
		return "another size"
	}
	return ""
}

// operand reads an operand in memory.
func (o *printed) operand(at int, x *insn) {
	text := o.args[at]
	parts := strings.Split(strings.Trim(text, "[]!"), ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	m := &x.mem
	m.base = register(parts[0])
	if len(parts) > 1 {
		m.disp, m.index = immediateOf(parts[1]), register(parts[1])
	}
	if m.index != noReg {
		m.scale, m.part = 1, parts[1][0] == 'w'
		if _, shift, ok := strings.Cut(parts[len(parts)-1], " #"); ok {
			n, _ := strconv.Atoi(shift)
			m.scale = 1 << n
		}
	}
	switch {
	case strings.HasSuffix(text, "!"):
		x.update = m.disp
	case at+1 < len(o.args):
		x.update = immediateOf(o.args[at+1])
	}
}

// size is how many bytes are accessed, by the first register and the name; 0 for structures of vectors.
func (o *printed) size(pair bool) uint8 {
	r := o.args[0]
	if status.MatchString(o.name) {
		r = o.args[1]
	}
	n := map[byte]uint8{'b': 1, 'h': 2, 's': 4, 'w': 4, 'd': 8, 'x': 8, 'q': 16}[r[0]]
	if s := signedLoad.FindStringSubmatch(o.name); s != nil || r[0] == 'w' {
		switch o.name[len(o.name)-1] {
		case 'b':
			n = 1
		case 'h':
			n = 2
		case 'w':
			n = 4
		}
	}
	if pair {
		n *= 2
	}
	return n
}
