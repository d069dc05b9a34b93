package cli

import (
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"symbolize/store/indexer"
	"symbolize/store/remote"
)

// progressDelay is the time without a progress bar: short runs would only make it flicker.
const progressDelay = 300 * time.Millisecond

// barWidth is the width of a bar with its numbers, in columns.
const barWidth = 72

// logEvery is the least time between two lines about progress off a terminal.
const logEvery = 30 * time.Second

// pace decides when the next line about progress is due.
type pace struct {
	now  func() time.Time
	last time.Time // of the last line, or the first progress; zero before that
}

func newPace() pace { return pace{now: time.Now} }

// due counts from its first call on: the time before that was none of the work, as where another
// process had the store's lock.
func (p *pace) due() bool {
	now := p.now()
	if p.last.IsZero() {
		p.last = now
	}
	if now.Sub(p.last) < logEvery {
		return false
	}
	p.last = now
	return true
}

// Bar is a progress bar of bytes and parts, off a terminal a line now and then. The nil Bar shows
// nothing.
type Bar struct {
	verb    string // "index"
	parts   string // "objects"
	note    func(string)
	log     pace
	options []mpb.ContainerOption // nil off a terminal
	start   time.Time
	done    atomic.Int64 // parts
	of      atomic.Int64
	p       *mpb.Progress // nil until progressDelay has passed
	bar     *mpb.Bar
}

// NewBar shows progress of what a verb does with parts on the terminal w, or by notes if w is nil.
func NewBar(w io.Writer, verb, parts string, note func(string)) *Bar {
	pr := &Bar{verb: verb, parts: parts, note: note, log: newPace(), start: time.Now()}
	if w != nil {
		pr.options = []mpb.ContainerOption{mpb.WithOutput(w), mpb.WithWidth(barWidth)}
	}
	return pr
}

// Update returns the callback for the indexer; nil if nothing is shown.
func (pr *Bar) Update() func(indexer.Progress) {
	if pr == nil {
		return nil
	}
	return func(p indexer.Progress) {
		pr.Show(remote.Progress{Done: int(p.Done), Objects: int(p.Objects), Bytes: int64(p.Bytes),
			Size: int64(p.Size)})
	}
}

// Show shows how far the work is. It is not called concurrently.
func (pr *Bar) Show(p remote.Progress) {
	if pr == nil {
		return
	}
	pr.done.Store(int64(p.Done))
	pr.of.Store(int64(p.Objects))
	if pr.options == nil {
		if pr.log.due() {
			pr.note(fmt.Sprintf("%s: %d of %d MiB, %d of %d %s", pr.verb, p.Bytes>>20, p.Size>>20,
				p.Done, p.Objects, pr.parts))
		}
		return
	}
	if pr.p == nil {
		if time.Since(pr.start) < progressDelay {
			return
		}
		pr.draw()
	}
	pr.bar.SetTotal(p.Size, false)
	pr.bar.SetCurrent(p.Bytes)
}

// draw puts the bar on the terminal.
func (pr *Bar) draw() {
	pr.p = mpb.New(pr.options...)
	pr.bar = pr.p.AddBar(0,
		mpb.PrependDecorators(decor.Name(pr.verb+" ")),
		mpb.AppendDecorators(
			decor.CountersKibiByte(" %.1f / %.1f"),
			decor.Any(func(decor.Statistics) string {
				return fmt.Sprintf(", %d/%d %s", pr.done.Load(), pr.of.Load(), pr.parts)
			}),
		),
	)
}

// Stop removes the bar.
func (pr *Bar) Stop() {
	if pr == nil || pr.p == nil {
		return
	}
	pr.bar.Abort(true)
	pr.p.Wait()
}

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
		p.bars = mpb.New(mpb.WithOutput(w), mpb.WithWidth(barWidth))
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

// Stop removes the bar.
func (p *Steps) Stop() {
	p.endBar()
	if p.bars != nil {
		p.bars.Wait()
	}
}
