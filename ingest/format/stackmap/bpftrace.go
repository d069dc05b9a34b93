package stackmap

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"symbolize/buildid"
)

// lineKind is the kind of a line of bpftrace's output.
type lineKind uint8

const (
	otherLine    lineKind = iota
	frameLine             // a frame for certain
	addressLine           // hexadecimal digits: an address, where a stack can be
	separateLine          // empty, or the "," between the parts of a key
)

// scanFrame decodes a line that may be a frame.
func scanFrame(s *Set, line []byte) (f Frame, kind lineKind) {
	line = bytes.TrimSpace(line)
	if len(line) == 0 || string(line) == "," {
		return f, separateLine
	}
	digits := hexDigits(line)
	if id := 2 * buildid.KeyLen; digits == id+1 && bytes.HasPrefix(line[id:], []byte("0x")) {
		// bpftrace removes blanks from keys in JSON.
		line, digits = slices.Concat(line[:id], []byte(" "), line[id:]), id
	}
	switch {
	case digits == 2*buildid.KeyLen && len(line) > digits:
		if offset, ok := bytes.CutPrefix(line[digits:], []byte(" 0x")); ok {
			if f, ok = s.buildIDFrame(line[:digits], string(offset)); ok {
				return f, frameLine
			}
		}
		return f, otherLine
	case digits == len(line) && digits <= 16:
		f, _ = addressFrame(string(line))
		return f, addressLine
	case digits >= 8 && digits <= 16 && line[digits] == ' ': // perf mode
		line = line[digits+1:]
		if i := bytes.Index(line, []byte(" (")); i > 0 {
			line = line[:i]
		}
	}
	return symbolFrame(s, line)
}

// symbolFrame decodes "do_mmap+1", followed by "@FILE:LINE" where bpftrace had debug information.
func symbolFrame(s *Set, line []byte) (f Frame, kind lineKind) {
	if i := bytes.IndexByte(line, '@'); i > 0 {
		line = line[:i]
	}
	i := bytes.LastIndexByte(line, '+')
	if i <= 0 || i == len(line)-1 || !isIdentifier(line[:i]) {
		return f, otherLine
	}
	offset, err := strconv.ParseUint(string(line[i+1:]), 0, 64)
	if err != nil {
		return f, otherLine
	}
	sym := Symbol{Name: string(line[:i]), Kernel: true}
	return Frame{Offset: offset, Ref: s.symbol(sym), Status: Named}, frameLine
}

// isIdentifier reports whether text can be the name of a function of the kernel.
func isIdentifier(b []byte) bool {
	for i, c := range b {
		letter := c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c == '.' || c == '$'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return len(b) > 0
}

// isBpftrace reports whether text has a stack: a build ID with an offset, or a key of a map that
// begins with an address.
func isBpftrace(text []byte) bool {
	s := newSet(Bpftrace)
	inKey := false
	for line := range bytes.Lines(text) {
		_, kind := scanFrame(s, line)
		if len(s.IDs) > 0 {
			return true
		}
		if inKey && (kind == frameLine || kind == addressLine) {
			return true
		}
		_, inKey = mapKey(bytes.TrimSpace(line))
	}
	return false
}

// mapKey reports whether a line begins a map's key that continues with a stack: "@[",
// "@name[comm, ". labels are the parts of the key in the line.
func mapKey(line []byte) (labels []byte, ok bool) {
	if len(line) == 0 || line[0] != '@' {
		return nil, false
	}
	i := bytes.IndexByte(line, '[')
	if i < 0 {
		return nil, false
	}
	for _, c := range line[1:i] {
		if c != '_' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			return nil, false
		}
	}
	rest := line[i+1:]
	if len(rest) > 0 && !bytes.HasSuffix(bytes.TrimSpace(rest), []byte(",")) {
		return nil, false
	}
	return rest, true
}

// traceReader makes samples of bpftrace's text.
type traceReader struct {
	set    *Set
	inKey  bool
	parts  [][]Frame // runs of frames of the current sample
	run    []Frame
	sure   bool     // the run is a stack, not only digits
	words  []string // labels of the current key
	before []byte   // the last line that is no frame
	noted  bool     // a value that is no count was reported
	twice  bool     // a key with two user or two kernel stacks was reported
}

// readBpftrace reads the text of a script.
func readBpftrace(set *Set, in *Input) error {
	if bytes.HasPrefix(bytes.TrimLeft(in.head(sniffBytes), " \t\r\n"), []byte("{")) {
		return readBpftraceJSON(set, in)
	}
	lines := newLineReader(in.Name, in.reader())
	t := traceReader{set: set}
	set.Counted = true
	cut := false
	for line, whole := range lines.all() {
		if cut = !whole; cut {
			break // the rest of the line is unknown
		}
		t.line(line)
	}
	switch {
	case t.inKey:
		set.warn(fmt.Errorf("%s: the text breaks off in the key of a map", in.Name))
	case !cut:
		t.printed()
	case t.sure:
		set.warn(fmt.Errorf("%s: the text breaks off in a line; the stack before it is left out",
			in.Name))
	}
	return lines.finish(set)
}

