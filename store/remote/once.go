package remote

import (
	"sync"

	"symbolize/store"
)

// onceEach calls a function once for each input, for all objects that have it.
type onceEach struct {
	mu    sync.Mutex
	calls map[store.Digest]*call
}

// call is a call that is under way, or was.
type call struct {
	done chan struct{}
	came bool
	err  error
}

// do calls fn, or returns what another call for the input has returned. After an error the next one tries
// again.
func (o *onceEach) do(id store.Digest, fn func() (came bool, err error)) (came bool, err error) {
	o.mu.Lock()
	c := o.calls[id]
	if c != nil {
		o.mu.Unlock()
		<-c.done
		return c.came, c.err
	}
	c = &call{done: make(chan struct{})}
	if o.calls == nil {
		o.calls = make(map[store.Digest]*call)
	}
	o.calls[id] = c
	o.mu.Unlock()
	if c.came, c.err = fn(); c.err != nil {
		o.mu.Lock()
		delete(o.calls, id)
		o.mu.Unlock()
	}
	close(c.done)
	return c.came, c.err
}
