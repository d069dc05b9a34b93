package filter

import (
	"bytes"
	"cmp"
	"debug/elf"
	"path"
	"slices"
	"strconv"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/addr"
)

// maxMapped bounds the mappings of the text. Processes have up to 65,530.
const maxMapped = 1 << 16

// mapped is a mapping of the crashed process, by a line of the text.
type mapped struct {
	start, end, offset uint64
	file               string
}

// process has the facts in earlier lines about the crashed process.
type process struct {
	maps     []mapped // in the order of the text
	mapsLine int      // the last line with one
	sorted   bool
	// early: an address precedes all mappings. Mappings then follow their stacks, as in reports of
	// old glibcs, and are not used: the next stack is of another process.
	early bool
	late  bool // there were such mappings

	signalFrame int // gdb: the number after that of the last "<signal handler called>"
	foreignLine int // Go: the last line that is "non-Go function"
}

// lineStart reads forms that are whole lines.
func (s *scanner) lineStart() {
	line := bytes.TrimLeft(s.text, " \t")
	if len(line) == 0 {
		return
	}
	at := len(s.text) - len(line)
	switch c := line[0]; {
	case c == 'P' || c == 'p':
		s.goCounter(at, line)
	case c == 'n' && bytes.HasPrefix(line, []byte("non-Go function")):
		s.process.foreignLine = s.line
	case c == 'M' && bytes.HasPrefix(s.text, []byte("Module|")):
		s.breakpadFields()
	case isHex(c):
		switch {
		case at == 0 && c <= '9' && bytes.IndexByte(line[:min(len(line), maxThread)], '|') > 0:
			s.breakpadFields()
		case !s.mapping(line):
			s.rust(at, line)
		}
	}
}

// maxThread is the length of the longest number of a thread, and a bar.
const maxThread = 7

// mapping reads a line of /proc/PID/maps, "START-END PERMS OFFSET DEV INODE PATH", and one of
// gdb's `info proc mappings`, "0xSTART 0xEND 0xSIZE 0xOFFSET [PERMS] PATH". A mapping after other
// text is of another process.
func (s *scanner) mapping(line []byte) bool {
	if len(line) > maxFrame {
		return false
	}
	m, ok := procMapping(line)
	if !ok {
		if m, ok = gdbMapping(line); !ok {
			return false
		}
	}
	p := &s.process
	if p.early {
		p.late = true
		return true
	}
	if p.mapsLine != s.line-1 {
		p.maps = nil
	}
	p.mapsLine = s.line
	if len(p.maps) < maxMapped {
		p.maps, p.sorted = append(p.maps, m), false
	}
	return true
}

func procMapping(line []byte) (m mapped, ok bool) {
	n := hexLen(line)
	if n == 0 || n > maxOffDigits || n == len(line) || line[n] != '-' {
		return m, false
	}
	const fields = 6
	f := bytes.Fields(line)
	if len(f) < fields-1 || len(f[1]) != len("r-xp") {
		return m, false
	}
	return newMapped(f[0][:n], f[0][n+1:], f[2], restFrom(line, fields-1))
}

func gdbMapping(line []byte) (m mapped, ok bool) {
	const fields = 4 // before the permissions, which old versions do not print
	f := bytes.Fields(line)
	if len(f) < fields || !bytes.HasPrefix(line, []byte("0x")) {
		return m, false
	}
	for i := range fields {
		if f[i], ok = bytes.CutPrefix(f[i], []byte("0x")); !ok {
			return m, false
		}
	}
	last := fields
	if len(f) > last && len(f[last]) == len("r-xp") && bytes.IndexByte([]byte("ps"), f[last][3]) >= 0 {
		last++
	}
	m, ok = newMapped(f[0], f[1], f[3], restFrom(line, last))
	size, err := strconv.ParseUint(string(f[2]), 16, 64)
	return m, ok && err == nil && size == m.end-m.start
}

// restFrom returns the text of a line from its field n on, "" if it has none: paths have blanks.
func restFrom(line []byte, n int) string {
	for range n {
		line = bytes.TrimLeft(line, " \t")
		line = line[len(line)-len(bytes.TrimLeftFunc(line, func(r rune) bool {
			return r != ' ' && r != '\t'
		})):]
	}
	return string(bytes.TrimSpace(line))
}

func newMapped(start, end, offset []byte, file string) (m mapped, ok bool) {
	ok = true
	number := func(b []byte) uint64 {
		v, err := strconv.ParseUint(string(b), 16, 64)
		ok = ok && err == nil
		return v
	}
	m = mapped{number(start), number(end), number(offset), file}
	return m, ok && m.start < m.end
}

