package dwarf

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// A Growth tracks how much of a section is available while it is being inflated.
type Growth struct {
	mu    sync.Mutex
	cond  sync.Cond
	n     uint64 // bytes that are there
	ended bool
	stop  bool
	err   error
}

func newGrowth() *Growth {
	g := &Growth{}
	g.cond.L = &g.mu
	return g
}

// Wait waits until n bytes are available and returns the available number: fewer than n only if
// the section ended.
func (g *Growth) Wait(n uint64) uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.n < n && !g.ended {
		g.cond.Wait()
	}
	return g.n
}

// Stop ends the growth: the missing bytes are no longer needed.
func (g *Growth) Stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stop = true
}

var errStopped = errors.New("stopped")

// add counts n more bytes as available.
func (g *Growth) add(n int) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.n += uint64(n)
	g.cond.Broadcast()
	if g.stop {
		return errStopped
	}
	return nil
}

func (g *Growth) end(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ended, g.err = true, err
	g.cond.Broadcast()
}

// wait waits for the end and returns the reason of an early end, or nil.
func (g *Growth) wait() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for !g.ended {
		g.cond.Wait()
	}
	return g.err
}

// errFull ends the writing of a section that has all the bytes it claims.
var errFull = errors.New("section is full")

// sectionWriter writes an inflated section to a file, and no more than its size.
type sectionWriter struct {
	f    *os.File
	size uint64
	n    uint64 // written
	grow *Growth
}

func (w *sectionWriter) Write(p []byte) (int, error) {
	n, err := w.f.Write(p[:min(uint64(len(p)), w.size-w.n)])
	w.n += uint64(n)
	if err != nil {
		err = &localError{err}
	}
	if err == nil {
		err = w.grow.add(n)
	}
	if err == nil && n < len(p) {
		err = errFull
	}
	return n, err
}

// fill writes the section.
func (w *sectionWriter) fill(plain io.Reader, done func()) {
	defer done()
	_, err := io.Copy(w, plain)
	switch {
	case errors.Is(err, errFull):
		err = nil
	case err != nil && !errors.Is(err, errStopped):
		err = fmt.Errorf("inflating: %w", err)
	case err == nil && w.n < w.size:
		err = fmt.Errorf("inflates to %d bytes, not %d", w.n, w.size)
	}
	w.grow.end(err)
}
