package annotate

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"slices"
	"sort"
	"strings"

	"symbolize/analyze/disasm"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/texts"
)

// Function is one function with its samples.
type Function struct {
	Name       string `json:"name"`
	SystemName string `json:"system_name"`
	// Into is the physical function of an inlined one: Instructions are those of its calls, and
	// Address and Length the physical function's.
	Into    string   `json:"inlined_into,omitempty"`
	Object  string   `json:"object"`
	Kind    string   `json:"kind"`
	BuildID string   `json:"build_id,omitempty"`
	Machine string   `json:"machine"`
	Origin  string   `json:"code_from"`
	Notes   []string `json:"notes,omitempty"`
	// Disagreements lists source lines that cannot be the compiled ones.
	Disagreements []string `json:"source_disagrees,omitempty"`
	Address       string   `json:"address"`
	Length        int      `json:"length"`

	Samples uint64  `json:"samples"`
	Weight  uint64  `json:"weight"`
	Share   float64 `json:"samples_percent"` // of all samples of the event
	// Images lists the images of a BPF program with samples, if there are several: Lines and BPF have
	// the samples of all images, Instructions those of one.
	Images []Image `json:"images,omitempty"`
	// Outside counts samples after the available code.
	Outside uint64 `json:"samples_outside,omitempty"`
	Unknown int    `json:"undecoded_bytes,omitempty"`

	Lines        []Line `json:"lines,omitempty"` // heaviest first
	Instructions []Inst `json:"instructions"`
	// BPF has the BPF instructions of a BPF program's function; NoBPF is the reason without them.
	BPF   *BPFLayer `json:"bpf,omitempty"`
	NoBPF string    `json:"bpf_missing,omitempty"`

	key hotKey
}

// Line is a line of source with the samples of its instructions.
type Line struct {
	File    string  `json:"file"`
	Line    uint32  `json:"line"`
	Source  string  `json:"source,omitempty"`
	Samples uint64  `json:"samples"`
	Weight  uint64  `json:"weight"`
	Percent float64 `json:"function_percent"` // of the function's samples
	Hottest bool    `json:"hottest,omitempty"`
}

// Inst is an instruction with its samples.
type Inst struct {
	Offset     int         `json:"offset"` // from the function's start
	Address    string      `json:"address"`
	Bytes      string      `json:"bytes"`
	Text       string      `json:"text"`
	Samples    uint64      `json:"samples"`
	Weight     uint64      `json:"weight"`
	Percent    float64     `json:"function_percent"` // of the function's samples
	Hottest    bool        `json:"hottest,omitempty"`
	JumpTarget bool        `json:"jump_target,omitempty"` // a jump of this function leads here
	Target     *InstTarget `json:"target,omitempty"`
	File       string      `json:"file,omitempty"`
	Line       uint32      `json:"line,omitempty"`
	Column     uint32      `json:"column,omitempty"`
	Inlined    []string    `json:"inlined,omitempty"` // demangled, outermost first
	// Access is the type and member that it reads or writes, or in parentheses why it is not known.
	Access string `json:"access,omitempty"`

	inst  disasm.Inst
	calls []string // system names of Inlined
	line  int      // index of the function's lines, −1 for none
}

// InstTarget is where an instruction points to: a call, a jump, or data next to the
// code.
type InstTarget struct {
	Address string `json:"address"`
	Kind    string `json:"kind"`             // "call", "jump" or "data"
	Offset  *int   `json:"offset,omitempty"` // where it is inside the function
	Symbol  string `json:"symbol,omitempty"`
}

// annotator makes an Function.
type annotator struct {
	f     *HotFunction
	code  *Code
	opts  *Options
	insts []Inst
	lines []Line
	index map[lineKey]int // of lines
	// Of the function, in all images.
	samples, weight, total uint64

	disagreements []string

	others []image // further images of the program
}

// MaxCode bounds the code of one function, in bytes: an instruction needs some hundred
// times its length here. Functions that people write have some hundred KiB at most.
const MaxCode = 4 << 20

