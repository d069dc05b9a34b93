package sampler

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"math"
	"os"
	"slices"

	"symbolize/ingest/files"
	"symbolize/ingest/format/bundle"
)

// maxStacks limits the distinct stacks of a kind.
const maxStacks = 1 << 20

// table numbers the stacks of a kind and stores them in a temporary file: they are read once, at
// the end.
type table struct {
	kind  uint32
	ids   map[hash]int32
	kept  []keptStack // by id
	count int         // received stacks
	deep  int         // frames of the deepest stack
	file  *os.File
	buf   *bufio.Writer
	size  int64
	err   error // of the file; later stacks are not stored
	limit int   // maxStacks, except in tests

	part       uint32 // number of the Part, which hashes depend on
	empty      hash   // hash of the stack without frames
	steady     Range
	interrupts []Range            // functions that run interrupts
	far        map[int32][]uint64 // addresses of kernel stacks outside of steady
}

// keptStack locates a stack in the file. Length 0: not received.
type keptStack struct {
	at        int64
	length    uint32
	bare      bool // has a user frame without a build ID
	interrupt bool // has a kernel frame that runs an interrupt
}

// noID is the id of all stacks beyond the limit.
const noID = math.MaxInt32

// errFault is EFAULT, which the kernel also returns if there is no such stack.
const errFault = 14

func newTable(kind, part uint32) (*table, error) {
	f, err := files.Temp("symbolize-stacks-*")
	if err != nil {
		return nil, err
	}
	return &table{kind: kind, part: part, empty: hashIn(part, nil), ids: make(map[hash]int32), file: f,
		buf: bufio.NewWriterSize(f, 1<<18), limit: maxStacks, far: make(map[int32][]uint64)}, nil
}

func (t *table) close() { t.file.Close() }

// id returns the number of a stack, which may not be received yet, or the errno (negative) of a
// stack that could not be read.
func (t *table) id(h hash) int32 {
	switch {
	case h == t.empty: // the stack has no frames
		return -errFault
	case h[1] == noStack && int64(h[0]) < 0:
		return int32(max(int64(h[0]), -1<<31))
	}
	id, ok := t.ids[h]
	if !ok {
		if len(t.kept) >= t.limit {
			return noID
		}
		id = int32(len(t.kept))
		t.ids[h] = id
		t.kept = append(t.kept, keptStack{})
	}
	return id
}

// add stores a stack. It reports whether the stack has user frames without a build ID.
func (t *table) add(h hash, frames []byte) (bare bool) {
	id := t.id(h)
	if id < 0 || id == noID || len(frames) == 0 || t.err != nil {
		return false
	}
	k := &t.kept[id]
	if k.length != 0 {
		return k.bare // evicted from the program's map and sent again
	}
	if _, t.err = t.buf.Write(frames); t.err != nil {
		return false
	}
	n := frame(t.kind)
	k.at, k.length, k.bare = t.size, uint32(len(frames)), t.kind == userStack && hasAddress(frames)
	if t.kind == kernelStack {
		if far := t.steady.far(frames); far != nil {
			t.far[id] = far
		}
		k.interrupt = inInterrupt(frames, t.interrupts)
	}
	t.deep = max(t.deep, len(frames)/n)
	t.count++
	t.size += int64(len(frames))
	return k.bare
}

// isBare reports whether a stack has user frames without a build ID.
func (t *table) isBare(id int32) bool { return id >= 0 && id < noID && t.kept[id].bare }

// received reports whether the table has the stack or its errno.
func (t *table) received(id int32) bool {
	return id < 0 || id != noID && t.kept[id].length != 0
}

// read reads the frames of a stack into b, which must be long enough.
func (t *table) read(id int32, b []byte) ([]byte, error) {
	k := &t.kept[id]
	b = b[:k.length]
	_, err := t.file.ReadAt(b, k.at)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return b, err
}

// hasAddress reports whether a frame is an address, not a build ID and offset: status 2 of struct
// bpf_stack_build_id.
func hasAddress(frames []byte) bool {
	for ; len(frames) >= userFrame; frames = frames[userFrame:] {
		if binary.NativeEndian.Uint32(frames) == statusIP {
			return true
		}
	}
	return false
}

const statusIP = 2

// flush makes added stacks readable. Stacks that could not be written to the file become
// unreceived.
func (t *table) flush() {
	if err := t.buf.Flush(); t.err == nil {
		t.err = err
	}
	if t.err == nil {
		return
	}
	var size int64
	if fi, err := t.file.Stat(); err == nil {
		size = fi.Size()
	}
	for i := range t.kept {
		if k := &t.kept[i]; k.at+int64(k.length) > size {
			*k = keptStack{}
			t.count--
		}
	}
}

// maxKeys limits the distinct counts, of about 60 bytes each.
const maxKeys = 1 << 21

