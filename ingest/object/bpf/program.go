package bpf

import (
	"cmp"
	"encoding/hex"
	"sort"

	"symbolize/ingest/addr"
	"symbolize/ingest/object/btf"
)

// Tag is the digest of a program's instructions, truncated to 8 bytes. Equal code has
// equal tags, under any name.
type Tag [8]byte

// String returns the tag as 16 hexadecimal digits, as the kernel prints it.
func (t Tag) String() string { return hex.EncodeToString(t[:]) }

// Program is a BPF program as it was loaded: one entry of BPF_PROG_INFO.
type Program struct {
	Type          uint32 // BPF_PROG_TYPE_*
	ID            uint32 // unique while a kernel runs
	UID           uint32 // of the user who loaded it
	BTFID         uint32 // 0 if it came without BTF
	VerifiedInsns uint32
	Tag           Tag    // of the whole program, as it was loaded
	Name          string // at most 15 bytes; Funcs[0].Name is the full one
	LoadTime      uint64 // ns of CLOCK_BOOTTIME
	// Loaded and Unloaded are the times of the records of its load and unload, ns of the recording's
	// clock; 0 if the recording has none: it was loaded before, or unloaded after it.
	Loaded, Unloaded uint64
	JITedLen         uint32 // bytes of all functions
	XlatedLen        uint32 // bytes
	RunTime          uint64 // ns; RunTime and RunCount only with kernel.bpf_stats_enabled
	RunCount         uint64
	Funcs            []Func     // main first, then the subprograms; never empty
	BTF              *btf.Types // nil if there is none, or it was not recorded
	Missing          string     // why there is no image, one of the Missing constants; "" if there is
	Raw              []byte     // the whole entry as recorded; nil for programs known by records only
	BigEndian        bool
	Err              error // damage in the entry, joined *decode.Errors; nil if it is whole
	Note             error // a change that the kernel made to the entry; nothing is damaged

	noLines string // why no function has lines, "" if one may have
}

// NoLines returns the reason why function i has no lines: one of the Missing constants,
// or "" if it has some.
func (p *Program) NoLines(i int) string {
	switch {
	case len(p.Funcs[i].Lines) > 0:
		return ""
	case p.noLines != "" || len(p.Raw) > 0 && p.Err == nil:
		return cmp.Or(p.noLines, MissingNumbers)
	case len(p.Raw) == 0: // known by records only
		return cmp.Or(p.Missing, MissingNotRecorded)
	}
	return MissingDamaged
}

// The reasons why the code of a program is missing.
const (
	// MissingGone: the program was unloaded before the recorder read it.
	MissingGone = "gone before it could be read"
	// MissingRights: the recorder lacked CAP_BPF, and all lengths are 0.
	MissingRights = "no rights to read it"
	// MissingHidden: the kernel showed neither addresses nor code (kallsyms_show_value).
	// It does so at kptr_restrict 2, and, without CAP_SYSLOG, at 1 and where
	// perf_event_paranoid is above 1.
	MissingHidden = "hidden by the kernel (no CAP_SYSLOG, or kptr_restrict 2)"
	// MissingNotJITed: the program is interpreted.
	MissingNotJITed = "not JITed"
	// MissingNotRecorded: the recorder left the code out.
	MissingNotRecorded = "left out by the recorder"
	// MissingDamaged: the code's position is outside the entry.
	MissingDamaged = "damaged in the capture"
)

// The reasons besides these why a function has no lines, see Program.NoLines.
const (
	// MissingBTF: the loader gave the kernel no BTF.
	MissingBTF = "it was loaded without BTF"
	// MissingLineInfo: the program has BTF, but no line info.
	MissingLineInfo = "it was loaded without line info"
	// MissingMoved: the kernel hardened the code (net.core.bpf_jit_harden). Its insertions
	// into one function move the line info of all (bpf_adj_linfo in kernel/bpf/core.c takes
	// a function's own numbers of instructions for the program's): in a program of several
	// functions all records but each function's first are of other code.
	MissingMoved = "the kernel moved its line info when it hardened the code " +
		"(net.core.bpf_jit_harden)"
	// MissingXlated: perf and older recorders leave out the BPF instructions of a program, and the
	// kernel hides those with blinded constants (net.core.bpf_jit_harden) as it hides addresses.
	MissingXlated = "the recorder left them out, or the kernel hid them (net.core.bpf_jit_harden)"
	// MissingNumbers: the function has only records of the compiler's own code.
	MissingNumbers = "its line info has no line numbers"
)

// Func is a function of a program.
type Func struct {
	Name   string  // by BTF; else the program's name, or "F" for a subprogram; may be ""
	Tag    Tag     // its own (prog_tags); Program.Tag where that is absent
	Start  addr.PC // where it ran; 0 = hidden
	Length uint32  // bytes of code; 0 if not known
	Image  []byte  // the code, aliases Program.Raw; nil if it was not captured
	Type   btf.ID  // of the program's BTF, a FUNC; 0 if it is not known
	Lines  []Line  // sorted by Offset, the first at 0; nil if not known
	// Begin is the start of the source of a function without Lines; its Line is 0 if that is
	// unknown, too. Offset is 0.
	Begin Line
}

// Line is the source line of the code from Offset on, up to the next Line.
type Line struct {
	Offset uint32 // from the function's start, bytes of code
	Insn   uint32 // number of the BPF instruction in the whole program, in units of 8 bytes
	Line   uint32 // never 0
	Column uint32 // 0 if not known
	File   string // as passed to the compiler; "" without BTF
	Source string // text of the line; "" without BTF
}

// Symbol returns the kernel's name of function i in KSYMBOL records and kallsyms:
// "bpf_prog_TAG_NAME" with the program's tag for the main function and their own for subprograms.
// This is the name to display.
func (p *Program) Symbol(i int) string {
	return SymbolOf(p.symbolTag(i), p.Funcs[i].Name)
}

// symbolTag is the tag in the kernel's name of function i.
func (p *Program) symbolTag(i int) Tag {
	if i == 0 {
		return p.Tag
	}
	return p.Funcs[i].Tag
}

// PerfSymbol returns perf's name of function i in the KSYMBOL records that it synthesizes for
// programs loaded before the recording: always with the function's own tag
// (synthesize_bpf_prog_name in tools/perf/util/bpf-event.c).
func (p *Program) PerfSymbol(i int) string {
	f := &p.Funcs[i]
	name := f.Name
	if p.BTF == nil && len(p.Funcs) > 1 {
		name = subprogName
	}
	return SymbolOf(f.Tag, name)
}

// LineAt returns the source line of the code at an offset, nil if unknown.
func (f *Func) LineAt(offset uint32) *Line {
	n := lineAt(f.Lines, offset)
	if n < 0 {
		return nil
	}
	return &f.Lines[n]
}

// lineAt returns the index of the line of the code at an offset, −1 for none.
func lineAt(lines []Line, offset uint32) int {
	return sort.Search(len(lines), func(i int) bool { return lines[i].Offset > offset }) - 1
}
