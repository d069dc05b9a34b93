package bpf

import (
	"errors"
	"fmt"

	"symbolize/ingest/decode"
)

// Instructions are the BPF instructions of a function as the kernel compiled them: after the
// verifier rewrote them.
type Instructions struct {
	// First is the number of the first one in the program, in units of InsnSize.
	First uint32
	// Code has InsnSize bytes for each, in the byte order of the host. It aliases Program.Raw.
	Code []byte
	// Runs relate them to the code: the instructions from Insn on, up to the next run's, are the code
	// from Offset on, up to the next run's. The kernel knows no more than that. They are sorted by
	// Insn and by Offset; the first begins at First and at 0. A run without an address of its own
	// has no code: its instructions were left out, or belong to the next run. Line is 0 in a run that
	// the compiler added.
	Runs []Line
	// OneRun is the reason why the whole function is one run, "" if it is not: one of the Missing
	// constants, or damage.
	OneRun string
}

// Range returns the first and the last BPF instruction, by number in the program, of the run that
// became the code at an offset.
func (in *Instructions) Range(offset uint32) (first, last uint32) {
	n := lineAt(in.Runs, offset) // the first run is at 0
	end := in.First + uint32(len(in.Code)/InsnSize)
	if n+1 < len(in.Runs) {
		end = in.Runs[n+1].Insn
	}
	return in.Runs[n].Insn, end - 1
}

// Instructions returns the BPF instructions of function i. The error is the reason why they are not
// known: one of the Missing constants, or damage.
func (p *Program) Instructions(i int) (*Instructions, error) {
	if len(p.Raw) == 0 {
		return nil, errors.New(p.NoLines(i))
	}
	r := decode.New("bpf_prog_info", p.Raw, 0, p.BigEndian)
	e := readEntry(r, "bpf_prog_info", p.BigEndian)
	if err := r.Err(); err != nil {
		return nil, err
	}
	e.btf = p.BTF
	e.findArrays()
	first, code, err := e.translated(p, i)
	if err != nil {
		return nil, err
	}
	x := &Instructions{First: first, Code: code}
	if x.Runs, err = e.runs(p, i, first, uint32(len(code)/InsnSize)); err != nil {
		x.Runs, x.OneRun = []Line{{Insn: first}}, err.Error()
	}
	return x, nil
}

// translated returns the instructions of function i, and the number of the first.
func (e *entry) translated(p *Program, i int) (uint32, []byte, error) {
	a := &e.arrays[ArrayXlatedInsns]
	switch {
	case a.n > 0:
	case p.XlatedLen == 0:
		return 0, nil, errors.New(MissingRights)
	case e.mask>>ArrayXlatedInsns&1 == 0, e.hidden[ArrayXlatedInsns]:
		return 0, nil, errors.New(MissingXlated)
	default:
		return 0, nil, errors.New(MissingDamaged)
	}
	if len(a.b)%InsnSize != 0 {
		return 0, nil, fmt.Errorf("xlated_prog_insns: %d bytes, not a multiple of %d", len(a.b), InsnSize)
	}
	begin, end := uint32(0), uint32(len(a.b)/InsnSize)
	if infos := &e.arrays[ArrayFuncInfo]; len(p.Funcs) > 1 {
		if infos.n != len(p.Funcs) {
			return 0, nil, fmt.Errorf("func_info: %d records for %d functions", infos.n, len(p.Funcs))
		}
		begin = decode.U32(infos.at(i), e.big)
		if i+1 < infos.n {
			end = decode.U32(infos.at(i+1), e.big)
		}
	}
	if begin >= end || int(end) > len(a.b)/InsnSize {
		return 0, nil, fmt.Errorf("func_info: function %d has the instructions %d to %d of %d", i, begin, end,
			len(a.b)/InsnSize)
	}
	return begin, a.b[begin*InsnSize : end*InsnSize : end*InsnSize], nil
}

// runs returns the runs of function i, with count instructions from first on.
func (e *entry) runs(p *Program, i int, first, count uint32) ([]Line, error) {
	n := min(e.arrays[ArrayLineInfo].n, e.arrays[ArrayJITedLineInfo].n)
	if f := &p.Funcs[i]; n == 0 || f.Start == 0 || f.Length == 0 {
		return nil, errors.New(e.noLines(p))
	}
	places, _ := e.places(p, n)
	if e.isMoved(places) {
		return nil, errors.New(MissingMoved)
	}
	var runs []Line
	for _, x := range places {
		if int(x.fn) != i {
			continue
		}
		l := e.line(e.arrays[ArrayLineInfo].at(int(x.record)))
		l.Offset = x.offset
		if len(runs) == 0 {
			l.Offset = 0 // the prologue is before the first record's address
		} else if last := &runs[len(runs)-1]; l.Insn <= last.Insn {
			return nil, fmt.Errorf("line_info: instruction %d follows %d", l.Insn, last.Insn)
		}
		runs = append(runs, l)
	}
	switch {
	case len(runs) == 0:
		return nil, fmt.Errorf("line_info: no record of function %d", i)
	case runs[0].Insn != first || runs[len(runs)-1].Insn-first >= count:
		return nil, fmt.Errorf("line_info: records of the instructions %d to %d, the function has %d to %d",
			runs[0].Insn, runs[len(runs)-1].Insn, first, first+count-1)
	}
	return runs, nil
}