// counts sums the counts read from the kernel, by stacks, process and comm.
type counts struct {
	of      map[tally]*countValue
	comms   map[[commSize]byte]uint32
	names   [][commSize]byte
	wakers  []thread          // distinct ones
	wakerOf map[thread]uint32 // 1 + its number
	refused uint64            // samples beyond the limit
	limit   int               // maxKeys, except in tests
}

type tally struct {
	thread
	state uint64 // in which a thread stopped
	waker uint32 // 1 + its number in counts.wakers; 0: unknown
}

// thread is a sampled thread, or one that woke it.
type thread struct {
	user, kernel int32 // ids of the tables
	pid, comm    uint32
	epoch        uint64 // of the kernel's stack, see Changes
	// For a user stack with bare addresses: the ProgramID, and a time at which the process had the
	// same mappings. Explain sets both to 0.
	program, mapped uint64
	number          uint32 // of the mappings, see Explainer
	time            uint64 // of a user stack with Timed places, set by Explain
	interrupt       bool   // an interrupt in its time woke; see findInterrupts
}

func newCounts() counts {
	return counts{of: make(map[tally]*countValue), comms: make(map[[commSize]byte]uint32),
		wakerOf: make(map[thread]uint32), limit: maxKeys}
}

// add adds a count and returns the ids of the user stacks of the thread and its waker. epochs are
// those of their kernel stacks.
func (c *counts) add(tables [2]*table, k *countKey, epochs [2]uint64, v countValue) (user, waker int32) {
	of, ok := c.thread(tables, k.thread(), epochs[0])
	t := tally{thread: of, state: k.State}
	waker = -errFault
	if ok && k.Waker != (threadKey{}) {
		var by thread
		by, ok = c.thread(tables, k.Waker, epochs[1])
		t.waker, waker = c.addWaker(by), by.user
	}
	if !ok || !c.addTo(t, v) {
		c.refused += v.Count
	}
	return t.user, waker
}

// thread returns the thread of a key; false if there are too many comms.
func (c *counts) thread(tables [2]*table, k threadKey, epoch uint64) (t thread, ok bool) {
	t = thread{user: tables[userStack].id(k.User), kernel: tables[kernelStack].id(k.Kernel),
		pid: k.PID, epoch: epoch, program: k.Program, mapped: k.Mapped}
	if t.comm, ok = c.comms[k.Comm]; !ok && len(c.names) < c.limit {
		t.comm, ok = uint32(len(c.names)), true
		c.comms[k.Comm] = t.comm
		c.names = append(c.names, k.Comm)
	}
	return t, ok
}

// addWaker returns 1 + the number of a waker.
func (c *counts) addWaker(t thread) uint32 {
	n, ok := c.wakerOf[t]
	if !ok {
		c.wakers = append(c.wakers, t)
		n = uint32(len(c.wakers))
		c.wakerOf[t] = n
	}
	return n
}

// addTo adds to a count; false if there are too many.
func (c *counts) addTo(t tally, v countValue) bool {
	sum := c.of[t]
	if sum == nil {
		if len(c.of) >= c.limit {
			return false
		}
		sum = new(countValue)
		c.of[t] = sum
	}
	sum.Count += v.Count
	sum.Weight += v.Weight
	return true
}

// by returns the waker of a count, the zero thread if it is unknown.
func (c *counts) by(t *tally) (w thread) {
	if t.waker > 0 {
		w = c.wakers[t.waker-1]
	}
	return w
}

// total returns the number of counted samples.
func (c *counts) total() (n uint64) {
	for _, v := range c.of {
		n += v.Count
	}
	return n
}

// sorted lists the counts by comm, process and stacks, the order that compresses best.
func (c *counts) sorted() []tally { return slices.SortedFunc(maps.Keys(c.of), c.compare) }

func (c *counts) compare(a, b tally) int {
	order := cmp.Or(c.compareThreads(a.thread, b.thread), cmp.Compare(a.state, b.state),
		cmp.Compare(min(a.waker, 1), min(b.waker, 1)))
	if order == 0 && a.waker > 0 {
		return c.compareThreads(c.by(&a), c.by(&b))
	}
	return order
}

func (c *counts) compareThreads(a, b thread) int {
	return cmp.Or(slices.Compare(c.names[a.comm][:], c.names[b.comm][:]), cmp.Compare(a.pid, b.pid),
		cmp.Compare(a.user, b.user), cmp.Compare(a.kernel, b.kernel), cmp.Compare(a.epoch, b.epoch),
		cmp.Compare(a.program, b.program), cmp.Compare(a.mapped, b.mapped),
		cmp.Compare(a.number, b.number), cmp.Compare(a.time, b.time))
}

