package filter

import (
	"bytes"
	"path"

	"symbolize/buildid"
	"symbolize/ingest"
)

// Bounds of pasted text, in bytes. Longer names are not recognized.
const (
	maxFrame    = 4096 // of a frame's line, with the parameters of functions
	maxFileName = 255  // NAME_MAX
)

// modules are the build IDs that systemd-coredump and Breakpad list before stacks, by the last element
// of the module's path; zero for modules listed with several.
type modules struct {
	ids   map[string]buildid.ID
	parts map[string]string // Breakpad's: the beginnings of build IDs, see debugID
	used  bool              // a frame followed: the next list is of another process
}

// endModules forgets the modules of a process at the report of another one.
func (s *scanner) endModules() {
	if len(s.modules.ids) > 0 && bytes.Contains(s.text, []byte(" dumped core")) {
		s.modules = modules{}
	}
}

// moduleLine reads "Module NAME with build-id ID", and "Found module NAME with build-id: ID"
// of systemd before 250, where "build-id" is at i.
func (s *scanner) moduleLine(i int) {
	const with, head = " with ", "odule "
	line := s.text[s.floor:i]
	if !bytes.HasSuffix(line, []byte(with)) {
		return
	}
	line = line[max(0, len(line)-maxFrame) : len(line)-len(with)]
	from := bytes.Index(line, []byte(head))
	if from < 0 {
		return
	}
	name := path.Base(string(line[from+len(head):]))
	digits := bytes.TrimLeft(s.text[i+len("build-id"):], ": ")
	n := hexLen(digits)
	if n < minIDDigits || n > maxIDDigits || n%2 != 0 {
		return
	}
	if s.modules.used || s.modules.ids == nil {
		s.modules = modules{ids: make(map[string]buildid.ID)}
	}
	id := parseID(digits[:n])
	if known, ok := s.modules.ids[name]; ok && known != id {
		id = buildid.ID{}
	} else if !ok && len(s.modules.ids) >= maxMarkup {
		return
	}
	s.modules.ids[name] = id
}

// coredump reads "#N 0xADDR SYM (NAME + 0xOFF)" of systemd-coredump, with the plus at i. The offset
// counts from the start of the module (elf-util.c in systemd: the address less the start by
// dwfl_module_info); frame 0 is exact, and no address was moved back.
func (s *scanner) coredump(i int) {
	offset, end, ok := s.prefixed(i + 2)
	if !ok || i-s.floor < 2 || s.text[i-1] != ' ' || end == len(s.text) || s.text[end] != ')' {
		return
	}
	number, ok := s.frameNumber()
	open := bytes.LastIndex(s.text[max(s.floor, i-maxFrame):i], []byte(" ("))
	if !ok || open < 0 {
		return
	}
	open += max(s.floor, i-maxFrame) + 2
	p := place{start: open - 1, end: end + 1, form: formModule, keep: true, exact: number == 0,
		file: s.text[open : i-1], offset: offset}
	if len(p.file) == 0 {
		return
	}
	id, listed := s.modules.ids[path.Base(string(p.file))]
	if p.object = id; listed && id.IsZero() {
		p.why = ingest.Ambiguous
	}
	s.modules.used = true
	s.frame()
	s.add(p, p.end)
}

// frameNumber reads "#N " at the start of a line's frame: of the line, or after the prefix of a
// log.
func (s *scanner) frameNumber() (n int, ok bool) {
	if s.frameNo < 0 {
		s.frameNo = 0
		head := s.text[:min(len(s.text), maxFrame)]
		if at := bytes.IndexByte(head, '#'); at >= 0 {
			if n, end, ok := decimalAt(head, at+1); ok && end < len(head) && head[end] == ' ' &&
				(at == 0 || head[at-1] == ' ' || head[at-1] == '\t') {
				s.frameNo, s.frameAt = n+1, end
			}
		}
	}
	return s.frameNo - 1, s.frameNo > 0
}

// decimalAt reads the decimal number of a frame.
func decimalAt(b []byte, i int) (n, end int, ok bool) {
	const most = 6 // digits
	for end = i; end < len(b) && b[end] >= '0' && b[end] <= '9' && end-i < most; end++ {
		n = 10*n + int(b[end]-'0')
	}
	return n, end, end > i
}

// numberSign reads "#NN pc ADDR  PATH (SYM+N) (BuildId: ID)" of Android and at gdb's
// "#N  0xADDR in ?? () from PATH", with the # at i.
func (s *scanner) numberSign(i int) {
	if i > 0 && s.text[i-1] != ' ' && s.text[i-1] != '\t' {
		return
	}
	line := bytes.TrimRight(s.text[i:min(len(s.text), i+maxFrame)], "\r\n")
	number, at, ok := decimalAt(line, 1)
	if !ok {
		return
	}
	rest := bytes.TrimLeft(line[at:], " ")
	from := i + len(line) - len(rest)
	switch {
	case len(rest) == len(line)-at: // no blank
	case bytes.HasPrefix(rest, []byte("pc ")):
		s.android(i, from+len("pc "), i+len(line))
	case bytes.HasPrefix(rest, []byte("<signal handler called>")):
		s.process.signalFrame = number + 1
	case bytes.HasPrefix(rest, []byte("0x")):
		s.gdb(number, from, i+len(line))
	}
}

