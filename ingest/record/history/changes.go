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

// CodeLog holds the changes of kernel addresses according to the records: loads and unloads of BPF
// programs and modules. The reader of the rings adds them, the sampler queries them
// (sampler.Changes). Changes of a range are kept while their time can still be queried.
type CodeLog struct {
	request   func() // makes the rings be drained
	drained   func() // called afterwards
	requested atomic.Uint64

	known atomic.Uint64 // see Known

	mu     sync.Mutex
	cond   *sync.Cond // when done or ended changes
	done   uint64     // number of the last request for which the rings were drained
	ended  bool       // the rings are no longer read
	pages  map[uint64][]change
	count  int
	losses []codeLoss
	// forgotten is the time before which only the last change of each range is kept.
	forgotten uint64
}

// change is the load or unload of a range.
type change struct{ time, start, end uint64 }

// codeLoss is a span in which changes of a range may have been lost. Records made at until show its
// contents.
type codeLoss struct{ from, to, start, end, until uint64 }

// never is the until of losses that no later list has resolved.
const never = math.MaxUint64

const (
	changePage = 12 // log2 of the size of a page in keys
	// maxChangePages limits the recorded pages of one change: modules have fewer.
	maxChangePages = 1 << 14
	maxChanges     = 1 << 21 // of all pages; further changes are lost
	maxCodeLosses  = 1 << 10
)

// NewCodeLog returns an empty log. request makes the rings be drained; drained is called
// afterwards.
func NewCodeLog(request, drained func()) *CodeLog {
	c := &CodeLog{request: request, drained: drained, pages: make(map[uint64][]change)}
	c.cond = sync.NewCond(&c.mu)
	return c
}

// Known returns a number that grows with each change or loss: while it is the same, no change is
// known.
func (c *CodeLog) Known() uint64 { return c.known.Load() }

// Add adds a change. It can be called on nil.
func (c *CodeLog) Add(time, start, length uint64) {
	if c == nil {
		return
	}
	c.known.Add(1)
	if length == 0 || time == 0 { // at time 0 it existed before
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
		// Rings are read one after another: a change may be older than the last one.
		at, _ := slices.BinarySearchFunc(list, time+1, func(x change, t uint64) int {
			return cmp.Compare(x.time, t)
		})
		c.pages[page] = slices.Insert(list, at, change{time, start, end})
		c.count++
	}
}

// Lost records that changes of any range may have been lost in a span of time.
func (c *CodeLog) Lost(from, to uint64) { c.LoseRange(from, to, 0, math.MaxUint64) }

// LoseRange records that changes of a range may have been lost in a span of time. It can be called
// on nil.
func (c *CodeLog) LoseRange(from, to, start, length uint64) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.loseLocked(codeLoss{from, to, start, endOf(start, length), never})
}

// Settled records that the contents of all addresses are known from a time on, except for changes
// lost after another time. It can be called on nil.
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

// endOf returns the end of a range, capped at the last address.
func endOf(start, length uint64) uint64 { return start + min(length, math.MaxUint64-start) }

func (c *CodeLog) loseLocked(x codeLoss) {
	c.known.Add(1)
	if n := len(c.losses); n >= maxCodeLosses { // the last one covers all further ones
		o := &c.losses[n-1]
		x = codeLoss{min(x.from, o.from), max(x.to, o.to), min(x.start, o.start), max(x.end, o.end),
			max(x.until, o.until)}
		c.losses = c.losses[:n-1]
	}
	c.losses = append(c.losses, x)
}

// Sync implements sampler.Changes: it returns when the rings that were filled before the call were
// read.
func (c *CodeLog) Sync() {
	number := c.requested.Add(1)
	c.request()
	c.mu.Lock()
	for c.done < number && !c.ended {
		c.cond.Wait()
	}
	c.mu.Unlock()
	c.drained()
}

// Requested returns the number of the newest call of Sync.
func (c *CodeLog) Requested() uint64 { return c.requested.Load() }

// Drained records that the rings were drained after Requested returned this number.
func (c *CodeLog) Drained(number uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done = max(c.done, number)
	c.cond.Broadcast()
}

// End records that the rings will not be drained again. It can be called on nil.
func (c *CodeLog) End() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	c.cond.Broadcast()
}

// Forget removes changes before a time that are no longer queried: those with a later change of the
// same range.
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

// newest returns the time of the last change of an address at or before a time.
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
