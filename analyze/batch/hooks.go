package batch

import (
	"context"
	"encoding/json"
	"sync"

	"symbolize/ingest"
	"symbolize/ingest/files"
)

// Hooks are called with the events of a run, from one goroutine at a time. Each may be nil, and so
// may a pointer to them.
type Hooks struct {
	Step     func(name string, total int)           // a step begins
	Done     func()                                 // one more of the step's is done
	OnFailed func(capture string, err error)        // a capture is left out
	OnWarn   func(capture string, w ingest.Warning) // about a capture, or the names of a group
	// OnUnwritten gets the errors of files of names and of profiles that could not be written;
	// collected captures are reported to OnFailed.
	OnUnwritten func(err error)

	// Facts returns facts about a named profile as JSON, which are kept with it, and OnFacts gets
	// them for each profile, also for one that an earlier run has written.
	Facts   func(p *ingest.Profile) []byte
	OnFacts func(facts []byte)

	mu sync.Mutex // held while a hook runs
}

// call calls f, one call at a time. Without hooks it does not.
func (h *Hooks) call(f func()) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
}

func (h *Hooks) step(name string, total int) {
	h.call(func() {
		if h.Step != nil {
			h.Step(name, total)
		}
	})
}

func (h *Hooks) done() {
	h.call(func() {
		if h.Done != nil {
			h.Done()
		}
	})
}

func (h *Hooks) failed(capture string, err error) {
	h.call(func() {
		if h.OnFailed != nil {
			h.OnFailed(capture, err)
		}
	})
}

func (h *Hooks) unwritten(err error) {
	h.call(func() {
		if h.OnUnwritten != nil {
			h.OnUnwritten(err)
		}
	})
}

func (h *Hooks) warn(capture string, w ingest.Warning) {
	h.call(func() {
		if h.OnWarn != nil {
			h.OnWarn(capture, w)
		}
	})
}

// warnCapture passes on the warnings of a capture, with a path of it in front.
func (h *Hooks) warnCapture(path string, list []ingest.Warning) {
	for _, w := range list {
		w.Text = path + ": " + w.Text
		h.warn(path, w)
	}
}

func (h *Hooks) facts(list []json.RawMessage) {
	h.call(func() {
		for _, f := range list {
			if h.OnFacts != nil {
				h.OnFacts(f)
			}
		}
	})
}

// steps is files.Each for a step that the hooks are called with.
func steps(ctx context.Context, workers int, h *Hooks, name string, n int,
	do func(ctx context.Context, i int) error) error {
	h.step(name, n)
	return files.Each(ctx, workers, n, func(ctx context.Context, i int) error {
		err := do(ctx, i)
		if err == nil {
			h.done()
		}
		return err
	})
}