func (t *traceReader) line(line []byte) {
	f, kind := scanFrame(t.set, line)
	switch {
	case kind == frameLine, kind == addressLine && (t.inKey || len(t.run) > 0 || plausible(line)):
		t.run = append(t.run, f)
		t.sure = t.sure || kind == frameLine || t.inKey
		return
	case kind == separateLine:
		t.endRun()
		return
	}
	t.endRun()
	text := bytes.TrimSpace(line)
	if t.inKey {
		if t.key(text) {
			return
		}
		t.set.Skipped++
		t.inKey, t.parts = false, nil // it was no key
	}
	t.printed()
	if labels, ok := mapKey(text); ok {
		t.inKey, t.words = true, appendWords(nil, labels)
		return
	}
	t.before = append(t.before[:0], text...)
	t.set.Skipped++
}

// plausible reports whether digits can be an address at the beginning of a stack, rather than a
// number printed by a script.
func plausible(line []byte) bool {
	line = bytes.TrimSpace(line)
	return len(line) >= 8 && bytes.ContainsAny(line, "abcdef")
}

// endRun ends a run of frames: a part of a stack.
func (t *traceReader) endRun() {
	if len(t.run) > 0 {
		t.parts = append(t.parts, t.run)
	}
	t.run = nil
}

// key processes a line inside a key, or the line that ends it: ", comm, 123]: 9". It returns false
// for other lines.
func (t *traceReader) key(text []byte) bool {
	i := bytes.LastIndex(text, []byte("]:"))
	if i < 0 {
		if !bytes.HasPrefix(text, []byte(",")) && !bytes.HasSuffix(text, []byte(",")) {
			return false
		}
		t.words = appendWords(t.words, text)
		return true
	}
	t.words = appendWords(t.words, text[:i])
	value := string(bytes.TrimSpace(text[i+2:]))
	n, err := strconv.ParseUint(value, 10, 64)
	t.inKey = false
	if err != nil {
		if !t.noted {
			t.set.warn(fmt.Errorf("a map's value is not a count, %q: such stacks count 1", value))
		}
		t.noted = true
		n = 1
	}
	t.sure = true
	words := t.words
	t.words = nil
	t.endRun()
	t.firstOfEach()
	t.flush(n, words)
	return true
}

// firstOfEach drops all but the first user stack and the first kernel stack of a key, so that the
// count is not added twice.
func (t *traceReader) firstOfEach() {
	var have [2]bool
	kept := t.parts[:0]
	for _, run := range t.parts {
		side := 0
		if p := t.set.add(run); t.set.isKernel(p.Stack) {
			side = 1
		}
		if !have[side] {
			have[side] = true
			kept = append(kept, run)
			continue
		}
		if !t.twice {
			t.set.warn(errors.New(
				"keys with several user or kernel stacks: only the first one is used"))
		}
		t.twice = true
	}
	t.parts = kept
}

func appendWords(words []string, text []byte) []string {
	for part := range bytes.SplitSeq(text, []byte(",")) {
		if word := strings.TrimSpace(string(part)); word != "" {
			words = append(words, word)
		}
	}
	return words
}

// printed makes a sample of a stack printed by printf, with labels from the line before it.
func (t *traceReader) printed() {
	stack := t.sure
	t.flush(1, strings.Fields(string(t.before)))
	if stack {
		t.before = t.before[:0]
	}
}

// flush makes a sample of the runs of frames read so far.
func (t *traceReader) flush(count uint64, words []string) {
	t.endRun()
	parts := t.parts
	t.parts = nil
	sure := t.sure
	t.sure = false
	if !sure || count == 0 {
		return
	}
	sm := Sample{PID: -1, TID: -1, Count: count}
	t.labels(&sm, words)
	for _, run := range parts {
		p := t.set.add(run)
		kernel := p.Cause == Present && t.set.isKernel(p.Stack)
		switch {
		case kernel && sm.Kernel.Cause == Absent:
			sm.Kernel = p
		case !kernel && sm.User.Cause == Absent:
			sm.User = p
		default: // several stacks were printed one after another
			t.set.count(sm)
			sm.Kernel, sm.User = Part{}, Part{}
			if kernel {
				sm.Kernel = p
			} else {
				sm.User = p
			}
		}
	}
	if len(parts) == 0 {
		sm.User.Cause = NotTaken // a key without frames
	}
	t.set.count(sm)
}

// labels sets the pid if there is exactly one number among the words, and the comm if there is
// exactly one other word.
func (t *traceReader) labels(sm *Sample, words []string) {
	var names []string
	pid, numbers := int32(-1), 0
	for _, w := range words {
		if n, err := strconv.ParseInt(w, 10, 64); err == nil && processID(n) >= 0 {
			pid = int32(n)
			numbers++
		} else {
			names = append(names, w)
		}
	}
	if numbers == 1 {
		sm.PID = pid
		t.set.Labels.PID = true
	}
	if len(names) == 1 {
		sm.Comm = names[0]
		t.set.Labels.Comm = true
	}
}