// android reads a frame of Android's libunwindstack: an ELF address that was moved back. Its
// predecessor without build IDs may not have moved it.
func (s *scanner) android(start, i, end int) {
	offset, last, ok := s.number(i)
	if n := last - i; !ok || n != 8 && n != 16 || last == end || s.text[last] != ' ' {
		return
	}
	const head = "(BuildId: "
	rest := s.text[last:end]
	p := place{start: start, end: last, form: formAddress, keep: true, exact: true,
		offset: offset, why: ingest.NoBuildID}
	p.file = bytes.TrimLeft(rest, " ")
	if cut := bytes.IndexByte(p.file, ' '); cut >= 0 {
		p.file = p.file[:cut]
	}
	if at := bytes.Index(rest, []byte(head)); at >= 0 {
		at += len(head)
		n := hexLen(rest[at:])
		if n >= 2 && n <= maxIDDigits && n%2 == 0 && at+n < len(rest) && rest[at+n] == ')' {
			p.end, p.id, p.why, p.file = last+at+n+1, rest[at:at+n], ingest.ReasonNone, nil
		}
	}
	s.add(p, p.end)
}

// gdb reads a frame without a name, with an address of the process. Frame 0 and the frame after a
// signal's are exact.
func (s *scanner) gdb(number, i, end int) {
	exact := number == 0 || number == s.process.signalFrame
	s.process.signalFrame = 0
	address, last, ok := s.prefixed(i)
	const unnamed, from = " in ?? ()", " from "
	if !ok || !bytes.HasPrefix(s.text[last:end], []byte(unnamed)) {
		return
	}
	last += len(unnamed)
	file, ok := bytes.CutPrefix(s.text[last:end], []byte(from))
	if !ok {
		file = nil
	}
	s.frame()
	s.locate(place{start: i, end: last, exact: exact}, address, file)
}

// backtrace reads "PATH(SYM+0xOFF) [0xADDR]" of glibc's backtrace_symbols, and the same without
// the blank of backtrace_symbols_fd, with the plus at i and the end of the offset at end. Without
// a symbol the offset counts from the load address: an ELF address. All are return addresses; the
// first is the one of the call of backtrace.
func (s *scanner) backtrace(i, end int, offset uint64) bool {
	_, last, ok := s.after(end, ") [")
	if !ok {
		_, last, ok = s.after(end, ")[")
	}
	if !ok || last == len(s.text) || s.text[last] != ']' {
		return false
	}
	from := max(s.floor, i-maxFrame)
	open := bytes.LastIndexByte(s.text[from:i], '(')
	if open < 0 {
		return false
	}
	open += from
	p := place{start: open, end: last + 1, form: formAddress, keep: true, offset: offset,
		file: s.fileBefore(open)}
	if p.symbol = s.text[open+1 : i]; len(p.symbol) > 0 {
		p.form = formSymbol
	}
	if len(p.file) == 0 {
		return false
	}
	s.frame()
	s.add(p, p.end)
	return true
}

// fixedBacktrace is backtrace for "PATH() [0xADDR]", and for lines "PATH[0xADDR]" of
// backtrace_symbols_fd, with the bracket at i. glibc prints no offset for a file loaded at address
// 0: the address is an ELF address.
func (s *scanner) fixedBacktrace(i int) bool {
	const empty = "() "
	open := max(i-len(empty), s.floor)
	if string(s.text[open:i]) != empty {
		open = i
	}
	address, end, ok := s.prefixed(i + 1)
	p := place{start: open, end: end + 1, form: formAddress, keep: true, offset: address,
		file: s.fileBefore(open)}
	if !ok || end == len(s.text) || s.text[end] != ']' || len(p.file) == 0 {
		return false
	}
	if open == i && (bytes.IndexByte(p.file, '/') < 0 || len(bytes.TrimSpace(s.text[end+1:])) > 0) {
		return false // an element of an array
	}
	s.frame()
	s.add(p, p.end)
	return true
}

// fileBefore returns the file name, without blanks, that ends at i.
func (s *scanner) fileBefore(i int) []byte {
	from := max(s.floor, i-maxFrame)
	line := s.text[from:i]
	return line[bytes.LastIndexAny(line, " \t\n|\"'")+1:]
}

