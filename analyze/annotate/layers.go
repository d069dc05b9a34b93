package annotate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Layers are the layers of a BPF program that a text has. Other code has no BPF instructions, and is
// printed with its source and machine code. 0 is DefaultLayers,
// without the line about the other layers.
type Layers uint8

// The layers, from the outermost.
const (
	Source          Layers = 1 << iota // lines of source
	BPFInstructions                    // after the verifier
	MachineCode
)

// DefaultLayers are those of any code.
const DefaultLayers = Source | MachineCode

// LayerNames are the words for the layers, in their order.
var LayerNames = []string{"c", "bpf", "asm"}

// ParseLayers returns the layers of a list of words with commas between them.
func ParseLayers(list string) (Layers, error) {
	var layers Layers
	for word := range strings.SplitSeq(list, ",") {
		i := slices.Index(LayerNames, word)
		if i < 0 {
			return 0, fmt.Errorf("layer %q is not one of %s", word, strings.Join(LayerNames, ", "))
		}
		layers |= 1 << i
	}
	return layers, nil
}

// has reports whether the text has a layer.
func (t *annotateWriter) has(layer Layers) bool {
	return cmp.Or(t.style.Layers, DefaultLayers)&layer != 0
}

// layerNote writes how many BPF instructions a function has, or why they are not known.
func (t *annotateWriter) layerNote(f *Function) {
	shown := t.has(BPFInstructions)
	switch {
	case t.style.Layers == 0:
	case f.BPF != nil && shown:
		fmt.Fprintf(t, "  BPF: %s after the verifier\n", counted(uint64(f.BPF.Instructions), "instruction"))
		if f.BPF.Object != "" {
			fmt.Fprintf(t, "  BPF before the verifier (-): %s\n", f.BPF.Object)
		}
		if f.BPF.OneRun != "" {
			fmt.Fprintf(t, "  note: which code they became is not known: %s\n", f.BPF.OneRun)
		}
		if f.BPF.Without > 0 {
			fmt.Fprintf(t, "  note: of images without BPF instructions: %s\n", counted(f.BPF.Without, "sample"))
		}
	case f.BPF != nil:
		fmt.Fprintf(t, "  BPF: %s after the verifier (--layers %s)\n",
			counted(uint64(f.BPF.Instructions), "instruction"), strings.Join(LayerNames, ","))
	case f.NoBPF != "" && shown:
		fmt.Fprintf(t, "  note: no BPF instructions: %s\n", f.NoBPF)
	}
}

// layers writes the runs of BPF instructions: before each its line of source where that changes, and
// after it its code.
func (t *annotateWriter) layers(f *Function) {
	w := t.whereWidth(f)
	lines := make(map[lineKey]*Line)
	for i := range f.Lines {
		lines[lineKey{f.Lines[i].File, f.Lines[i].Line}] = &f.Lines[i]
	}
	var last lineKey
	rest := f.Instructions
	for i := range f.BPF.Runs {
		r := &f.BPF.Runs[i]
		key := lineKey{r.File, r.Line}
		if t.has(Source) && r.Line != 0 && key != last {
			l := lines[key]
			if l == nil { // it has no code
				l = &Line{File: r.File, Line: r.Line, Source: r.source}
			}
			t.sourceRow(w, l)
			last = key
		}
		for k, x := range r.rows {
			share := ""
			if k == 0 && r.Samples > 0 {
				share = fmt.Sprintf("%.2f", r.Percent)
			}
			t.bpfRow(w, share, f, x)
		}
		for len(rest) > 0 && rest[0].Offset < r.Offset+r.Length {
			if t.has(MachineCode) {
				t.instruction(w, &rest[0], f)
			}
			rest = rest[1:]
		}
		for i := range r.Removed {
			x := &r.Removed[i]
			if t.has(Source) && x.Line != 0 {
				t.sourceRow(w, &Line{File: x.File, Line: x.Line, Source: x.source})
				last = lineKey{}
			}
			for _, in := range x.Original {
				t.bpfRow(w, "", f, layerRow{'-', in})
			}
		}
	}
}

// bpfRow writes a BPF instruction; marked, if those before the verifier are known.
func (t *annotateWriter) bpfRow(w int, share string, f *Function, x layerRow) {
	text := fmt.Sprintf("%4d: %s", x.Index, x.Text)
	if f.BPF.Object != "" {
		text = fmt.Sprintf("%c %4d: %s", x.mark, x.Index, x.Text)
	}
	t.row(w, share, text)
}
