package stackmap

import (
	"bytes"
	"errors"
	"fmt"
	"math"
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

// scanFrame decodes a line that is a frame.
func scanFrame(s *Set, line []byte) (f Frame, kind lineKind) {
	line = bytes.TrimSpace(line)
	if len(line) == 0 || string(line) == "," {
		return f, separateLine
	}
	digits := 0
	for digits < len(line) {
		if _, ok := hexDigit(line[digits]); !ok {
			break
		}
		digits++
	}
	switch {
	case digits == 2*buildid.KeyLen && len(line) > digits:
		return buildIDFrame(s, line[:digits], line[digits:])
	case digits == len(line) && digits <= 16:
		v, err := strconv.ParseUint(string(line), 16, 64)
		if err != nil {
			return f, otherLine
		}
		return Frame{Offset: v, Status: IP}, addressLine
	case digits >= 8 && digits <= 16 && line[digits] == ' ': // perf mode
		line = line[digits+1:]
		if i := bytes.Index(line, []byte(" (")); i > 0 {
			line = line[:i]
		}
	}
	return symbolFrame(s, line)
}

// buildIDFrame decodes " 0xOFFSET" behind a build ID of 40 digits.
func buildIDFrame(s *Set, id, rest []byte) (f Frame, kind lineKind) {
	hex, ok := bytes.CutPrefix(rest, []byte(" 0x"))
	if !ok {
		return f, otherLine
	}
	offset, err := strconv.ParseUint(string(hex), 16, 64)
	if err != nil {
		return f, otherLine
	}
	return validFrame(s, id, offset)
}

// validFrame makes a frame of a build ID in hexadecimal, padded to 20 bytes.
func validFrame(s *Set, hex []byte, offset uint64) (f Frame, kind lineKind) {
	var raw [buildid.KeyLen]byte
	if len(hex)%2 != 0 || len(hex) == 0 || len(hex) > 2*len(raw) {
		return f, otherLine
	}
	for i := range len(hex) / 2 {
		hi, ok := hexDigit(hex[2*i])
		lo, ok2 := hexDigit(hex[2*i+1])
		if !ok || !ok2 {
			return f, otherLine
		}
		raw[i] = hi<<4 | lo
	}
	if raw == ([buildid.KeyLen]byte{}) {
		return Frame{Offset: offset, Status: IP}, frameLine
	}
	return s.valid(raw, offset), frameLine
}

// symbolFrame decodes "do_mmap+1", with "@FILE:LINE" behind it where bpftrace had debug
// information.
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

// isBpftrace looks for a stack: a build ID with an offset, or a key of a map that
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

// mapKey reports whether a line begins a map's key in which a stack follows: "@[",
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
	parts  [][]Frame // of the present sample: runs of frames
	run    []Frame
	sure   bool     // the run is a stack: not only digits
	words  []string // labels of the present key
	before []byte   // the last line that is no frame
	noted  bool     // that a value is no count
	twice  bool     // that a key has two stacks of a side
}

// readBpftrace reads the text of a script.
func readBpftrace(set *Set, in *Input) error {
	lines := newLineReader(in.Name, in.reader())
	t := traceReader{set: set}
	set.Counted = true
	cut := false
	for {
		line, ended, ok := lines.next()
		if !ok {
			break
		}
		if cut = !ended; cut {
			break // who knows how the line goes on
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
	set.warnLong(in.Name, lines.skipped)
	return lines.damage()
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
		t.inKey, t.parts = false, nil // no key after all
	}
	t.printed()
	if labels, ok := mapKey(text); ok {
		t.inKey, t.words = true, appendWords(nil, labels)
		return
	}
	t.before = append(t.before[:0], text...)
	t.set.Skipped++
}

// plausible reports whether digits alone can be an address at the beginning of a stack, and no
// number that a script printed.
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

// key takes a line inside a key, or that ends it: ", comm, 123]: 9". It is false for a
// line that is neither.
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
			t.set.warn(fmt.Errorf("a map's value is no count, %q: such stacks count 1", value))
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

// firstOfEach leaves of several stacks in a key the first of each side, so that the count
// is not counted twice.
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
				"keys with more than one stack of a side: the first one is taken"))
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

// printed makes a sample of a stack that printf printed, with the line before it for
// labels.
func (t *traceReader) printed() {
	stack := t.sure
	t.flush(1, strings.Fields(string(t.before)))
	if stack {
		t.before = t.before[:0]
	}
}

// flush makes a sample of the runs of frames that have come.
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
		default: // the next of several that were printed one behind the other
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

// labels takes the one number among words for the pid and the one other for the comm.
func (t *traceReader) labels(sm *Sample, words []string) {
	var numbers, names []string
	for _, w := range words {
		if n, err := strconv.ParseInt(w, 10, 64); err == nil && n >= 0 && n <= math.MaxInt32 {
			numbers = append(numbers, w)
		} else {
			names = append(names, w)
		}
	}
	if len(numbers) == 1 {
		n, _ := strconv.ParseInt(numbers[0], 10, 32) // was checked above
		sm.PID = int32(n)
		t.set.Labels.PID = true
	}
	if len(names) == 1 {
		sm.Comm = names[0]
		t.set.Labels.Comm = true
	}
}
