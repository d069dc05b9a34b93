package dwarf

import (
	"sort"
	"sync"
	"sync/atomic"
)

// unitList holds the units of a Data by offset. The scan appends to it while others read; readers
// wait for units that have not been found yet.
type unitList struct {
	mu   sync.Mutex
	cond sync.Cond
	list []*unit
	slab []unit      // that list points into
	all  atomic.Bool // list no longer changes
}

// unitSlab is how many units are allocated together.
const unitSlab = 64

// add appends a unit, which must not change any more.
func (l *unitList) add(u unit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.slab) == cap(l.slab) {
		l.slab = make([]unit, 0, unitSlab)
	}
	l.slab = append(l.slab, u)
	l.list = append(l.list, &l.slab[len(l.slab)-1])
	l.cond.Broadcast()
}

// close marks the list as complete.
func (l *unitList) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all.Store(true)
	l.cond.Broadcast()
}

// read calls f with the known units until it reports true, or all are known.
func (l *unitList) read(f func([]*unit) bool) {
	if l.all.Load() {
		f(l.list)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for !f(l.list) && !l.all.Load() {
		l.cond.Wait()
	}
}

// at returns unit i, nil if there are fewer.
func (l *unitList) at(i int) (u *unit) {
	l.read(func(list []*unit) bool {
		if i < len(list) {
			u = list[i]
		}
		return u != nil
	})
	return u
}

// around returns the unit that contains this offset of .debug_info, or nil.
func (l *unitList) around(off uint64) (u *unit) {
	l.read(func(list []*unit) bool {
		i := sort.Search(len(list), func(i int) bool { return list[i].end > off })
		if i == len(list) {
			return false
		}
		if off >= list[i].off {
			u = list[i]
		}
		return true
	})
	return u
}

// wait waits until all units are known.
func (l *unitList) wait() {
	l.read(func([]*unit) bool { return false })
}