func newAnnotator(f *HotFunction, code *Code, opts *Options) (*annotator, error) {
	if len(code.Bytes) > MaxCode {
		return nil, fmt.Errorf("a function of %d bytes, over the limit of %d MiB",
			len(code.Bytes), MaxCode>>20)
	}
	d, err := disasm.New(code.Machine, opts.Syntax)
	if err != nil {
		return nil, err
	}
	a := &annotator{f: f, code: code, opts: opts, samples: f.Samples, weight: f.Weight, total: f.Value(opts.Count),
		index: make(map[lineKey]int)}
	for inst := range d.Decode(code.Bytes, code.PC) {
		a.insts = append(a.insts, Inst{
			Offset: inst.Offset, Address: hexAddress(code.PC + addr.PC(inst.Offset)),
			Bytes: hex.EncodeToString(code.Bytes[inst.Offset:][:inst.Len]), Text: inst.Text,
			inst: inst, line: -1,
		})
	}
	return a, nil
}

func (a *annotator) function(o *ingest.Object, total uint64) Function {
	out := Function{
		Name:       a.opts.Demangler.Name(a.f.Name()),
		SystemName: texts.Printable(a.f.Name()), Object: texts.Printable(o.File.Path),
		Kind: o.Kind.String(), BuildID: o.ID.String(), Machine: a.code.Machine,
		Origin: texts.Printable(a.code.Origin), Notes: a.code.Notes,
		Address: hexAddress(a.code.PC), Length: len(a.code.Bytes),
		Samples: a.samples, Weight: a.weight, Share: sharePercent(a.total, total),
	}
	if a.f.Inlined != "" {
		out.Into = a.opts.Demangler.Name(a.f.SystemName)
	}
	out.Outside = a.place()
	a.source()
	a.targets()
	a.accesses(o)
	out.Images = a.images()
	a.hottest()
	for i := range a.insts {
		if a.insts[i].inst.Bad {
			out.Unknown += a.insts[i].inst.Len
		}
	}
	out.Lines, out.Instructions = a.sortLines(), a.insts
	out.Disagreements = a.disagreements
	if a.code.BPF != nil {
		if code, err := a.code.BPF(); err != nil {
			out.NoBPF = texts.Printable(err.Error())
		} else {
			out.BPF = a.layer(code)
		}
	}
	return out
}

// at returns the number of the instruction that covers an offset, −1 if none does.
func (a *annotator) at(offset uint64) int {
	if offset >= uint64(len(a.code.Bytes)) {
		return -1
	}
	return sort.Search(len(a.insts), func(i int) bool {
		return uint64(a.insts[i].Offset) > offset
	}) - 1
}

// place adds the samples to their instructions, and returns the number of samples outside.
func (a *annotator) place() (outside uint64) {
	for _, pl := range a.f.Places {
		i := a.at(pl.Offset)
		if i < 0 {
			outside += pl.Samples
			continue
		}
		a.insts[i].Samples += pl.Samples
		a.insts[i].Weight += pl.Weight
	}
	for i := range a.others {
		outside += a.others[i].outside()
	}
	for i := range a.insts {
		a.insts[i].Percent = sharePercent(a.value(a.insts[i].Samples, a.insts[i].Weight), a.total)
	}
	return outside
}

func (a *annotator) value(samples, weight uint64) uint64 {
	if a.opts.Count {
		return samples
	}
	return weight
}

// source gives the instructions their lines, and the lines their samples.
func (a *annotator) source() {
	if a.code.Lines == nil {
		return
	}
	offsets := make([]int, len(a.insts))
	for i := range a.insts {
		offsets[i] = a.insts[i].Offset
	}
	check := newSourceCheck()
	lines := a.ownInstructions(a.code.Lines(offsets))
	for i, l := range lines {
		in := &a.insts[i]
		in.calls = l.Inlined
		for _, name := range l.Inlined {
			in.Inlined = append(in.Inlined, a.opts.Demangler.Name(name))
		}
		if l.Line == 0 {
			continue
		}
		in.File, in.Line, in.Column = texts.Printable(l.File), l.Line, l.Column
		n, isNew := a.lineOf(&l)
		if isNew {
			check.line(&l)
		}
		in.line = n
		a.lines[n].Samples += in.Samples
		a.lines[n].Weight += in.Weight
	}
	a.disagreements = check.texts()
	for i := range a.others {
		a.others[i].addLines(a)
	}
	for i := range a.lines {
		a.lines[i].Percent = sharePercent(a.value(a.lines[i].Samples, a.lines[i].Weight), a.total)
	}
}

// accesses sets what the instructions access.
func (a *annotator) accesses(o *ingest.Object) {
	if a.opts.Access == nil {
		return
	}
	offsets := make([]addr.Offset, len(a.insts))
	for i := range a.insts {
		offsets[i] = a.f.Start + addr.Offset(a.insts[i].Offset)
	}
	for i, text := range a.opts.Access(o, offsets) {
		a.insts[i].Access = text
	}
}