// at returns the mapping of an address.
func (p *process) at(pc uint64) *mapped {
	if !p.sorted {
		slices.SortStableFunc(p.maps, func(a, b mapped) int {
			return cmp.Compare(a.start, b.start)
		})
		p.sorted = true
	}
	i, found := slices.BinarySearchFunc(p.maps, pc, func(m mapped, pc uint64) int {
		return cmp.Compare(m.start, pc)
	})
	if !found {
		i--
	}
	if i < 0 || pc >= p.maps[i].end {
		return nil
	}
	return &p.maps[i]
}

// locate makes a place of an address of the process: a file offset by the earlier mappings, else
// an address of the program, which is right if the program is loaded at its link address. module
// is the path in the text, nil for none.
func (s *scanner) locate(p place, pc uint64, module []byte) {
	p.offset, p.keep = pc, true
	s.process.early = s.process.early || len(s.process.maps) == 0
	m := s.process.at(pc)
	switch {
	case m == nil && len(module) > 0:
		p.form, p.file, p.why = formAddress, module, ingest.MapsNotSaved
	case m == nil:
		p.form = formProgram
	case len(module) > 0 && path.Base(string(module)) != path.Base(m.file):
		p.form, p.file, p.why = formAddress, module, ingest.MapsNotSaved // the mappings are of another process
	default:
		p.form, p.offset, p.file = formOffset, pc-m.start+m.offset, []byte(m.file)
	}
	s.add(p, p.end)
}

// rust reads "N: 0xADDR - <unknown>" of a backtrace with RUST_BACKTRACE=full. All are return
// addresses, printed as unwound.
func (s *scanner) rust(at int, line []byte) {
	const colon, unknown = ":", " - <unknown>"
	_, n, ok := decimalAt(line, 0)
	if !ok || !bytes.HasPrefix(line[n:], []byte(colon)) {
		return
	}
	n += len(colon)
	n += len(line[n:]) - len(bytes.TrimLeft(line[n:], " "))
	pc, end, ok := s.prefixed(at + n)
	if !ok || !bytes.HasPrefix(s.text[end:], []byte(unknown)) {
		return
	}
	s.frame()
	s.locate(place{start: at + n, end: end + len(unknown)}, pc, nil)
}

// goCounter reads program counters without a name in Go's crash reports: "PC=0xADDR m=N sigcode=N"
// of a signal in C code, and "pc=0xADDR" below "non-Go function", which may be interrupted code or
// a return address.
func (s *scanner) goCounter(at int, line []byte) {
	const counter, rest = "PC=", " m="
	pc, end, ok := s.prefixed(at + len(counter))
	if len(line) < len(counter) || !ok {
		return
	}
	p := place{start: at, end: end}
	switch string(line[:len(counter)]) {
	case counter:
		if !bytes.HasPrefix(s.text[end:], []byte(rest)) {
			return
		}
		p.exact = true
	case "pc=":
		if s.process.foreignLine != s.line-1 {
			return
		}
		p.doubtful = true
	default:
		return
	}
	s.locate(p, pc, nil)
}

// goSignal reads "[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0xADDR]" of a Go
// program, with the bracket at i.
func (s *scanner) goSignal(i int) bool {
	const head, counter = "[signal ", " pc=0x"
	line := s.text[i:min(len(s.text), i+maxFrame)]
	if !bytes.HasPrefix(line, []byte(head)) {
		return false
	}
	at := bytes.LastIndex(line, []byte(counter))
	if at < 0 {
		return false
	}
	at += i + 1
	pc, end, ok := s.prefixed(at + len("pc="))
	if ok && end < len(s.text) && s.text[end] == ']' {
		s.locate(place{start: at, end: end, exact: true}, pc, nil)
	}
	return true
}

// programID returns the build ID of the only program named by the user that has code at a fixed
// address.
func (f *finder) programID(p *place) (found buildid.ID, why ingest.Reason) {
	at := addr.Site(addr.Addr(p.offset), p.isReturn())
	for _, id := range f.programs {
		o := f.object(id)
		if o.manifest == nil || !fixedCode(o, at) {
			continue
		}
		if !found.IsZero() {
			return buildid.ID{}, ingest.Ambiguous
		}
		found = id
	}
	if found.IsZero() {
		return found, ingest.MapsNotSaved
	}
	return found, ingest.ReasonNone
}

// fixedCode reports whether an object is a program linked to fixed addresses with code at one of
// them.
func fixedCode(o *object, at addr.Addr) (code bool) {
	m := o.manifest
	if m.Kind != ingest.ELF || len(m.OtherLayouts) > 0 {
		return false
	}
	for i := range m.Layout {
		s := &m.Layout[i]
		if s.Addr < maxPage {
			return false // position-independent
		}
		in := at >= s.Addr && uint64(at-s.Addr) < s.MemSize
		code = code || in && elf.ProgFlag(s.Flags)&elf.PF_X != 0
	}
	return code
}