// renumbered returns the counts with the numbers of written stacks. Counts of unwritten stacks are
// added up.
func (c *counts) renumbered(nums *[2]numbering) counts {
	n := *c
	n.of, n.wakers, n.wakerOf = make(map[tally]*countValue, len(c.of)), nil, make(map[thread]uint32)
	numbered := func(t thread) thread {
		t.user, t.kernel = nums[userStack].of(t.user), nums[kernelStack].of(t.kernel)
		return t
	}
	for t, v := range c.of {
		if t.waker > 0 {
			t.waker = n.addWaker(numbered(c.by(&t)))
		}
		t.thread = numbered(t.thread)
		n.addTo(t, *v)
	}
	return n
}

// withoutStack counts the samples without a stack: lost in the ring, or beyond the limit of a
// table.
func (c *counts) withoutStack(tables [2]*table) (ring, limit uint64) {
	u, k := tables[userStack], tables[kernelStack]
	for t, v := range c.of {
		switch by := c.by(&t); {
		case t.user == noID || t.kernel == noID || by.user == noID || by.kernel == noID:
			limit += v.Count
		case !u.received(t.user) || !k.received(t.kernel),
			t.waker > 0 && (!u.received(by.user) || !k.received(by.kernel)):
			ring += v.Count
		}
	}
	return ring, limit
}

// numbering is the order in which the stacks of a kind are written, which gives them their numbers.
// Stacks with common callers are adjacent, which halves the compressed size compared to the order
// of arrival. Stacks without counts are left out.
type numbering struct {
	order  []int32 // ids of the table by number
	number []int32 // number by id; len(order) for stacks that are not written
}

// of returns the number of a stack in the dump of counts.
func (n *numbering) of(id int32) int32 {
	switch {
	case id < 0: // an errno
		return id
	case int(id) < len(n.number):
		return n.number[id]
	}
	return int32(len(n.order))
}

// sortBytes limits the stacks that are sorted together in memory.
const sortBytes = 32 << 20

// numberUsed numbers the received stacks selected by used, which is indexed by id.
func (t *table) numberUsed(used []bool) (numbering, error) {
	t.flush()
	n := numbering{number: make([]int32, len(t.kept))}
	begin, size := 0, 0
	for id := range t.kept {
		if !used[id] || t.kept[id].length == 0 {
			continue
		}
		n.order = append(n.order, int32(id))
		if size += int(t.kept[id].length); size < sortBytes {
			continue
		}
		if err := t.sortByCallers(n.order[begin:], size); err != nil {
			return n, err
		}
		begin, size = len(n.order), 0
	}
	if err := t.sortByCallers(n.order[begin:], size); err != nil {
		return n, err
	}
	for id := range n.number {
		n.number[id] = int32(len(n.order))
	}
	for i, id := range n.order {
		n.number[id] = int32(i)
	}
	return n, nil
}

// sortByCallers sorts stacks with this total size by their frames, outermost first.
func (t *table) sortByCallers(ids []int32, size int) error {
	all := make([]byte, 0, size)
	frames := make(map[int32][]byte, len(ids))
	for _, id := range ids {
		b, err := t.read(id, all[len(all):size])
		if err != nil {
			return err
		}
		frames[id], all = b, all[:len(all)+len(b)]
	}
	step := frame(t.kind)
	slices.SortFunc(ids, func(a, b int32) int { return bundle.CompareCallers(frames[a], frames[b], step) })
	return nil
}

// used returns which stacks of the table have counts, by id.
func (c *counts) used(t *table) []bool {
	used := make([]bool, len(t.kept))
	use := func(x thread) {
		id := x.user
		if t.kind == kernelStack {
			id = x.kernel
		}
		if id >= 0 && int(id) < len(used) {
			used[id] = true
		}
	}
	for x := range c.of {
		use(x.thread)
		if x.waker > 0 {
			use(c.by(&x))
		}
	}
	return used
}

// findInterrupts finds the wakers in the time of which an interrupt woke. Of these only the kernel
// stack is kept: the interrupted thread has no part in it.
func (c *counts) findInterrupts(kernel *table) {
	for i := range c.wakers {
		w := &c.wakers[i]
		if w.pid == 0 || w.kernel >= 0 && w.kernel < noID && kernel.kept[w.kernel].interrupt {
			*w = thread{user: -errFault, kernel: w.kernel, epoch: w.epoch, interrupt: true}
		}
	}
}

// inInterrupt reports whether a kernel stack has a frame in ranges.
func inInterrupt(frames []byte, ranges []Range) bool {
	for at := 0; at+kernelFrame <= len(frames); at += kernelFrame {
		pc := binary.NativeEndian.Uint64(frames[at:])
		if slices.ContainsFunc(ranges, func(r Range) bool { return pc > r.Start && pc <= r.End }) {
			return true
		}
	}
	return false
}
