package indexer

import (
	"cmp"
	"slices"
	"sync"
)

// queue holds the tasks of one Index. Objects go before directories, so that no more than one
// directory's objects a worker are waiting at any time; and of the objects the largest, so that it
// does not end alone on one core.
type queue struct {
	mu      sync.Mutex
	cond    *sync.Cond
	objects []objectTask // the next one last
	dirs    []func(*fileReader)
	open    int // tasks queued or running
	stopped bool
}

func newQueue() *queue {
	q := &queue{}
	q.cond = sync.NewCond(&q.mu)
	return q
}

// objectTask is a task of one object.
type objectTask struct {
	size uint64 // of its file, bytes
	run  func(*fileReader)
}

// pushObject adds a task of an object with a file of this size.
func (q *queue) pushObject(size uint64, task func(*fileReader)) {
	q.push(func() {
		at, _ := slices.BinarySearchFunc(q.objects, size, func(t objectTask, size uint64) int {
			return cmp.Or(cmp.Compare(t.size, size), -1) // after its equals
		})
		q.objects = slices.Insert(q.objects, at, objectTask{size, task})
	})
}

func (q *queue) pushDir(task func(*fileReader)) {
	q.push(func() { q.dirs = append(q.dirs, task) })
}

func (q *queue) push(add func()) {
	q.mu.Lock()
	add()
	q.open++
	q.mu.Unlock()
	q.cond.Signal()
}

// pop waits for a task. ok is false when there will be none any more.
func (q *queue) pop() (task func(*fileReader), ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for !q.stopped && q.open > 0 {
		if n := len(q.objects); n > 0 {
			task = q.objects[n-1].run
			q.objects = slices.Delete(q.objects, n-1, n)
			return task, true
		}
		if n := len(q.dirs); n > 0 {
			task = q.dirs[n-1]
			q.dirs = slices.Delete(q.dirs, n-1, n)
			return task, true
		}
		q.cond.Wait()
	}
	return nil, false
}

// done records the end of a task that pop returned.
func (q *queue) done() {
	q.mu.Lock()
	q.open--
	last := q.open == 0
	q.mu.Unlock()
	if last {
		q.cond.Broadcast()
	}
}

// stop lets all workers end after their present task.
func (q *queue) stop() {
	q.mu.Lock()
	q.stopped = true
	q.mu.Unlock()
	q.cond.Broadcast()
}

// claims have each file read once in a run, although several paths lead to it.
type claims struct {
	mu sync.Mutex
	m  map[fileKey]*claim
}

// claim is one file that is read or being read.
type claim struct {
	path   string
	walked bool          // met by the walk, not only as another file's debug file
	done   chan struct{} // closed when res is set, and nil from then on
	res    fileResult
}

// turn is the result of a claim for its caller.
type turn struct {
	read   bool             // the caller is to read the file, and then call finish
	first  bool             // no task has before
	again  bool             // the walk has met this file before
	finish func(fileResult) // set with read
	res    fileResult       // without read: the earlier result
}

// begin claims a file. The first task reads it, and so does a later one with a smaller path: the
// store keeps the smallest path, which must not depend on the order of tasks. The others wait for
// the result.
func (c *claims) begin(key fileKey, path string, walked bool) turn {
	if key.ino == 0 { // a system without inode numbers
		return turn{read: true, first: true, finish: func(fileResult) {}}
	}
	c.mu.Lock()
	old := c.m[key]
	again := old != nil && old.walked && walked
	if old != nil && old.path <= path {
		old.walked = old.walked || walked
		done := old.done
		c.mu.Unlock()
		if done != nil {
			<-done
		}
		return turn{again: again, res: old.res}
	}
	cl := &claim{path: path, walked: walked || old != nil && old.walked, done: make(chan struct{})}
	if c.m == nil {
		c.m = make(map[fileKey]*claim)
	}
	c.m[key] = cl
	c.mu.Unlock()
	return turn{read: true, first: old == nil, again: again, finish: func(res fileResult) {
		c.mu.Lock()
		defer c.mu.Unlock()
		cl.res = res
		close(cl.done)
		cl.done = nil
	}}
}
