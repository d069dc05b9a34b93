package input

import (
	"context"
	"hash/maphash"
	"runtime"
	"sync"
	"sync/atomic"

	"symbolize/ingest/fold/intern"
	"symbolize/ingest/fold/merge"
	"symbolize/ingest/sideband"
)

// worker reads the samples of some chunks of the file, and folds those of some
// chains into tables of its own. Which chains are a worker's own is told by their
// hash, so that few chains and folded rows are with two workers: with tables per
// worker for whatever it reads, a long recording has all its stacks in each.
type worker struct {
	*reader
	index  int
	queues *batchQueues

	finder       locator
	numbers      *intern.Pairs // of places
	kernelChains *chainTable
	userChains   *chainTable
	rows         *merge.RowTable
	frequent     frequentChains // of other workers
	encoded      []byte
	places       []intern.Pair // by local location, when all is done
	first, last  uint64        // recorded times of samples
	err          error
}

func newWorker(c *collector, peers *batchQueues, index int, seed maphash.Seed) *worker {
	w := &worker{reader: newReader(c), rows: merge.NewRowTable(), first: sideband.NoTime, queues: peers,
		index: index}
	w.plain = true
	w.numbers = intern.NewPairs()
	w.finder.sb = c.State
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

// collect is the second pass: workers take chunks of the file, in any order, and
// fold the samples in them.
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

// run reads chunks until none is left, then what the other workers still send. A
// worker that fails goes on receiving: the others may be waiting for it.
func (w *worker) run(ctx context.Context, next *atomic.Int64) {
	out := newOutbox(w.queues, w.index)
	for w.err == nil {
		k := int(next.Add(1)) - 1
		if k >= w.c.Records.NumChunks() {
			break
		}
		if w.err = ctx.Err(); w.err == nil {
			w.fold(w.c.Records.Chunk(k), out)
		}
	}
	w.queues.finish(out, w.takeBatch)
}

// fold reads one chunk.
func (w *worker) fold(c sideband.Chunk, out *outbox) {
	w.chunk(c)
	for w.next() {
		s := &w.sample
		m := message{weight: s.Period, label: w.label(), user: w.user, kernel: w.kernel, cut: w.cut}
		w.encoded = encodeChain(w.encoded[:0], w.kpart)
		nk := len(w.encoded)
		w.encoded = encodeChain(w.encoded, w.part)
		kpart, part := w.encoded[:nk], w.encoded[nk:]
		m.hash = maphash.Bytes(w.userChains.seed, part)
		if len(part) == 0 {
			m.hash = maphash.Bytes(w.userChains.seed, kpart)
		}
		owner := w.queues.owner(m.hash)
		if owner == w.index {
			w.take(&m, kpart, part, false)
		} else if w.frequent.often(m.hash) {
			w.take(&m, kpart, part, true)
		} else {
			out.send(owner, &m, kpart, part, w.takeBatch)
		}
		w.first, w.last = min(w.first, s.Time), max(w.last, s.Time)
	}
	if err := w.records.Err(); err != nil && w.err == nil {
		w.err = err // the file changed since the first pass, or cannot be read any more
	}
}

// take folds a sample, whose parts are encoded.
func (w *worker) take(m *message, kpart, part []byte, adopted bool) {
	khash, uhash := m.hash, m.hash
	if len(part) > 0 && len(kpart) > 0 {
		khash = maphash.Bytes(w.kernelChains.seed, kpart)
	}
	kernel := w.kernelChains.add(khash, kpart, m.user, m.kernel, false)
	user := w.userChains.add(uhash, part, m.user, m.kernel, adopted)
	w.rows.Add(merge.Row{Kernel: kernel.part, User: user.part, Label: m.label, Count: 1,
		Weight: m.weight})
	w.stats.Samples++
	w.stats.Weight += m.weight
	w.stats.Frames += uint64(kernel.frames) + uint64(user.frames)
	if m.cut || (kernel.flags|user.flags)&partCut != 0 {
		w.stats.CutChains++
	}
}

// takeBatch folds the samples of a batch from another worker.
func (w *worker) takeBatch(b []byte) {
	for len(b) > 0 {
		var m message
		kpart, part, rest := m.decode(b)
		w.take(&m, kpart, part, false)
		b = rest
	}
}
