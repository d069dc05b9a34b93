package diff

import (
	"io"

	"symbolize/analyze/calltree"
)

// WriteFolded writes the stacks of both sides, for differential flame graphs of others. With
// normalize the new side is scaled to the base's total.
func (f *Folded) WriteFolded(w io.Writer, normalize bool) error {
	both := calltree.Compare(f.New, f.Base)
	scale := 1.0
	if normalize && both.Total > 0 && both.BaseTotal > 0 {
		scale = float64(both.BaseTotal) / float64(both.Total)
	}
	return both.WriteFolded(w, calltree.FoldedOptions{Scale: scale})
}
