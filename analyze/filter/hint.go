package filter

import (
	"symbolize/analyze/advice"
	"symbolize/ingest/object/bpf"
)

// Hint returns the step that names the remaining places, "" for none.
func (l *Left) Hint() string {
	if _, name, isBPF := bpf.SplitSymbol(l.Object); isBPF {
		p := advice.Program{Reason: l.Reason, Name: bpf.NameOf(name), OtherTag: l.OtherTag,
			Lineless: l.Lineless}
		return p.Step()
	}
	t := advice.Text{Reason: l.Reason, Object: l.Object, Module: l.Module, File: l.File,
		LateMaps: l.LateMaps}
	return t.Step()
}
