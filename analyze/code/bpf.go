package code

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"symbolize/analyze/annotate"
	"symbolize/analyze/disasm"
	"symbolize/ingest/addr"
	"symbolize/ingest/input"
	"symbolize/ingest/object/bpf"
	"symbolize/ingest/texts"
)

// callBase is the kernel's symbol from which distances of helpers are counted.
const callBase = "__bpf_call_base"

// bpfInstructions returns the BPF instructions of a loaded function, with names from symbols, which
// may be nil.
func (c *Finder) bpfInstructions(l *bpfLoad, in *bpf.Instructions,
	symbols func([]addr.PC) []annotate.CodeSymbol) *annotate.BPFCode {
	p := l.program
	names := &disasm.BPFNames{Function: func(i int32) string {
		if i < 0 || int(i) >= len(p.Funcs) {
			return ""
		}
		return p.Symbol(int(i))
	}, Map: func(id uint32) string { return texts.Printable(l.maps[id]) }}
	code := &annotate.BPFCode{First: in.First, OneRun: in.OneRun}
	for _, r := range in.Runs {
		code.Runs = append(code.Runs, annotate.BPFRun{Index: int(r.Insn - in.First), Offset: r.Offset,
			CodeLine: annotate.CodeLine{File: r.File, Line: r.Line, Column: r.Column, Source: r.Source}})
	}
	if symbols != nil {
		targets := callTargets(l)
		if base, ok := findCallBase(in, p.BigEndian, targets, symbols); ok {
			names.Helper = func(distance int32) string {
				s := symbols([]addr.PC{base + addr.PC(distance)})[0]
				if s.Offset != 0 {
					return ""
				}
				return s.Name
			}
			names.KFunc = func(number int32) string { // a distance, or the number of a type
				if !slices.Contains(targets, base+addr.PC(number)) {
					return ""
				}
				return names.Helper(number)
			}
		}
	}
	code.Instructions = disasm.BPF(in.Code, p.BigEndian, names)
	if o, f := c.original(l, in); f != nil {
		addOriginal(code, in, o, f)
	}
	return code
}

// mapNames returns the names of the maps that the programs of a capture use, by ID; nil if it has none.
func mapNames(capture *input.Capture) map[uint32]string {
	stats := capture.BPFStats()
	if stats == nil {
		return nil
	}
	names := make(map[uint32]string)
	for _, p := range stats.Programs {
		for _, m := range p.Maps {
			names[m.ID] = m.Name
		}
	}
	return names
}

// programOf identifies the program of a function for annotate.Code.Program: by the function's symbol,
// which has a tag, and its line records in their order; "" without lines. Where the code of a record
// begins differs between images. in is nil if the BPF instructions are not known.
func programOf(l *bpfLoad, in *bpf.Instructions) string {
	f := &l.program.Funcs[l.fn]
	records, kind := f.Lines, "lines"
	if in != nil && in.OneRun == "" {
		records, kind = in.Runs, "records"
	}
	if len(f.Lines) == 0 {
		return ""
	}
	h := sha256.New()
	fmt.Fprintf(h, "%q %s\n", l.program.Symbol(l.fn), kind)
	for i := range records {
		fmt.Fprintf(h, "%q %d %d\n", records[i].File, records[i].Line, records[i].Column)
	}
	return string(h.Sum(nil))
}

// callTargets returns the targets of the calls in the code of a function, which are sorted.
func callTargets(l *bpfLoad) []addr.PC {
	d, err := disasm.New(l.machine, disasm.ATT)
	if err != nil {
		return nil
	}
	var targets []addr.PC
	f := &l.program.Funcs[l.fn]
	for inst := range d.Decode(f.Image, f.Start) {
		if inst.Call && inst.HasTarget {
			targets = append(targets, inst.Target)
		}
	}
	slices.Sort(targets)
	return slices.Compact(targets)
}

// findCallBase returns the address of the kernel's symbol callBase: a target in the code and the
// distance in the call that it was compiled from differ by it, and its name proves it.
func findCallBase(in *bpf.Instructions, bigEndian bool, targets []addr.PC,
	symbols func([]addr.PC) []annotate.CodeSymbol) (addr.PC, bool) {
	var distances []int32
	note := func(distance int32) string {
		distances = append(distances, distance)
		return ""
	}
	disasm.BPF(in.Code, bigEndian, &disasm.BPFNames{Helper: note, KFunc: note})
	tried := make(map[addr.PC]bool)
	for _, target := range targets {
		for _, distance := range distances {
			base := target - addr.PC(distance)
			if tried[base] || len(tried) == maxBases {
				continue
			}
			tried[base] = true
			if s := symbols([]addr.PC{base})[0]; s.Name == callBase && s.Offset == 0 {
				return base, true
			}
		}
	}
	return 0, false
}

// maxBases is how many addresses are tried as callBase.
const maxBases = 4096
