package annotate

import (
	"sort"

	"symbolize/analyze/disasm"
	"symbolize/ingest"
)

// BPFCode has the BPF instructions that a function was compiled from.
type BPFCode struct {
	First        uint32 // number of the first one in the program, in units of 8 bytes
	Instructions []disasm.BPFInst
	// Runs relate them to the code, sorted by both; the first begins at 0.
	Runs   []BPFRun
	OneRun string // the reason why the whole function is one run, "" if it is not
}

// BPFRun begins a run of BPF instructions and its code.
type BPFRun struct {
	Index  int    // of the first instruction, in units of 8 bytes from the function's first
	Offset uint32 // of its code, bytes; that of the next run if it has no code
	// Line is the run's line of source, 0 for code that the compiler added.
	CodeLine
}

// BPFLayer has the BPF instructions of a function with the samples of their code.
type BPFLayer struct {
	// Instructions is the number of BPF instructions in units of 8 bytes.
	Instructions int `json:"instructions"`
	// Runs are the runs of BPF instructions for which the kernel knows the code.
	Runs []LayerRun `json:"runs"`
	// OneRun is the reason why the whole function is one run.
	OneRun string `json:"one_run,omitempty"`
	// Without counts the samples of images without known BPF instructions.
	Without uint64 `json:"samples_without,omitempty"`
}

// LayerRun is a run of BPF instructions with the samples of its code.
type LayerRun struct {
	Instructions []LayerInst `json:"instructions"`
	Offset       int         `json:"offset"` // of its code, from the function's start
	Length       int         `json:"length"` // of its code, bytes; 0: it has none of its own
	Samples      uint64      `json:"samples"`
	Weight       uint64      `json:"weight"`
	Percent      float64     `json:"function_percent"` // of the function's samples
	File         string      `json:"file,omitempty"`
	Line         uint32      `json:"line,omitempty"`
	Column       uint32      `json:"column,omitempty"`
	source       string
}

// LayerInst is a BPF instruction.
type LayerInst struct {
	Index int    `json:"index"` // in the whole program, in units of 8 bytes
	Text  string `json:"text"`
}

// layer makes the layer of BPF instructions, after the samples were placed.
func (a *annotator) layer(code *BPFCode) *BPFLayer {
	layer := &BPFLayer{OneRun: ingest.Printable(code.OneRun)}
	list := code.Instructions
	for i, r := range code.Runs {
		end, next := len(a.code.Bytes), -1
		if i+1 < len(code.Runs) {
			end, next = int(code.Runs[i+1].Offset), code.Runs[i+1].Index
		}
		run := LayerRun{Offset: int(r.Offset), Length: end - int(r.Offset), File: ingest.Printable(r.File),
			Line: r.Line, Column: r.Column, source: sourceText(r.Source)}
		n := len(list)
		if next >= 0 {
			n = sort.Search(n, func(k int) bool { return list[k].Index >= next })
		}
		for _, in := range list[:n] {
			run.Instructions = append(run.Instructions,
				LayerInst{Index: int(code.First) + in.Index, Text: ingest.Printable(in.Text)})
			layer.Instructions += in.Size
		}
		list = list[n:]
		from := sort.Search(len(a.insts), func(k int) bool { return a.insts[k].Offset >= run.Offset })
		for k := from; k < len(a.insts) && a.insts[k].Offset < end; k++ {
			run.Samples += a.insts[k].Samples
			run.Weight += a.insts[k].Weight
		}
		layer.Runs = append(layer.Runs, run)
	}
	for i := range a.others {
		layer.Without += a.others[i].addRuns(layer.Runs)
	}
	for i := range layer.Runs {
		run := &layer.Runs[i]
		run.Percent = sharePercent(a.value(run.Samples, run.Weight), a.total)
	}
	return layer
}
