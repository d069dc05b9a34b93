package record

import (
	"errors"
	"sync"
	"time"

	"symbolize/ingest/format/bundle"
	"symbolize/ingest/object/bpf"
	"symbolize/ingest/record/reporter"
)

// notWhole is the cause of loss of an incomplete copy.
const notWhole = "copies inside the kernel that are not whole"

// copies holds the programs that the kernel copied during their load. At the end programs that the
// reader of the rings also read are dropped; the others fill its gaps.
type copies struct {
	s       *recording
	copier  *reporter.Copier
	stopped bool
	done    chan struct{}

	mu     sync.Mutex // guards the fields below
	pieces reporter.Pieces
	copySpools
	before copySpools // of the previous part
	err    error
}

// start loads and attaches the program. If that fails, the capture continues without it, with a
// warning.
func (c *copies) start() (err error) {
	if c.copySpools, err = newCopySpools(); err == nil {
		c.copier, err = reporter.AttachCopier(c.s.log)
	}
	if err != nil {
		c.s.warn("programs are not copied inside the kernel: %v", err)
		c.close()
		return nil
	}
	c.done = make(chan struct{})
	go c.read()
	return nil
}

func (c *copies) drain() time.Duration { return 0 }

// stop detaches the program and reads the rest of its ring.
func (c *copies) stop() {
	if c.copier == nil || c.stopped {
		return
	}
	c.stopped = true
	missed, errs := c.copier.Stop()
	c.s.lost("copies inside the kernel: concurrent loads on a CPU", missed)
	for _, err := range errs {
		c.s.warn("%v", err)
	}
	<-c.done
	c.s.lost(notWhole, uint64(c.pieces.Pending()))
}

func (c *copies) add(*bundle.Writer) error { return c.err }

func (c *copies) close() {
	if c.copier != nil {
		c.copier.Close()
	}
	c.copySpools.close()
	c.before.close()
	c.copySpools, c.before = copySpools{}, copySpools{}
	c.copier = nil
}

func (c *copies) read() {
	defer close(c.done)
	if err := c.copier.Read(c.piece); err != nil {
		c.s.warn("copies inside the kernel: %v", err)
	}
}

// piece adds a piece, and stores the copy if it is complete.
func (c *copies) piece(b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	whole, lost := c.pieces.Add(b)
	if lost {
		c.s.lost(notWhole, 1)
	}
	if whole == nil {
		return
	}
	if err := c.keep(whole); err != nil {
		c.err = err
	}
}

// fill fills in the copies of programs that could not be read.
func (c *copies) fill(p *programs) error {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, from := range []copySpools{c.before, c.copySpools} {
		if err := from.fill(p); err != nil {
			return err
		}
	}
	return p.err
}

// turn forgets the copies of the part before the last one: the records of their programs were read
// since.
func (c *copies) turn() error {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.infos == nil {
		return nil
	}
	next, err := newCopySpools()
	if err != nil {
		return err
	}
	c.before.close()
	c.before, c.copySpools = c.copySpools, next
	return nil
}

// copySpools holds the copies of a span of the recording.
type copySpools struct {
	infos *spool // entries of BPF_PROG_INFO
	blobs *spool // entries of BPF_BTF
}

func newCopySpools() (x copySpools, err error) {
	if x.infos, err = newSpool(); err == nil {
		x.blobs, err = newSpool()
	}
	if err != nil {
		x.close()
	}
	return x, err
}

func (x copySpools) close() {
	for _, s := range []*spool{x.infos, x.blobs} {
		if s != nil {
			s.close()
		}
	}
}

// keep stores a copy.
func (x copySpools) keep(c *reporter.Copy) error {
	err := x.infos.add(c.ID, bpf.AppendProgram(nil, c.Program))
	if len(c.BTF) > 0 {
		err = errors.Join(err, x.blobs.add(c.BTFID, bpf.AppendBTF(nil, c.BTFID, c.BTF)))
	}
	return err
}

func (x copySpools) fill(p *programs) error {
	if x.infos == nil {
		return nil
	}
	x.infos.sort()
	x.blobs.sort()
	for _, e := range x.infos.entries {
		program := p.seen[e.id]
		if program == nil || program.missing == "" {
			continue
		}
		entry, err := x.infos.read(e, nil)
		if err != nil {
			return err
		}
		p.fail(p.infos.add(e.id, entry))
		program.missing, program.image = "", true
		p.s.summary.Copied++
		id := entryBTF(entry)
		if b, ok := x.blobs.find(id); ok && !p.btfs[id] {
			blob, err := x.blobs.read(b, nil)
			if err != nil {
				return err
			}
			p.btfs[id] = true
			p.fail(p.blobs.add(id, blob))
		}
	}
	return nil
}
