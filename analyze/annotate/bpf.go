package annotate

import (
	"regexp"
	"slices"
	"sort"

	"symbolize/analyze/disasm"
	"symbolize/ingest/texts"
)

// BPFCode has the BPF instructions that a function was compiled from.
type BPFCode struct {
	First        uint32 // number of the first one in the program, in units of 8 bytes
	Instructions []disasm.BPFInst
	// Runs relate them to the code, sorted by both; the first begins at 0.
	Runs   []BPFRun
	OneRun string // the reason why the whole function is one run, "" if it is not
	Object string // the file that has the instructions before the verifier, "" for none
}

// BPFRun begins a run of BPF instructions and its code.
type BPFRun struct {
	Index  int    // of the first instruction, in units of 8 bytes from the function's first
	Offset uint32 // of its code, bytes; the next run's if it has no code
	// Line is the run's line of source, 0 for code that the compiler added.
	CodeLine
	// Original are the instructions of the run before the verifier, numbered in their function; nil
	// if they are not known.
	Original []disasm.BPFInst
	// Removed follow the run in the object file: the verifier removed them.
	Removed []BPFRemoved
}

// BPFRemoved is a run of BPF instructions that never runs.
type BPFRemoved struct {
	Original []disasm.BPFInst
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
	// Object is the file that has the instructions before the verifier.
	Object string `json:"object_file,omitempty"`
	// Without counts the samples of images without known BPF instructions.
	Without uint64 `json:"samples_without,omitempty"`
}

// LayerRun is a run of BPF instructions with the samples of its code.
type LayerRun struct {
	Instructions []LayerInst `json:"instructions"`
	Offset       int         `json:"offset"` // of its code, from the function's start
	Length       int         `json:"length"` // of its code, bytes; 0: it has no code
	Samples      uint64      `json:"samples"`
	Weight       uint64      `json:"weight"`
	Percent      float64     `json:"function_percent"` // of the function's samples
	File         string      `json:"file,omitempty"`
	Line         uint32      `json:"line,omitempty"`
	Column       uint32      `json:"column,omitempty"`
	source       string
	// Original are the instructions before the verifier, if they are known and differ.
	Original []LayerInst    `json:"original,omitempty"`
	Removed  []LayerRemoved `json:"removed,omitempty"` // what followed it before the verifier
	rows     []layerRow
}

// LayerRemoved is a run that the verifier removed.
type LayerRemoved struct {
	Original []LayerInst `json:"original"`
	File     string      `json:"file,omitempty"`
	Line     uint32      `json:"line,omitempty"`
	source   string
}

// layerRow is an instruction after the verifier, with ' ' if it was the same before it, '+' if not,
// or with '-' one of before it.
type layerRow struct {
	mark rune
	LayerInst
}

// LayerInst is a BPF instruction.
type LayerInst struct {
	Index int    `json:"index"` // in the whole program, in units of 8 bytes
	Text  string `json:"text"`
}

// layer makes the layer of BPF instructions, after the samples were placed.
func (a *annotator) layer(code *BPFCode) *BPFLayer {
	layer := &BPFLayer{OneRun: texts.Printable(code.OneRun), Object: texts.Printable(code.Object)}
	list := code.Instructions
	for i, r := range code.Runs {
		end, next := len(a.code.Bytes), -1
		if i+1 < len(code.Runs) {
			end, next = int(code.Runs[i+1].Offset), code.Runs[i+1].Index
		}
		run := LayerRun{Offset: int(r.Offset), Length: end - int(r.Offset), File: texts.Printable(r.File),
			Line: r.Line, Column: r.Column, source: sourceText(r.Source)}
		n := len(list)
		if next >= 0 {
			n = sort.Search(n, func(k int) bool { return list[k].Index >= next })
		}
		for _, in := range list[:n] {
			run.Instructions = append(run.Instructions,
				LayerInst{Index: int(code.First) + in.Index, Text: texts.Printable(in.Text)})
			layer.Instructions += in.Size
		}
		list = list[n:]
		run.compare(&r, code.Object != "")
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

// compare adds the instructions before the verifier to a run.
func (run *LayerRun) compare(r *BPFRun, known bool) {
	before := layerInsts(r.Original)
	if !known {
		before = run.Instructions
	}
	run.rows = diffInsts(before, run.Instructions)
	if slices.ContainsFunc(run.rows, func(x layerRow) bool { return x.mark != ' ' }) {
		run.Original = before
	}
	for i := range r.Removed {
		x := &r.Removed[i]
		run.Removed = append(run.Removed, LayerRemoved{Original: layerInsts(x.Original),
			File: texts.Printable(x.File), Line: x.Line, source: sourceText(x.Source)})
	}
}

func layerInsts(list []disasm.BPFInst) []LayerInst {
	var out []LayerInst
	for _, in := range list {
		out = append(out, LayerInst{Index: in.Index, Text: texts.Printable(in.Text)})
	}
	return out
}

// maxDiff bounds the product of the lengths of two runs that are compared one by one.
const maxDiff = 1 << 20

// diffInsts compares the instructions of a run before and after the verifier: the longest common
// sequence, in which distances of jumps, numbers of helpers and maps do not count.
func diffInsts(before, after []LayerInst) (rows []layerRow) {
	n, m := len(before), len(after)
	same := func(i, k int) bool { return i < n && k < m && plainInst(before[i].Text) == plainInst(after[k].Text) }
	var longest []int // (n+1)×(m+1): of what follows i and k
	if n*m <= maxDiff {
		longest = make([]int, (n+1)*(m+1))
		for i := n - 1; i >= 0; i-- {
			for k := m - 1; k >= 0; k-- {
				at := i*(m+1) + k
				if longest[at] = max(longest[at+1], longest[at+m+1]); same(i, k) {
					longest[at] = longest[at+m+2] + 1
				}
			}
		}
	}
	for i, k := 0, 0; i < n || k < m; {
		switch {
		case longest != nil && same(i, k):
			x := after[k]
			if name := instMap.FindString(before[i].Text); name != "" { // a map has a name before
				x.Text = instMap.ReplaceAllLiteralString(x.Text, name)
			}
			rows = append(rows, layerRow{' ', x})
			i, k = i+1, k+1
		case i < n && (k == m || longest == nil || longest[(i+1)*(m+1)+k] >= longest[i*(m+1)+k+1]):
			rows = append(rows, layerRow{'-', before[i]})
			i++
		default:
			rows = append(rows, layerRow{'+', after[k]})
			k++
		}
	}
	return rows
}

var (
	instJump = regexp.MustCompile(`\bpc[+-][0-9]+`)
	instMap  = regexp.MustCompile(`\bmap\[[^]]*\]`)
	instCall = regexp.MustCompile(`#.*`)
)

// plainInst is the text of an instruction without what differs between loads.
func plainInst(text string) string {
	text = instCall.ReplaceAllString(text, "")
	return instMap.ReplaceAllString(instJump.ReplaceAllString(text, "pc"), "map")
}
