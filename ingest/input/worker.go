package input

import (
	"bytes"
	"context"
	"encoding/binary"
	"hash/maphash"
	"runtime"
	"sync"
	"sync/atomic"

	"symbolize/ingest/addr"
	"symbolize/ingest/fold/addrspace"
	"symbolize/ingest/fold/intern"
	"symbolize/ingest/fold/merge"
	"symbolize/ingest/sideband"
)

// worker reads the samples of some chunks of the file, and folds those of some chains into
// tables of its own. The hash of a chain decides which worker owns it, so that few chains and
// folded rows are in two tables: if each worker folded the samples that it reads, the tables
// of each would have all stacks of a long recording.
type worker struct {
	*reader
	index  int
	queues *batchQueues
	out    *outbox

	finder       locator
	numbers      *intern.Pairs // of places
	kernelChains *chainTable
	userChains   *chainTable
	rows         *merge.RowTable
	frequent     frequentChains // of other workers
	repeats      repeats
	message      message // of the present sample
	labelled     bool    // message has the label of the present sample
	slot         *repeat // of repeats, that the present sample takes; may be nil
	encoded      []byte
	own          []byte // encoded messages to itself
	group        [intern.GroupSize]queued
	read         uint32        // keeps the compiler from dropping reads ahead
	places       []intern.Pair // by local location, when all is done
	first, last  uint64        // recorded times of samples
	err          error
}

func newWorker(c *collector, peers *batchQueues, index int, seed maphash.Seed) *worker {
	w := &worker{reader: newReader(c), rows: merge.NewRowTable(), first: sideband.NoTime, queues: peers,
		index: index, out: newOutbox(peers, index)}
	// A damaged file may have code mapped where no machine has any.
	w.plain = !c.Spaces.Anywhere(addr.Site(addr.PC(plainJunk), true))
	if !c.opts.Branches && !c.opts.Runs {
		w.counted, w.repeats.seed = w.repeated, seed
	}
	w.numbers = intern.NewPairs()
	w.finder.sb, w.finder.noTable = c.State, c.noTable
	w.finder.number = func(object uint32, offset uint64, ret bool) uint32 {
		if ret {
			object = markReturned(w.finder.sb.Objects, object)
		}
		return w.numbers.Add(intern.Pair{Object: object, Offset: offset})
	}
	w.kernelChains = newChainTable(seed, &w.finder)
	w.userChains = newChainTable(seed, &w.finder)
	return w
}

// collect is the second pass: workers take chunks of the file, in any order, and fold the samples
// in them.
func collect(ctx context.Context, c *collector) ([]*worker, error) {
	n := c.opts.Workers
	if n <= 0 {
		n = runtime.GOMAXPROCS(0)
	}
	n = max(1, min(n, c.Records.NumChunks()))
	peers := newBatchQueues(n)
	seed := maphash.MakeSeed()
	workers := make([]*worker, n)
	var next atomic.Int64
	var wg sync.WaitGroup
	for i := range workers {
		workers[i] = newWorker(c, peers, i, seed)
		wg.Go(func() { workers[i].run(ctx, &next) })
	}
	wg.Wait()
	for _, w := range workers {
		if w.err != nil {
			return nil, w.err
		}
	}
	return workers, nil
}

// run reads chunks until none is left, then takes the batches of the other workers. A worker
// that fails goes on receiving: the others may be waiting for it.
func (w *worker) run(ctx context.Context, next *atomic.Int64) {
	for w.err == nil {
		k := int(next.Add(1)) - 1
		if k >= w.c.Records.NumChunks() {
			break
		}
		if w.err = ctx.Err(); w.err == nil {
			w.fold(w.c.Records.Chunk(k))
		}
	}
	w.foldRepeats()
	w.takeOwn()
	w.queues.finish(w.out, w.takeBatch)
}

