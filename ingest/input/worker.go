package input

import (
	"context"
	"hash/maphash"
	"runtime"
	"sync"
	"sync/atomic"

	"symbolize/ingest/addr"
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