// lineOf returns the number of a line of source, which is appended if it is new.
func (a *annotator) lineOf(l *CodeLine) (n int, isNew bool) {
	k := lineKey{l.File, l.Line}
	n, ok := a.index[k]
	if !ok {
		n = len(a.lines)
		a.index[k] = n
		a.lines = append(a.lines, Line{File: texts.Printable(l.File), Line: l.Line, Source: sourceText(l.Source)})
	}
	return n, !ok
}

// ownInstructions leaves the instructions of an inlined function, and those with its samples. It
// returns their lines.
func (a *annotator) ownInstructions(lines []CodeLine) []CodeLine {
	if a.f.Inlined == "" {
		return lines
	}
	n := 0
	for i := range a.insts {
		if slices.Contains(lines[i].Inlined, a.f.Inlined) || a.insts[i].Samples > 0 {
			a.insts[n], lines[n] = a.insts[i], lines[i]
			n++
		}
	}
	a.insts = a.insts[:n]
	return lines[:n]
}

// tabWidth is the width of a tab of source text.
const tabWidth = 4

// sourceText makes a line of source fit for a terminal.
func sourceText(s string) string {
	s = strings.TrimRight(strings.ReplaceAll(s, "\t", "        "[:tabWidth]), " \r\n")
	return texts.Printable(s)
}

// targets resolves the targets of calls, jumps and PC-relative operands.
func (a *annotator) targets() {
	end := a.code.PC + addr.PC(len(a.code.Bytes))
	var pcs []addr.PC
	for i := range a.insts {
		in := &a.insts[i]
		pc, kind, ok := targetOf(&in.inst)
		if !ok {
			continue
		}
		in.Target = &InstTarget{Address: hexAddress(pc), Kind: kind}
		if pc >= a.code.PC && pc < end {
			off := int(pc - a.code.PC)
			in.Target.Offset = &off
			if to := a.at(uint64(off)); kind == "jump" && to >= 0 && a.insts[to].Offset == off {
				a.insts[to].JumpTarget = true
			}
			continue
		}
		pcs = append(pcs, pc)
	}
	if a.code.Symbols == nil || len(pcs) == 0 {
		return
	}
	slices.Sort(pcs)
	pcs = slices.Compact(pcs)
	names := a.code.Symbols(pcs)
	for i := range a.insts {
		in := &a.insts[i]
		if in.Target == nil || in.Target.Offset != nil {
			continue
		}
		pc, _, _ := targetOf(&in.inst)
		at, _ := slices.BinarySearch(pcs, pc)
		if s := &names[at]; s.Name != "" {
			in.Target.Symbol = a.opts.Demangler.Name(s.Name)
			if s.Offset > 0 {
				in.Target.Symbol += fmt.Sprintf("+0x%x", s.Offset)
			}
		}
	}
}

func targetOf(in *disasm.Inst) (pc addr.PC, kind string, ok bool) {
	switch {
	case in.HasTarget && in.Call:
		return in.Target, "call", true
	case in.HasTarget:
		return in.Target, "jump", true
	case in.HasData:
		return in.Data, "data", true
	}
	return 0, "", false
}

// hottest marks the instruction and the line with the most samples, the first of
// equals.
func (a *annotator) hottest() {
	best := -1
	for i := range a.insts {
		if v := a.insts[i].Percent; v > 0 && (best < 0 || v > a.insts[best].Percent) {
			best = i
		}
	}
	if best >= 0 {
		a.insts[best].Hottest = true
	}
	best = -1
	for i := range a.lines {
		if v := a.lines[i].Percent; v > 0 && (best < 0 || v > a.lines[best].Percent) {
			best = i
		}
	}
	if best >= 0 {
		a.lines[best].Hottest = true
	}
}

// sortLines orders the lines by weight and renumbers the instructions' references.
func (a *annotator) sortLines() []Line {
	order := make([]int, len(a.lines))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(x, y int) int {
		l, m := &a.lines[x], &a.lines[y]
		return cmp.Or(cmp.Compare(m.Percent, l.Percent), cmp.Compare(l.File, m.File),
			cmp.Compare(l.Line, m.Line))
	})
	sorted := make([]Line, len(order))
	rank := make([]int, len(order))
	for to, from := range order {
		sorted[to], rank[from] = a.lines[from], to
	}
	for i := range a.insts {
		if n := a.insts[i].line; n >= 0 {
			a.insts[i].line = rank[n]
		}
	}
	return sorted
}