// fold reads one chunk.
func (w *worker) fold(c sideband.Chunk) {
	w.chunk(c)
	for w.next() {
		m := &w.message
		if !w.labelled {
			*m = message{weight: w.weight, count: 1, label: w.label(), user: w.user, kernel: w.kernel}
		}
		m.cut = w.cut
		w.encoded = encodeChain(w.encoded[:0], w.kpart)
		nk := len(w.encoded)
		w.encoded = encodeChain(w.encoded, w.part)
		kpart, part := w.encoded[:nk], w.encoded[nk:]
		m.hash = maphash.Bytes(w.userChains.seed, part)
		if len(part) == 0 {
			m.hash = maphash.Bytes(w.userChains.seed, kpart)
		}
		if !w.remember(m, kpart, part) {
			w.forward(m, kpart, part)
		}
		w.seen(w.sample.Time)
	}
	if err := w.records.Err(); err != nil && w.err == nil {
		w.err = err // the file changed since the first pass, or cannot be read any more
	}
}

// seen notes the time of a sample.
func (w *worker) seen(t uint64) { w.first, w.last = min(w.first, t), max(w.last, t) }

// forward hands a message to the worker that owns its chain.
func (w *worker) forward(m *message, kpart, part []byte) {
	owner := w.queues.owner(m.hash)
	m.adopted = owner != w.index && w.frequent.often(m.hash)
	if owner == w.index || m.adopted {
		w.keep(m, kpart, part)
	} else {
		w.out.send(owner, m, kpart, part, w.takeBatch)
	}
}

// ownSize is the size of a batch of messages to itself, bytes: some groups, in a level 1 cache.
const ownSize = 16 << 10

// keep puts a message into the batch for the worker itself.
func (w *worker) keep(m *message, kpart, part []byte) {
	w.own = m.encode(w.own, kpart, part)
	if len(w.own) >= ownSize {
		w.takeOwn()
	}
}

// takeOwn folds the worker's own batch.
func (w *worker) takeOwn() {
	w.takeBatch(w.own)
	w.own = w.own[:0]
}

// queued is a message of a group, with the hashes of its parts.
type queued struct {
	message
	kpart, part  []byte
	khash, uhash uint64
}

// takeBatch folds the samples of a batch, a group at a time: the tables are read ahead for all of
// it before the first is looked up, because the time goes to cache misses, and those overlap.
func (w *worker) takeBatch(b []byte) {
	for len(b) > 0 {
		n := 0
		for ; n < len(w.group) && len(b) > 0; n++ {
			q := &w.group[n]
			q.kpart, q.part, b = q.decode(b)
			q.khash, q.uhash = q.hash, q.hash
			if len(q.part) > 0 && len(q.kpart) > 0 {
				q.khash = maphash.Bytes(w.kernelChains.seed, q.kpart)
			}
			if len(q.part) > 0 {
				w.read += w.userChains.chains.ReadAhead(q.uhash)
			}
			if len(q.kpart) > 0 {
				w.read += w.kernelChains.chains.ReadAhead(q.khash)
			}
		}
		group := w.group[:n]
		for i := range group {
			q := &group[i]
			if len(q.part) > 0 {
				w.read += w.userChains.chains.ReadAheadKey(q.uhash)
			}
			if len(q.kpart) > 0 {
				w.read += w.kernelChains.chains.ReadAheadKey(q.khash)
			}
		}
		for i := range group {
			w.take(&group[i])
		}
	}
}

// take folds the samples of a message.
func (w *worker) take(m *queued) {
	kernel := w.kernelChains.add(m.khash, m.kpart, m.user, m.kernel, false)
	user := w.userChains.add(m.uhash, m.part, m.user, m.kernel, m.adopted)
	w.rows.Add(merge.Row{Kernel: kernel.part, User: user.part, Label: m.label, Count: m.count,
		Weight: m.weight})
	n := uint64(m.count)
	w.stats.Samples += n
	w.stats.Weight += m.weight
	w.stats.Frames += n * (uint64(kernel.frames) + uint64(user.frames))
	if m.cut || (kernel.flags|user.flags)&partCut != 0 {
		w.stats.CutChains += n
	}
}

