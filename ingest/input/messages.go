package input

import (
	"encoding/binary"
	"sync"
	"sync/atomic"

	"symbolize/ingest/fold/addrspace"
)

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
