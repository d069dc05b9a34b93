package history

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"symbolize/ingest/addr"
	"symbolize/ingest/record/sampler"
)

// CodeLog has the changes of kernel addresses by the records: when BPF programs and modules came
// and went. The reader of the rings adds them, the sampler asks for them
// (sampler.Changes). Those of a range are kept until nobody can ask for their time any more.
type CodeLog struct {
	ask   func() // has the rings drained
	then  func() // called when they were
	asked atomic.Uint64

	mu     sync.Mutex
	cond   *sync.Cond // when done or ended changes
	done   uint64     // of asked, the number up to which the rings were drained
	ended  bool       // the rings are not read any more
	pages  map[uint64][]change
	count  int
	losses []codeLoss
	// forgotten is the time before which only the last change of each range is known.
	forgotten uint64
}

// change is a range that was mapped or unmapped.
type change struct{ time, start, end uint64 }

// codeLoss is a time in which changes of a range may have been lost. From until on its contents are
// known again, by records of that time.
type codeLoss struct{ from, to, start, end, until uint64 }

// never is the until of losses after which nobody has looked.
const never = math.MaxUint64

const (
	changePage = 12 // log2 of the bytes of a key in pages
	// maxChangePages bounds the pages that are noted of one change: a module has fewer.
	maxChangePages = 1 << 14
	maxChanges     = 1 << 21 // of all pages; further ones are lost
	maxCodeLosses  = 1 << 10
)

// NewCodeLog returns a log without changes. ask has the rings drained, then is called when they were.
func NewCodeLog(ask, then func()) *CodeLog {
	c := &CodeLog{ask: ask, then: then, pages: make(map[uint64][]change)}
	c.cond = sync.NewCond(&c.mu)
	return c
}

// Add notes a change. It may be called on nil.
func (c *CodeLog) Add(time, start, length uint64) {
	if c == nil || length == 0 || time == 0 { // at time 0 it was there before
		return
	}
	end := endOf(start, length)
	c.mu.Lock()
	defer c.mu.Unlock()
	first, last := start>>changePage, (end-1)>>changePage
	if last-first >= maxChangePages || c.count+int(last-first) >= maxChanges {
		c.loseLocked(codeLoss{time, time, start, end, never})
		return
	}
	for page := first; page <= last; page++ {
		list := c.pages[page]
		// Rings are read one after another, so that it may have to go before some.
		at, _ := slices.BinarySearchFunc(list, time+1, func(x change, t uint64) int {
			return cmp.Compare(x.time, t)
		})
		c.pages[page] = slices.Insert(list, at, change{time, start, end})
		c.count++
	}
}

// Lost notes that changes of any range may have been lost in a time.
func (c *CodeLog) Lost(from, to uint64) { c.LoseRange(from, to, 0, math.MaxUint64) }

// LoseRange notes that changes of a range may have been lost in a time. It may be called on nil.
func (c *CodeLog) LoseRange(from, to, start, length uint64) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.loseLocked(codeLoss{from, to, start, endOf(start, length), never})
}

// Settled notes that the contents of all addresses are known again from a time on, but for changes
// that were lost after another time. It may be called on nil.
func (c *CodeLog) Settled(lost, from uint64) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.losses {
		if l := &c.losses[i]; l.until == never && l.to <= lost && l.end-l.start == math.MaxUint64 {
			l.until = from
		}
	}
}

// endOf returns the end of a range, the last address at most.
func endOf(start, length uint64) uint64 { return start + min(length, math.MaxUint64-start) }

func (c *CodeLog) loseLocked(x codeLoss) {
	if n := len(c.losses); n >= maxCodeLosses { // the last one takes in all that come beyond
		o := &c.losses[n-1]
		x = codeLoss{min(x.from, o.from), max(x.to, o.to), min(x.start, o.start), max(x.end, o.end),
			max(x.until, o.until)}
		c.losses = c.losses[:n-1]
	}
	c.losses = append(c.losses, x)
}

// Sync implements sampler.Changes: it returns when the rings were read that were filled before
// its call.
func (c *CodeLog) Sync() {
	number := c.asked.Add(1)
	c.ask()
	c.mu.Lock()
	for c.done < number && !c.ended {
		c.cond.Wait()
	}
	c.mu.Unlock()
	c.then()
}

// Asked returns the number of the newest call of Sync.
func (c *CodeLog) Asked() uint64 { return c.asked.Load() }

// Drained records that the rings were drained after asked had this value.
func (c *CodeLog) Drained(number uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done = max(c.done, number)
	c.cond.Broadcast()
}

// End records that the rings will not be drained again. It may be called on nil.
func (c *CodeLog) End() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	c.cond.Broadcast()
}

// Forget forgets changes before a time that nobody asks for any more: those whose range another
// one has covered since.
func (c *CodeLog) Forget(before uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forgotten = max(c.forgotten, before)
	for page, list := range c.pages {
		old, _ := slices.BinarySearchFunc(list, before, func(x change, t uint64) int {
			return cmp.Compare(x.time, t)
		})
		var kept []change
		for _, x := range slices.Backward(list[:old]) {
			if !slices.ContainsFunc(kept, func(y change) bool {
				return y.start <= x.start && x.end <= y.end
			}) {
				kept = append(kept, x)
			}
		}
		slices.Reverse(kept)
		c.count -= old - len(kept)
		c.pages[page] = append(kept, list[old:]...)
	}
}

// Epoch implements sampler.Changes.
func (c *CodeLog) Epoch(addresses []uint64, time uint64) (epoch uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, pc := range addresses {
		site := addr.Site(pc, true)
		if time < c.forgotten && (c.pages[pc>>changePage] != nil || c.pages[site>>changePage] != nil) {
			return sampler.UnknownTime
		}
		newest := max(c.newest(pc, time), c.newest(site, time))
		for _, l := range c.losses {
			switch {
			case time < l.from || l.to < newest || pc < l.start || l.end < pc:
			case time < l.until:
				return sampler.UnknownTime
			default:
				epoch = max(epoch, l.until)
			}
		}
		epoch = max(epoch, newest)
	}
	return epoch
}

// newest returns the time of the newest change of an address at or before a time.
func (c *CodeLog) newest(pc, time uint64) uint64 {
	list := c.pages[pc>>changePage]
	at, _ := slices.BinarySearchFunc(list, time+1, func(x change, t uint64) int {
		return cmp.Compare(x.time, t)
	})
	for _, x := range slices.Backward(list[:at]) {
		if x.start <= pc && pc < x.end {
			return x.time
		}
	}
	return 0
}
