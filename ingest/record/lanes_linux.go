package record

import (
	"sync"
	"time"
)

// lanes run jobs beside their caller: those of one key one after another, those of others at
// the same time, up to a bound of lanes. A job that never returns, as the reading of a file
// whose server is gone, holds up its own key alone.
type lanes[K comparable] struct {
	bound int

	mu      sync.Mutex
	jobs    map[K][]func() // waiting, by keys with a job that runs or waits for a lane
	running int
	waiting []K
	idle    chan struct{} // closed when nothing runs any more; nil: nobody waits for that
}

func newLanes[K comparable](bound int) *lanes[K] {
	return &lanes[K]{bound: bound, jobs: make(map[K][]func())}
}

// run has a job run, soon.
func (l *lanes[K]) run(key K, job func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before, taken := l.jobs[key]
	l.jobs[key] = append(before, job)
	switch {
	case taken:
	case l.running == l.bound:
		l.waiting = append(l.waiting, key)
	default:
		l.running++
		go l.lane(key)
	}
}

// lane runs the jobs of a key, then those of a key that waits.
func (l *lanes[K]) lane(key K) {
	for ok := true; ok; {
		var job func()
		if key, job, ok = l.next(key); ok {
			job()
		}
	}
}

func (l *lanes[K]) next(key K) (K, func(), bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.jobs[key]) == 0 {
		delete(l.jobs, key)
		if len(l.waiting) == 0 {
			if l.running--; l.running == 0 && l.idle != nil {
				close(l.idle)
				l.idle = nil
			}
			return key, nil, false
		}
		key, l.waiting = l.waiting[0], l.waiting[1:]
	}
	job := l.jobs[key][0]
	l.jobs[key] = l.jobs[key][1:]
	return key, job, true
}

// wait waits until all jobs are done, at most so long. It returns the keys that have some
// left.
func (l *lanes[K]) wait(most time.Duration) (left []K) {
	l.mu.Lock()
	if l.running == 0 {
		l.mu.Unlock()
		return nil
	}
	if l.idle == nil {
		l.idle = make(chan struct{})
	}
	idle := l.idle
	l.mu.Unlock()
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-idle:
	case <-timer.C:
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for key := range l.jobs {
		left = append(left, key)
	}
	return left
}
