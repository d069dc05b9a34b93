package main

import (
	"fmt"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// batchLogEvery is the least time between two lines about the progress of a batch off a terminal.
const batchLogEvery = 30 * time.Second

// batchProgress shows the steps of a batch: a bar on a terminal, elsewhere a line now and then. Its
// methods are called by one goroutine at a time.
type batchProgress struct {
	a       *app
	now     func() time.Time
	bars    *mpb.Progress // nil off a terminal
	bar     *mpb.Bar
	name    string
	total   int
	done    int
	written time.Time // the last line, or the start
}

func (a *app) newBatchProgress() *batchProgress {
	p := &batchProgress{a: a, now: time.Now, written: time.Now()}
	if !a.quiet && a.env.StderrTerminal && a.env.Getenv("TERM") != "dumb" {
		p.bars = mpb.New(mpb.WithOutput(a.env.Stderr), mpb.WithWidth(40))
	}
	return p
}

// step begins a step.
func (p *batchProgress) step(name string, total int) {
	p.endBar()
	p.name, p.total, p.done = name, total, 0
	if p.bars != nil {
		p.bar = p.bars.AddBar(int64(total), mpb.PrependDecorators(decor.Name(name+" ")),
			mpb.AppendDecorators(decor.CountersNoUnit(" %d / %d")))
	}
}

// one more of the step's tasks is done.
func (p *batchProgress) one() {
	p.done++
	if p.bar != nil {
		p.bar.Increment()
		return
	}
	if now := p.now(); now.Sub(p.written) >= batchLogEvery {
		p.written = now
		p.a.note(fmt.Sprintf("%s: %d of %d", p.name, p.done, p.total))
	}
}

func (p *batchProgress) endBar() {
	if p.bar != nil {
		p.bar.Abort(true)
		p.bar = nil
	}
}

// stop takes the bar away.
func (p *batchProgress) stop() {
	p.endBar()
	if p.bars != nil {
		p.bars.Wait()
	}
}