// message is a sample, or several equal ones, for the worker that owns its chain.
type message struct {
	hash         uint64 // of the user part, or of the kernel part where there is no other
	weight       uint64 // of all its samples
	count        uint32 // of samples
	label        uint32
	user, kernel addrspace.Version
	cut          bool
	adopted      bool // taken by a worker that does not own the chain
}

// messageSize is the size of a message without its chain, in bytes.
const messageSize = 44

// The flags of an encoded message.
const (
	messageCut = 1 << iota
	messageAdopted
)

// encode appends a message with both encoded parts of its chain.
func (m *message) encode(b, kpart, part []byte) []byte {
	le := binary.LittleEndian
	b = le.AppendUint64(b, m.hash)
	b = le.AppendUint64(b, m.weight)
	b = le.AppendUint32(b, m.label)
	b = le.AppendUint32(b, uint32(m.user))
	b = le.AppendUint32(b, uint32(m.kernel))
	b = le.AppendUint32(b, uint32(len(kpart)))
	b = le.AppendUint32(b, uint32(len(part)))
	flags := uint32(0)
	if m.cut {
		flags |= messageCut
	}
	if m.adopted {
		flags |= messageAdopted
	}
	b = le.AppendUint32(b, flags)
	b = le.AppendUint32(b, m.count)
	return append(append(b, kpart...), part...)
}

// decode is the inverse; the parts alias b.
func (m *message) decode(b []byte) (kpart, part, rest []byte) {
	le := binary.LittleEndian
	head, b := b[:messageSize], b[messageSize:]
	m.hash, m.weight, m.label = le.Uint64(head), le.Uint64(head[8:]), le.Uint32(head[16:])
	m.user, m.kernel = addrspace.Version(le.Uint32(head[20:])),
		addrspace.Version(le.Uint32(head[24:]))
	nk, nu := le.Uint32(head[28:]), le.Uint32(head[32:])
	m.cut, m.adopted = head[36]&messageCut != 0, head[36]&messageAdopted != 0
	m.count = le.Uint32(head[40:])
	return b[:nk:nk], b[nk : nk+nu : nk+nu], b[nk+nu:]
}

const (
	batchSize  = 32 << 10 // bytes; a batch is sent when the next message might not fit
	batchSlack = 4 << 10  // of a batch's memory: most messages fit, append makes room for the rest
	// In batches: a worker that does not get the processor must not stop the others.
	inboxSize = 64
)

// batchQueues carries batches of messages between the workers.
type batchQueues struct {
	inbox   []chan []byte // by worker
	sending atomic.Int64  // workers that may still send
	sent    chan struct{} // closed when sending is 0
	free    sync.Pool
}

func newBatchQueues(workers int) *batchQueues {
	x := &batchQueues{sent: make(chan struct{})}
	x.sending.Store(int64(workers))
	for range workers {
		x.inbox = append(x.inbox, make(chan []byte, inboxSize))
	}
	return x
}

// owner returns the worker that owns the chains of a hash, by its lower half; tables use the
// upper half.
func (x *batchQueues) owner(hash uint64) int {
	return int(uint64(uint32(hash)) * uint64(len(x.inbox)) >> 32)
}

func (x *batchQueues) batch() []byte {
	if b, ok := x.free.Get().(*[]byte); ok {
		return (*b)[:0]
	}
	return make([]byte, 0, batchSize+batchSlack)
}

// outbox collects one worker's messages to the others.
type outbox struct {
	x     *batchQueues
	self  int
	batch [][]byte // by receiver
}

func newOutbox(x *batchQueues, self int) *outbox {
	return &outbox{x: x, self: self, batch: make([][]byte, len(x.inbox))}
}

