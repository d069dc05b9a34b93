package stackmap

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// memleakEntry begins a stack of memleak, memleakReport a report, memleakAddress is an allocation of -a.
// memleakProcess has the traced process.
var (
	memleakEntry   = regexp.MustCompile(`^\s*(\d+) bytes in (\d+) allocations from stack\s*$`)
	memleakReport  = regexp.MustCompile(`^\[\d+:\d+:\d+\] Top \d+ stacks with outstanding allocations:\s*$`)
	memleakAddress = regexp.MustCompile(`^\s*addr = `)
	memleakProcess = regexp.MustCompile(`^(?:Attaching to pid|child created with pid:) (\d+)`)
)

// isMemleak reports whether text has a stack or a report of memleak.
func isMemleak(text []byte) bool {
	for line := range bytes.Lines(text) {
		if memleakEntry.Match(line) || memleakReport.Match(line) {
			return true
		}
	}
	return false
}

// memleakReader makes samples of memleak's text.
type memleakReader struct {
	set     *Set
	reports int
	pid     int32
	samples []Sample // of the current report
	open    bool     // a stack is being read
	lost    bool     // of it only the size is known
	frames  []Frame
}

// readMemleak reads the last report of bcc's memleak: each has all memory that was in use then.
func readMemleak(set *Set, in *Input) error {
	lines := newLineReader(in.Name, in.reader())
	r := memleakReader{set: set, pid: -1}
	set.Counted = true
	set.Events = []Event{{Name: "inuse_space", Unit: "bytes"}}
	for line, whole := range lines.all() {
		if !whole && r.open {
			set.warn(fmt.Errorf("%s: the text breaks off in a line; the stack in it is left out", in.Name))
			r.samples, r.open = r.samples[:len(r.samples)-1], false
			break
		}
		r.line(line)
	}
	r.end()
	set.Reports = r.reports
	for _, sm := range r.samples {
		set.count(sm)
	}
	return lines.finish(set)
}

func (r *memleakReader) line(line []byte) {
	entry := memleakEntry.FindSubmatch(line)
	switch {
	case entry != nil:
		r.end()
		size, err := strconv.ParseUint(string(entry[1]), 10, 64)
		n, err2 := strconv.ParseUint(string(entry[2]), 10, 64)
		if err != nil || err2 != nil || len(r.samples) >= r.set.maxSamples {
			r.set.Skipped++
			return
		}
		r.samples, r.open = append(r.samples, Sample{PID: r.pid, TID: -1, Count: n, Weight: size}), true
	case memleakReport.Match(line):
		r.end()
		r.reports++
		r.samples = r.samples[:0]
	case memleakAddress.Match(line):
	case r.open && len(bytes.TrimSpace(line)) > 0 && (line[0] == ' ' || line[0] == '\t'):
		r.frame(strings.TrimSpace(string(line)))
	default:
		r.end()
		if m := memleakProcess.FindSubmatch(line); m != nil {
			n, _ := strconv.ParseInt(string(m[1]), 10, 32) // 0 is no process
			r.pid, r.set.Labels.PID = int32(n), n > 0
		}
		if len(bytes.TrimSpace(line)) > 0 {
			r.set.Skipped++
		}
	}
}

// Addresses from endOfUser up to kernelHalf|kernelCode are not canonical on any machine.
const endOfUser, kernelCode = 1 << 56, 0x7f << 56

// end ends a stack.
func (r *memleakReader) end() {
	if !r.open {
		return
	}
	for n := len(r.frames); n > 1 && r.frames[n-1].Status == IP && r.frames[n-1].Offset >= endOfUser &&
		r.frames[n-1].Offset < kernelHalf|kernelCode; n = len(r.frames) {
		r.frames = r.frames[:n-1] // frame pointers led nowhere
	}
	p := r.set.add(r.frames)
	if r.lost {
		p = Part{Cause: NotDumped}
	}
	sm := &r.samples[len(r.samples)-1]
	if p.Cause == Present && r.set.isKernel(p.Stack) {
		sm.Kernel = p
	} else {
		sm.User = p
	}
	r.open, r.lost, r.frames = false, false, r.frames[:0]
}

// frame reads "main+0x6d [allocs]", by newer versions with "0x000055…<tab>" in front; and by memleak of
// libbpf-tools "0 [<000055…>] main+0x6d [/srv/allocs]". What it could not name is "[unknown]", "<null sym>" or
// nothing; its address is used, if there is one.
func (r *memleakReader) frame(text string) {
	if text == "stack information lost" {
		r.lost = true
		return
	}
	f := Frame{Status: Named}
	address, rest, known := memleakPC(text)
	var sym Symbol
	if known {
		text, sym.Kernel = rest, address >= kernelHalf
	}
	if i := strings.LastIndexByte(text, '['); i >= 0 && strings.HasSuffix(text, "]") && text != "[unknown]" {
		text, sym.Object = strings.TrimSpace(text[:i]), text[i+1:len(text)-1]
	}
	if sym.Object == "kernel" {
		sym.Kernel, sym.Object = true, ""
	}
	if i := strings.LastIndex(text, "+0x"); i > 0 {
		digits, _, _ := strings.Cut(text[i+3:], " ") // before a file and line
		if offset, err := strconv.ParseUint(digits, 16, 64); err == nil {
			text, f.Offset = text[:i], offset
		}
	}
	if text != "[unknown]" && text != "<null sym>" {
		sym.Name = text
	}
	switch {
	case sym.Name == "" && known:
		f = Frame{Offset: address, Status: IP}
	case sym.Name == "" && sym.Object == "":
		sym.Object = "[unknown]"
		fallthrough
	default:
		f.Ref = r.set.symbol(sym)
	}
	r.frames = append(r.frames, f)
}

// memleakPC cuts the address of a frame off.
func memleakPC(text string) (address uint64, rest string, ok bool) {
	digits, rest, ok := strings.Cut(text, "\t")
	if i := strings.Index(text, "[<"); i > 0 {
		digits, rest, ok = strings.Cut(text[i+2:], ">]")
	}
	digits = strings.TrimPrefix(strings.ReplaceAll(digits, " ", ""), "0x")
	address, err := strconv.ParseUint(digits, 16, 64)
	return address, strings.TrimSpace(rest), ok && err == nil
}
