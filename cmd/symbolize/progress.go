package main

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"symbolize/store/indexer"
)

// progressDelay is how long a run may take without a progress bar: one that
// appears for an instant is only a flicker.
const progressDelay = 300 * time.Millisecond

// progress is the progress bar of an index run. The nil progress shows nothing.
type progress struct {
	options []mpb.ContainerOption
	start   time.Time
	done    atomic.Uint64 // objects
	objects atomic.Uint64
	p       *mpb.Progress // nil until progressDelay has passed
	bar     *mpb.Bar
}

// startProgress returns a progress bar on stderr, or nil where there is no
// terminal to draw on or messages are off.
func (a *app) startProgress() *progress {
	if a.quiet || !a.env.StderrTerminal || a.env.Getenv("TERM") == "dumb" {
		return nil
	}
	return &progress{
		options: []mpb.ContainerOption{mpb.WithOutput(a.env.Stderr), mpb.WithWidth(40)},
		start:   time.Now(),
	}
}

// update returns the callback for the indexer; nil if nothing is shown.
func (pr *progress) update() func(indexer.Progress) {
	if pr == nil {
		return nil
	}
	return func(p indexer.Progress) {
		pr.done.Store(p.Done)
		pr.objects.Store(p.Objects)
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
func (pr *progress) draw() {
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

// stop takes the bar away.
func (pr *progress) stop() {
	if pr == nil || pr.p == nil {
		return
	}
	pr.bar.Abort(true)
	pr.p.Wait()
}
