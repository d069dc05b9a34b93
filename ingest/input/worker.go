package input

import (
	"context"
	"encoding/binary"
	"runtime"
	"sync"
	"sync/atomic"

	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/addrspace"
	"symbolize/ingest/intern"
	"symbolize/ingest/sideband"
)

// worker reads the samples of some chunks of the file, and folds the samples of some chains into
// tables of its own. The hash of a chain determines the worker that owns it, so that few chains and
// folded rows are in two tables: if each worker folded the samples that it reads, each would have
// all stacks of a long recording.
type worker struct {
	*reader
	index  int
	queues *batchQueues
	out    *outbox

	finder      locator
	seed        intern.Seed // of the hashes of chains
	chains      *chainTable
	frequent    frequentChains // of other workers
	repeats     repeats
	message     message // of the current sample
	labelled    bool    // message has the label of the current sample
	slot        *repeat // the slot of repeats for the current sample; may be nil
	chain       chain   // of the current sample
	own         []byte  // encoded messages to itself
	batch       []queued
	places      []intern.Pair // by local location, when all is done
	first, last uint64        // recorded times of samples
	err         error

	derivedWarnings []ingest.Warning // of a derived event
}

func newWorker(c *collector, peers *batchQueues, index int, seed intern.Seed) *worker {
	w := &worker{reader: newReader(c), first: sideband.NoTime, queues: peers,
		index: index, seed: seed, out: &outbox{x: peers, self: index, batch: make([][]byte, len(peers.inbox))}}
	// A damaged file may map code at addresses that no machine uses.
	w.plain = !c.Spaces.Anywhere(addr.Site(addr.PC(plainJunk), true))
	if c.want.Branches == NoBranches {
		w.counted = w.repeated
	}
	w.chains = newChainTable(&w.finder)
	w.finder.sb, w.finder.noTable = c.State, c.noTable
	w.finder.number = func(object uint32, offset uint64, ret bool) uint32 {
		if ret {
			object = markReturned(w.finder.sb.Objects, object)
		}
		return w.chains.place(intern.Pair{Object: object, Offset: offset})
	}
	return w
}

// collect is the second pass: workers fold the samples in chunks of the file, in any order.
func collect(ctx context.Context, c *collector) ([]*worker, error) {
	n := c.opts.Workers
	if n <= 0 {
		n = runtime.GOMAXPROCS(0)
	}
	n = max(1, min(n, c.Records.NumChunks()))
	peers := newBatchQueues(n)
	seed := intern.MakeSeed()
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

// run reads chunks until none is left, then receives the batches of the other workers. A worker
// that fails continues to receive: the others may be waiting for it.
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
	w.foldOwn()
	w.queues.finish(w.out, w.foldBatch)
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
		w.chain = newChain(w.chain, w.kpart, w.part)
		m.hash = w.seed.Hash(w.chain)
		if !w.remember(m, w.chain) {
			w.forward(m, w.chain)
		}
		w.seen(w.sample.Time)
	}
	if err := w.records.Err(); err != nil && w.err == nil {
		w.err = err // the file changed since the first pass, or became unreadable
	}
}

// seen notes the time of a sample.
func (w *worker) seen(t uint64) {
	if t != sideband.NoTime {
		w.first, w.last = min(w.first, t), max(w.last, t)
	}
}

// forward hands a message to the worker that owns its chain. It keeps a frequent chain.
func (w *worker) forward(m *message, c chain) {
	owner := w.queues.owner(m.hash.Hi)
	if owner == w.index || w.frequent.often(m.hash.Hi) {
		w.keep(m, c)
	} else {
		w.out.send(owner, m, c, w.foldBatch)
	}
}

// ownSize is the size in bytes of a worker's batch to itself: some hundred chains.
const ownSize = 64 << 10

// keep puts a message into the batch for the worker itself.
func (w *worker) keep(m *message, c chain) {
	w.own = m.encode(w.own, c)
	if len(w.own) >= ownSize {
		w.foldOwn()
	}
}

// foldOwn folds the worker's own batch.
func (w *worker) foldOwn() {
	w.foldBatch(w.own)
	w.own = w.own[:0]
}

// queued is a message of a batch, with its chain.
type queued struct {
	message
	chain chain
	entry uint32 // of the chain, in the table
}

