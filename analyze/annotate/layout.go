package annotate

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
)

// rowHeight is the height of a row of instructions in pixels, as style.css has it: arrows are
// drawn beside them.
const rowHeight = 18

// row is a row of the instructions.
type row struct {
	ID, Class             string
	Percent, Heat, Offset string
	Text, Href            string
	Access                string // what an instruction accesses, see Inst
	Line                  string // the ID of the first instruction of its line of source
}

// source is a line of source with instructions.
type source struct {
	File          string // where a file begins
	Gap           bool   // lines without instructions precede it
	Hottest       bool
	Percent, Heat string
	Line          uint32
	Text, Row     string
}

// bpfRow is a BPF instruction, or, without Index, a line of source before its run.
type bpfRow struct {
	Class, Percent, Heat, Index, Text string
	Href                              string // the ID of the first instruction of its run
}

// layout places the parts of a function.
type layout struct {
	out   *function
	f     *Function
	place []int // by instruction: its row, -1 if it is not shown
}

func newLayout(out *function, f *Function) *layout {
	return &layout{out: out, f: f, place: make([]int, len(f.Instructions))}
}

// lineKey is a line of a file.
type lineKey struct {
	file string
	line uint32
}

func keyOf(in *Inst) lineKey { return lineKey{in.File, in.Line} }

// manyInstructions is how many are shown in full; of more, only those near samples.
const (
	manyInstructions = 4000
	nearSamples      = 40
)

// shown reports which instructions are.
func (l *layout) shown() []bool {
	list := l.f.Instructions
	show := make([]bool, len(list))
	for i := range list {
		if len(list) <= manyInstructions {
			show[i] = true
		} else if list[i].Samples > 0 {
			for k := max(0, i-nearSamples); k < min(len(list), i+nearSamples+1); k++ {
				show[k] = true
			}
		}
	}
	return show
}

// rows makes the rows: instructions, and before each run of one line or one inlined call where
// it comes from.
func (l *layout) rows() {
	texts := make(map[lineKey]string)
	for i := range l.f.Lines {
		s := &l.f.Lines[i]
		texts[lineKey{s.File, s.Line}] = s.Source
	}
	show, hidden := l.shown(), 0
	var line lineKey
	var inlined []string
	for i := range l.f.Instructions {
		in := &l.f.Instructions[i]
		l.place[i] = -1
		if i > 0 && l.f.gapBefore(i) {
			l.out.Rows = append(l.out.Rows, row{Class: "gap", Text: "…"})
			line = lineKey{}
		}
		if !show[i] {
			hidden++
			continue
		}
		l.gap(&hidden)
		if !slices.Equal(in.Inlined, inlined) {
			l.out.Rows = append(l.out.Rows, row{Class: "inline", Text: l.f.InlineText(in.Inlined)})
			inlined, line = in.Inlined, lineKey{}
		}
		if k := keyOf(in); k != line {
			if line = k; k.line > 0 {
				l.out.Rows = append(l.out.Rows, row{Class: "line",
					Text: LineText(path.Base(k.file), k.line) + "  " + texts[k]})
			}
		}
		l.place[i] = len(l.out.Rows)
		l.out.Rows = append(l.out.Rows, l.instruction(in))
	}
	l.gap(&hidden)
	l.out.Height = len(l.out.Rows) * rowHeight
}

func (l *layout) gap(hidden *int) {
	if *hidden > 0 {
		l.out.Rows = append(l.out.Rows, row{Class: "gap",
			Text: fmt.Sprintf("… %d instructions without samples", *hidden)})
		*hidden = 0
	}
}

func (l *layout) id(offset int) string { return fmt.Sprintf("%si%x", l.out.ID, offset) }

func (l *layout) instruction(in *Inst) row {
	r := row{ID: l.id(in.Offset), Class: "inst", Offset: strconv.FormatInt(int64(in.Offset), 16),
		Heat: heat(in.Percent), Text: l.f.InstText(in, false), Access: in.Access}
	if in.Samples > 0 {
		r.Percent = percent(in.Percent)
	}
	if in.Hottest {
		r.Class = "hottest"
	}
	if t := in.Target; t != nil && t.Offset != nil && t.Kind != "data" && l.has(*t.Offset) {
		r.Href = l.id(*t.Offset)
	}
	return r
}