// send adds a message to the batch for a worker. take receives the batches that arrive while
// it waits.
func (o *outbox) send(to int, m *message, kpart, part []byte, take func([]byte)) {
	if o.batch[to] == nil {
		o.batch[to] = o.x.batch()
	}
	o.batch[to] = m.encode(o.batch[to], kpart, part)
	if len(o.batch[to]) >= batchSize {
		o.flush(to, take)
	}
}

// flush sends the batch for a worker. While that worker's inbox is full it takes batches from
// its own, so that two workers that send to each other do not block.
func (o *outbox) flush(to int, take func([]byte)) {
	for {
		select {
		case o.x.inbox[to] <- o.batch[to]:
			o.batch[to] = nil
			return
		case b := <-o.x.inbox[o.self]:
			o.x.received(b, take)
		}
	}
}

func (x *batchQueues) received(b []byte, take func([]byte)) {
	take(b)
	x.free.Put(&b)
}

// finish sends the remaining batches and takes further ones until all workers have finished.
func (x *batchQueues) finish(o *outbox, take func([]byte)) {
	for to := range o.batch {
		if len(o.batch[to]) > 0 {
			o.flush(to, take)
		}
	}
	if x.sending.Add(-1) == 0 {
		close(x.sent)
	}
	in := x.inbox[o.self]
	for {
		select {
		case b := <-in:
			x.received(b, take)
		case <-x.sent:
			for len(in) > 0 {
				x.received(<-in, take)
			}
			return
		}
	}
}

const (
	frequentBits = 12
	// frequentFrom is how often a worker reads a chain that another one owns before it adopts
	// it: half the samples of an idle machine have the same few chains, and would all be
	// folded by one worker.
	frequentFrom = 16
	frequentMost = 64
)

// frequentChains counts the recently frequent chains of other workers, by hash.
type frequentChains [1 << frequentBits]struct {
	hash  uint64
	count uint32
}

// often counts the chain of this hash and reports whether it is frequent.
func (h *frequentChains) often(hash uint64) bool {
	s := &h[hash>>32&(1<<frequentBits-1)]
	switch {
	case s.hash == hash:
		s.count = min(s.count+1, frequentMost)
		return s.count >= frequentFrom
	case s.count > 0:
		s.count--
	default:
		s.hash, s.count = hash, 1
	}
	return false
}

// repeats counts the samples whose recorded chains, labels and address spaces were those of a
// sample shortly before: what a chain becomes depends on nothing else, so that it needs neither be
// simplified nor encoded, nor looked up in the tables. Samples of a service have few chains; where
// the chains differ, repeats switches itself off for a time.
type repeats struct {
	seed  maphash.Seed
	slots []repeat // direct-mapped by hash
	asked int      // look-ups since the last decision
	found int      // of them
	off   int      // samples that pass without a look-up
}

// repeat is a sample that came often, and how often since it was folded last.
type repeat struct {
	hash uint64
	// rival is the hash of the last other sample that fell on the slot. It has to come twice, so
	// that samples that come once are not copied, and oftener than the present one.
	rival   uint64
	message        // its count is 0 in a free slot
	chain   uint32 // bytes of data that are the recorded chain; the encoded parts follow
	kpart   uint32 // bytes of the encoded kernel part
	lead    uint8  // rivals that the slot is kept from
	data    []byte
}

const (
	repeatBits = 13
	// maxRepeat is the length of the longest chain that is kept, bytes: perf records 127 words at
	// most unless it is asked for more.
	maxRepeat = 1 << 10
	// repeatWindow is after how many look-ups repeats decides whether it stays on.
	repeatWindow = 4 << repeatBits
	// repeatLeast is the least share of look-ups, one in so many, that must find something: with
	// less than a third the time of those that do not was as much as the others saved.
	repeatLeast = 3
	// repeatPause is for how many samples repeats is off.
	repeatPause = 16 * repeatWindow
	repeatLead  = 3
	// mostRepeats bounds a count, which must fit into that of a row.
	mostRepeats = 1 << 30
)