// foldBatch folds the samples of a batch.
func (w *worker) foldBatch(b []byte) {
	w.batch = w.batch[:0]
	for len(b) > 0 {
		var q queued
		q.chain, b = q.decode(b)
		w.batch = append(w.batch, q)
	}
	w.chains.add(w.batch, w.foldMessage)
}

// foldMessage folds the samples of a message with a value of its chain.
func (w *worker) foldMessage(m *queued, v *chainValue) {
	w.chains.count(v, &m.message)
	n := uint64(m.count)
	w.stats.Samples += n
	w.stats.Weight += m.weight
	w.stats.Frames += n * uint64(v.frames)
	if m.cut || v.flags&partCut != 0 {
		w.stats.CutChains += n
	}
}

// message is a sample, or several equal samples, for the worker that owns the chain.
type message struct {
	hash         intern.Hash // of the chain
	weight       uint64      // of all its samples
	count        uint32      // of samples
	label        uint32
	user, kernel addrspace.Version
	cut          bool
}

// messageSize is the size of a message without its chain, in bytes.
const messageSize = 48

// encode appends a message with its chain.
func (m *message) encode(b []byte, c chain) []byte {
	le := binary.LittleEndian
	b = le.AppendUint64(b, m.hash.Hi)
	b = le.AppendUint64(b, m.hash.Lo)
	b = le.AppendUint64(b, m.weight)
	b = le.AppendUint32(b, m.label)
	b = le.AppendUint32(b, uint32(m.user))
	b = le.AppendUint32(b, uint32(m.kernel))
	b = le.AppendUint32(b, m.count)
	cut := uint32(0)
	if m.cut {
		cut = 1
	}
	b = le.AppendUint32(b, cut)
	b = le.AppendUint32(b, uint32(len(c)))
	return append(b, c...)
}

// decode is the inverse; the chain aliases b.
func (m *message) decode(b []byte) (c chain, rest []byte) {
	le := binary.LittleEndian
	head, b := b[:messageSize], b[messageSize:]
	m.hash = intern.Hash{Hi: le.Uint64(head), Lo: le.Uint64(head[8:])}
	m.weight, m.label = le.Uint64(head[16:]), le.Uint32(head[24:])
	m.user, m.kernel = addrspace.Version(le.Uint32(head[28:])),
		addrspace.Version(le.Uint32(head[32:]))
	m.count, m.cut = le.Uint32(head[36:]), head[40] != 0
	n := le.Uint32(head[44:])
	return chain(b[:n:n]), b[n:]
}

