package progress

import (
	"fmt"
	"io"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// Steps shows the steps of a batch: a bar on a terminal, elsewhere a line now and then. Its
// methods are called by one goroutine at a time.
type Steps struct {
	note  func(string)
	log   pace
	bars  *mpb.Progress // nil off a terminal
	bar   *mpb.Bar
	name  string
	total int
	done  int
}

// NewSteps shows steps on the terminal w, or by notes if w is nil.
func NewSteps(w io.Writer, note func(string)) *Steps {
	p := &Steps{note: note, log: newPace()}
	if w != nil {
		p.bars = mpb.New(mpb.WithOutput(w), mpb.WithWidth(40))
	}
	return p
}

// Step begins a step.
func (p *Steps) Step(name string, total int) {
	p.endBar()
	p.name, p.total, p.done = name, total, 0
	if p.bars != nil {
		p.bar = p.bars.AddBar(int64(total), mpb.PrependDecorators(decor.Name(name+" ")),
			mpb.AppendDecorators(decor.CountersNoUnit(" %d / %d")))
	}
}

// One more of the step's tasks is done.
func (p *Steps) One() {
	p.done++
	if p.bar != nil {
		p.bar.Increment()
		return
	}
	if p.log.due() {
		p.note(fmt.Sprintf("%s: %d of %d", p.name, p.done, p.total))
	}
}

func (p *Steps) endBar() {
	if p.bar != nil {
		p.bar.Abort(true)
		p.bar = nil
	}
}

// Stop takes the bar away.
func (p *Steps) Stop() {
	p.endBar()
	if p.bars != nil {
		p.bars.Wait()
	}
}
