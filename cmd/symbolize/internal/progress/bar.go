// Package progress draws progress bars on a terminal, and elsewhere has lines printed now and then.
package progress

import (
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"symbolize/store/indexer"
)

// progressDelay is how long a run may take without a progress bar: one that appears for an instant
// is only a flicker.
const progressDelay = 300 * time.Millisecond

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

// Bar is the progress bar of an index run, off a terminal a line now and then. The nil progress
// shows nothing.
type Bar struct {
	note    func(string)
	log     pace
	options []mpb.ContainerOption // nil off a terminal
	start   time.Time
	done    atomic.Uint64 // objects
	objects atomic.Uint64
	p       *mpb.Progress // nil until progressDelay has passed
	bar     *mpb.Bar
}

// New shows progress on the terminal w, or by notes if w is nil.
func New(w io.Writer, note func(string)) *Bar {
	pr := &Bar{note: note, log: newPace(), start: time.Now()}
	if w != nil {
		pr.options = []mpb.ContainerOption{mpb.WithOutput(w), mpb.WithWidth(40)}
	}
	return pr
}

// Update returns the callback for the indexer; nil if nothing is shown.
func (pr *Bar) Update() func(indexer.Progress) {
	if pr == nil {
		return nil
	}
	return func(p indexer.Progress) {
		pr.done.Store(p.Done)
		pr.objects.Store(p.Objects)
		if pr.options == nil {
			if pr.log.due() {
				pr.note(fmt.Sprintf("index: %d of %d MiB, %d of %d objects", p.Bytes>>20, p.Size>>20,
					p.Done, p.Objects))
			}
			return
		}
		if pr.p == nil {
			if time.Since(pr.start) < progressDelay {
				return
			}
			pr.draw()
		}
		pr.bar.SetTotal(int64(p.Size), false)
		pr.bar.SetCurrent(int64(p.Bytes))
	}
}

// draw puts the bar on the terminal.
func (pr *Bar) draw() {
	pr.p = mpb.New(pr.options...)
	pr.bar = pr.p.AddBar(0,
		mpb.PrependDecorators(decor.Name("indexing ")),
		mpb.AppendDecorators(
			decor.CountersKibiByte(" %.1f / %.1f"),
			decor.Any(func(decor.Statistics) string {
				return fmt.Sprintf(", %d/%d objects", pr.done.Load(), pr.objects.Load())
			}),
		),
	)
}

// Stop takes the bar away.
func (pr *Bar) Stop() {
	if pr == nil || pr.p == nil {
		return
	}
	pr.bar.Abort(true)
	pr.p.Wait()
}