const (
	batchSize  = 64 << 10 // bytes; a batch is sent when the next message might not fit
	batchSlack = 4 << 10  // of a batch's memory: enough for most messages, append grows for others
	inboxSize  = 64       // batches: a worker without a processor must not block the others
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

// send adds a message to the batch for a worker. receive is called for the batches that arrive
// meanwhile.
func (o *outbox) send(to int, m *message, c chain, receive func([]byte)) {
	if o.batch[to] == nil {
		o.batch[to] = o.x.batch()
	}
	o.batch[to] = m.encode(o.batch[to], c)
	if len(o.batch[to]) >= batchSize {
		o.flush(to, receive)
	}
}

// flush sends the batch for a worker. While that worker's inbox is full it receives batches from
// its own, so that two workers that send to each other do not block.
func (o *outbox) flush(to int, receive func([]byte)) {
	for {
		select {
		case o.x.inbox[to] <- o.batch[to]:
			o.batch[to] = nil
			return
		case b := <-o.x.inbox[o.self]:
			o.x.received(b, receive)
		}
	}
}

func (x *batchQueues) received(b []byte, receive func([]byte)) {
	receive(b)
	x.free.Put(&b)
}

// finish sends the remaining batches and receives further ones until all workers have finished.
func (x *batchQueues) finish(o *outbox, receive func([]byte)) {
	for to := range o.batch {
		if len(o.batch[to]) > 0 {
			o.flush(to, receive)
		}
	}
	if x.sending.Add(-1) == 0 {
		close(x.sent)
	}
	in := x.inbox[o.self]
	for {
		select {
		case b := <-in:
			x.received(b, receive)
		case <-x.sent:
			for len(in) > 0 {
				x.received(<-in, receive)
			}
			return
		}
	}
}

const (
	frequentBits = 12
	// frequentFrom is how often a worker reads a chain of another owner before it adopts the
	// chain: half the samples of an idle machine have the same few chains, and would all be folded
	// by one worker.
	frequentFrom = 16
	frequentMost = 64
)

// frequentChains counts recent frequent chains of other workers, by hash.
type frequentChains [1 << frequentBits]struct {
	hash  uint64
	count uint32
}

// often counts the chain with a hash and reports whether it is frequent.
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

// repeats counts samples with the same recorded chain, labels and address spaces as a recent
// sample. The result of a chain depends on nothing else, so that such samples need not be
// simplified, or looked up in the tables. Samples of a service have few chains; if most
// chains are new, repeats switches itself off for a time.
type repeats struct {
	slots []repeat // direct-mapped by hash
	asked int      // look-ups since the last decision
	found int      // successful look-ups of these
	off   int      // samples to skip without a look-up
}

// repeat is a repeated sample, with the number of repetitions since it was last folded.
type repeat struct {
	recorded intern.Hash // of the recorded chain
	// rival is the recorded chain of the last other sample of this slot. It replaces the sample of
	// the slot if it comes twice, so that unique samples are not copied, and more often than that
	// sample.
	rival   intern.Hash
	message       // its count is 0 in a free slot
	lead    uint8 // rivals before the sample can be replaced
	chain   chain
}

const (
	repeatBits = 13
	maxRepeat  = 1 << 10 // bytes of a chain; by default perf records at most 127 words
	// repeatWindow is the number of look-ups after which repeats decides whether to stay on.
	repeatWindow = 4 << repeatBits
	// repeatLeast: one look-up in so many must be successful. With fewer than a third, failed
	// look-ups cost as much time as the others saved.
	repeatLeast = 3
	repeatPause = 16 * repeatWindow // samples to skip
	repeatLead  = 3
	maxRepeats  = 1 << 30 // must fit in the count of a row
)

// find counts the sample of m in the slot with its chain, and reports true; otherwise it returns
// the slot to be used for the sample, nil if none.
func (t *repeats) find(recorded intern.Hash, m *message) (slot *repeat, found bool) {
	if t.slots == nil {
		t.slots = make([]repeat, 1<<repeatBits)
	}
	t.asked++
	h := recorded.Hi ^ uint64(m.user)<<32 ^ uint64(m.kernel)<<16 ^ uint64(m.label)
	s := &t.slots[h*0x9e3779b97f4a7c15>>(64-repeatBits)]
	switch {
	case s.recorded == recorded && s.count > 0 && s.count < maxRepeats && s.label == m.label &&
		s.user == m.user && s.kernel == m.kernel:
		s.count++
		s.weight += m.weight
		s.lead = repeatLead
		t.found++
		return nil, true
	case s.lead > 0:
		s.lead--
	case s.rival == recorded:
		return s, false
	default:
		s.rival = recorded
	}
	return nil, false
}

// pause reports whether to skip the current sample. If a pause starts the slots must be folded.
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

// repeated counts the current sample if it is a repetition. It skips samples with parts that depend
// on more than the chain.
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
	if w.slot, found = w.repeats.find(w.seed.Hash(s.Chain), &w.message); found {
		w.seen(s.Time)
	}
	return found
}

// remember assigns the slot found by repeated to the current sample with its chain. It returns
// false if the sample cannot be kept.
func (w *worker) remember(m *message, c chain) bool {
	s := w.slot
	if s == nil || w.lone || w.split.late {
		return false
	}
	w.foldRepeat(s)
	s.message, s.recorded, s.lead = *m, s.rival, 0
	s.chain = append(s.chain[:0], c...)
	return true
}

// foldRepeat folds the samples counted in a slot, and frees the slot.
func (w *worker) foldRepeat(s *repeat) {
	if s.count > 0 {
		w.forward(&s.message, s.chain)
		s.count = 0
	}
}

// foldRepeats folds the samples of all slots, and frees the slots.
func (w *worker) foldRepeats() {
	for i := range w.repeats.slots {
		w.foldRepeat(&w.repeats.slots[i])
	}
	w.repeats.slots = nil
}