// has reports whether an instruction at an offset is shown.
func (l *layout) has(offset int) bool {
	_, ok := slices.BinarySearchFunc(l.f.Instructions, offset,
		func(in Inst, offset int) int { return cmp.Compare(in.Offset, offset) })
	return ok
}

// source makes the pane of lines that have instructions, by file and number: the file of the
// hottest line first.
func (l *layout) source() {
	first := make(map[lineKey]string)
	for i := range l.f.Instructions {
		in := &l.f.Instructions[i]
		if k := keyOf(in); l.place[i] >= 0 && first[k] == "" {
			first[k] = l.id(in.Offset)
		}
	}
	for i := range l.f.Instructions {
		in := &l.f.Instructions[i]
		if at := l.place[i]; at >= 0 && in.Line > 0 {
			l.out.Rows[at].Line = first[keyOf(in)]
		}
	}
	rank := make(map[string]int)
	for i := range l.f.Lines { // heaviest first
		if file := l.f.Lines[i].File; rank[file] == 0 {
			rank[file] = len(rank) + 1
		}
	}
	lines := slices.Clone(l.f.Lines)
	slices.SortFunc(lines, func(a, b Line) int {
		return cmp.Or(cmp.Compare(rank[a.File], rank[b.File]), cmp.Compare(a.Line, b.Line))
	})
	for i := range lines {
		s := &lines[i]
		row, ok := first[lineKey{s.File, s.Line}]
		if !ok {
			continue
		}
		out := source{Line: s.Line, Text: s.Source, Row: row, Heat: heat(s.Percent),
			Hottest: s.Hottest}
		if s.Samples > 0 {
			out.Percent = percent(s.Percent)
		}
		switch {
		case i == 0 || lines[i-1].File != s.File:
			out.File = cmp.Or(s.File, "source")
		case lines[i-1].Line+1 < s.Line:
			out.Gap = true
		}
		l.out.Source = append(l.out.Source, out)
	}
}

// bpf makes the rows of BPF instructions, with links from runs to their code.
func (l *layout) bpf() {
	layer := l.f.BPF
	if layer == nil {
		return
	}
	l.out.BPFTitle = counted(uint64(layer.Instructions), "BPF instruction") + " after the verifier"
	if layer.Object != "" {
		l.out.BPFTitle += "; - before it, in " + layer.Object
	}
	if layer.OneRun != "" {
		l.out.Notes = append(l.out.Notes, "which code the BPF instructions became is not known: "+layer.OneRun)
	}
	var last lineKey
	for i := range layer.Runs {
		r := &layer.Runs[i]
		if k := (lineKey{r.File, r.Line}); r.Line != 0 && k != last {
			l.out.BPF = append(l.out.BPF, bpfRow{Class: "line",
				Text: LineText(path.Base(k.file), k.line) + "  " + r.source})
			last = k
		}
		for n, x := range r.rows {
			row := layer.row(x)
			if n == 0 && r.Samples > 0 {
				row.Percent, row.Heat = percent(r.Percent), heat(r.Percent)
			}
			if n == 0 && l.has(r.Offset) && r.Length > 0 {
				row.Href = l.id(r.Offset)
			}
			l.out.BPF = append(l.out.BPF, row)
		}
		for i := range r.Removed {
			for _, in := range r.Removed[i].Original {
				l.out.BPF = append(l.out.BPF, layer.row(layerRow{'-', in}))
			}
		}
	}
}

// row is the row of an instruction, marked if those before the verifier are known.
func (layer *BPFLayer) row(x layerRow) bpfRow {
	text := x.Text
	if layer.Object != "" {
		text = string(x.mark) + " " + text
	}
	return bpfRow{Index: strconv.Itoa(x.Index), Text: text}
}