// segfault reads "ip IP sp … in NAME[OFF,START+SIZE]", with the bracket at i: the kernel's line
// for a fatal signal (print_vma_addr in mm/memory.c). OFF is the file offset of IP, which is
// exact. Older kernels print no OFF: the mapped part of the file is unknown.
func (s *scanner) segfault(i int) {
	first, end, ok := s.number(i + 1)
	if !ok || end == len(s.text) || s.text[end] != ',' && s.text[end] != '+' {
		return
	}
	start, offset, known := first, uint64(0), s.text[end] == ','
	if known {
		if start, end, ok = s.number(end + 1); !ok || end == len(s.text) || s.text[end] != '+' {
			return
		}
		offset = first
	}
	size, end, ok := s.number(end + 1)
	if !ok || end == len(s.text) || s.text[end] != ']' {
		return
	}
	const in = " in "
	from := max(s.floor, i-maxFileName-len(in))
	at := bytes.LastIndex(s.text[from:i], []byte(in))
	if at < 0 {
		return
	}
	at += from
	ip, ok := s.pointer(at)
	p := place{start: at + len(in), end: end + 1, form: formOffset, keep: true, exact: true,
		offset: offset, file: s.text[at+len(in) : i]}
	if !ok || ip-start >= size || len(p.file) == 0 {
		return
	}
	const page = 4096 // the least
	switch {
	case !known:
		p.why, p.offset = ingest.MapsNotSaved, ip-start
	case (offset-(ip-start))%page != 0:
		return
	}
	s.add(p, p.end)
}

// pointer reads the instruction pointer in the text before i: " ip IP sp", or " ip:IP sp".
func (s *scanner) pointer(i int) (ip uint64, ok bool) {
	const far = 200 // bytes of registers and error code
	from := max(s.floor, i-far)
	at := bytes.LastIndex(s.text[from:i], []byte(" ip"))
	if at < 0 {
		return 0, false
	}
	at += from + len(" ip")
	if s.text[at] != ' ' && s.text[at] != ':' {
		return 0, false
	}
	ip, _, ok = s.number(at + 1)
	return ip, ok
}

// sanitizerFile is sanitizer for "#N 0xADDR in SYM (PATH+0xOFF)", "#N 0xADDR  (PATH+0xOFF)" and
// "#N SYM PLACE (PATH+0xOFF)" without a build ID. Stack dumps of LLVM and Chromium have no "in"
// after the address, and do not move addresses back.
func (s *scanner) sanitizerFile(i, end int, offset uint64) bool {
	if end == len(s.text) || s.text[end] != ')' {
		return false
	}
	from := max(s.floor, i-maxFrame)
	open := bytes.LastIndexByte(s.text[from:i], '(')
	if _, ok := s.frameNumber(); !ok || open < 0 || from+open+1 == i {
		return false
	}
	if open += from; open < s.frameAt {
		return false
	}
	rest := bytes.TrimLeft(s.text[s.frameAt:open+1], " ")
	if bytes.HasPrefix(rest, []byte("0x")) {
		rest = rest[2+hexLen(rest[2:]):]
		if !bytes.HasPrefix(rest, []byte(" in ")) && string(rest) != "  (" {
			return false
		}
	}
	s.add(place{start: open, end: end + 1, form: formAddress, keep: true, exact: true,
		file: s.text[open+1 : i], offset: offset}, end+1)
	return true
}

// jvm reads "C  [NAME+0xOFF]" and "V  [NAME+0xOFF]" of a crash report of the JVM (hs_err_pidN.log),
// native code and code of the JVM itself, with the plus at i and the end of the offset at end. The
// offset counts from the start of the module in memory. The first frame is exact, and the one of the
// report's head, after "# "; no address was moved back.
func (s *scanner) jvm(i, end int, offset uint64) bool {
	const kind = len("C  ")
	if end == len(s.text) || s.text[end] != ']' {
		return false
	}
	from := max(s.floor, i-maxFrame)
	open := from + bytes.LastIndexByte(s.text[from:i], '[')
	if open < from+kind || open+1 == i {
		return false
	}
	switch string(s.text[open-kind : open]) {
	case "C  ", "V  ":
	default:
		return false
	}
	if head := s.text[:open-kind]; len(head) > 0 && string(head) != "# " {
		return false
	}
	s.add(place{start: open, end: end + 1, form: formModule, keep: true, exact: s.frame(),
		file: s.text[open+1 : i], offset: offset}, end+1)
	return true
}

// perfScript reads "PC [unknown] (PATH+0xOFF)" of perf script, with dsoff among its fields, and
// "PC [unknown] (PATH)" without, with the bracket at i. The offset is one in the file; PC has no 0x.
// The first frame of a stack is exact, and perf moves no address back.
func (s *scanner) perfScript(i int) bool {
	const unknown = "[unknown] ("
	if !bytes.HasPrefix(s.text[i:], []byte(unknown)) || i-1 <= s.floor || s.text[i-1] != ' ' {
		return false
	}
	from := s.tokenBefore(i - 1)
	pc, end, ok := s.number(from)
	file, closed := bytes.CutSuffix(bytes.TrimRight(s.text[i+len(unknown):], "\r\n"), []byte(")"))
	if !ok || end != i-1 || !closed || len(file) == 0 || file[0] == '[' {
		return false
	}
	first := s.frame()
	at := bytes.LastIndex(file, []byte("+0x"))
	if at <= 0 {
		s.locate(place{start: i, end: i + len("[unknown]"), exact: first}, pc, file)
		return true
	}
	offset, last, ok := s.prefixed(i + len(unknown) + at + 1)
	if !ok || last != i+len(unknown)+len(file) {
		return false
	}
	s.add(place{start: i, end: last + 1, form: formOffset, keep: true, exact: first, file: file[:at],
		offset: offset}, last+1)
	return true
}