// find counts the sample of m in the slot that has its chain, and reports true; else it returns the
// slot that the sample is to take, nil if none.
func (t *repeats) find(chain []byte, m *message) (slot *repeat, found bool) {
	if t.slots == nil {
		t.slots = make([]repeat, 1<<repeatBits)
	}
	t.asked++
	h := maphash.Bytes(t.seed, chain)
	h = (h ^ uint64(m.user)<<32 ^ uint64(m.kernel)<<16 ^ uint64(m.label)) * 0x9e3779b97f4a7c15
	s := &t.slots[h>>(64-repeatBits)]
	switch {
	case s.hash == h && s.count > 0 && s.count < mostRepeats && s.label == m.label &&
		s.user == m.user && s.kernel == m.kernel && bytes.Equal(s.data[:s.chain], chain):
		s.count++
		s.weight += m.weight
		s.lead = repeatLead
		t.found++
		return nil, true
	case s.lead > 0:
		s.lead--
	case s.rival == h:
		s.hash = h
		return s, false
	default:
		s.rival = h
	}
	return nil, false
}

// pause reports whether the present sample passes without a look-up. It starts pauses, for which
// the slots are to be folded.
func (t *repeats) pause() (off, starts bool) {
	if t.off > 0 {
		t.off--
		return true, false
	}
	if t.asked < repeatWindow {
		return false, false
	}
	if t.found < t.asked/repeatLeast {
		t.off, starts = repeatPause, true
	}
	t.asked, t.found = 0, 0
	return starts, starts
}

// set makes a slot that of a sample.
func (s *repeat) set(m *message, chain, kpart, part []byte) {
	s.message, s.lead = *m, 0
	s.chain, s.kpart = uint32(len(chain)), uint32(len(kpart))
	s.data = append(append(append(s.data[:0], chain...), kpart...), part...)
}

// parts returns the encoded parts of a slot's chain.
func (s *repeat) parts() (kpart, part []byte) {
	both := s.data[s.chain:]
	return both[:s.kpart:s.kpart], both[s.kpart:]
}

// repeated counts the present sample if it is one of repeats. It leaves out those whose parts
// depend on more than their chain.
func (w *worker) repeated() bool {
	s := &w.sample
	w.slot, w.labelled = nil, false
	if off, starts := w.repeats.pause(); off {
		if starts {
			w.foldRepeats()
		}
		return false
	}
	if len(w.counts) != 1 || w.guest || s.HasUserStack || s.UserRegsABI != 0 || len(s.Branches) > 0 ||
		len(s.Chain) < 8 || len(s.Chain) > maxRepeat ||
		binary.LittleEndian.Uint64(s.Chain) < contextMax {
		return false
	}
	w.event, w.weight = w.counts[0].Event, w.counts[0].Count
	w.message = message{weight: w.weight, count: 1, label: w.label(), user: w.user, kernel: w.kernel}
	w.labelled = true
	found := false
	if w.slot, found = w.repeats.find(s.Chain, &w.message); found {
		w.seen(s.Time)
	}
	return found
}

// remember enters the present sample, of an encoded chain, into the slot that repeated has found.
// It reports false if the sample cannot be kept.
func (w *worker) remember(m *message, kpart, part []byte) bool {
	s := w.slot
	if s == nil || w.lone || w.split.late {
		return false
	}
	w.foldRepeat(s)
	s.set(m, w.sample.Chain, kpart, part)
	return true
}

// foldRepeat folds the samples that a slot has counted, and frees it.
func (w *worker) foldRepeat(s *repeat) {
	if s.count > 0 {
		kpart, part := s.parts()
		w.forward(&s.message, kpart, part)
		s.count = 0
	}
}

// foldRepeats folds the samples of all slots, and frees these.
func (w *worker) foldRepeats() {
	for i := range w.repeats.slots {
		w.foldRepeat(&w.repeats.slots[i])
	}
	w.repeats.slots = nil
}
