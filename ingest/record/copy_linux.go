package record

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/ringbuf"

	"symbolize/ingest/format/bundle"
	"symbolize/ingest/object/kallsyms"
	"symbolize/ingest/record/kernelbtf"
)

const (
	copyName = "symbolize_copy" // of the program, as bpftool lists it
	copyRing = 16 << 20         // bytes; a program takes 25 KiB and more of them
	copyHook = "perf_event_bpf_event"
	// maxCopying bounds the bytes of incomplete programs.
	maxCopying = 256 << 20
)

// copies has the kernel copy programs while they are being loaded. Programs that the rings'
// reader could read itself are dropped at the end; the others fill the gaps.
type copies struct {
	s      *session
	ring   *ebpf.Map
	prog   *ebpf.Program
	link   link.Link
	reader *ringbuf.Reader
	done   chan struct{}

	mu      sync.Mutex // guards the fields below
	partial map[uint32]*copied
	bytes   int // in partial
	copySpools
	before copySpools // those of the part before
	err    error
}

// start loads and attaches the program. Where that is not possible the capture goes
// on without, and warns.
func (c *copies) start() error {
	err := c.attach()
	if err != nil {
		c.s.warn("programs are not copied inside the kernel: %v", err)
		c.close()
		return nil
	}
	c.done = make(chan struct{})
	go c.read()
	return nil
}

func (c *copies) attach() error {
	spec, err := btf.LoadKernelSpec()
	if err != nil {
		return err
	}
	if c.copySpools, err = newCopySpools(); err != nil {
		return err
	}
	c.partial = make(map[uint32]*copied)
	c.ring, err = ebpf.NewMap(&ebpf.MapSpec{Name: copyName, Type: ebpf.RingBuf,
		MaxEntries: copyRing})
	if err != nil {
		return err
	}
	if c.reader, err = ringbuf.NewReader(c.ring); err != nil {
		return err
	}
	entryErr := c.attachEntry(kernelbtf.New(spec))
	if entryErr == nil {
		return nil
	}
	c.s.log("no copies at the entry of %s: %v", copyHook, entryErr)
	if err := c.attachExit(kernelbtf.New(spec)); err != nil {
		return fmt.Errorf("%w; at the entry of %s: %w", err, copyHook, entryErr)
	}
	return nil
}

// attachEntry attaches to the function that notifies perf of a load (fentry).
func (c *copies) attachEntry(l *kernelbtf.Layout) error {
	code, err := copyProgram(l, c.ring.FD(), atEntry())
	if err != nil {
		return err
	}
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: copyName, Type: ebpf.Tracing,
		AttachType: ebpf.AttachTraceFEntry, AttachTo: copyHook, Instructions: code, License: "GPL"})
	if err != nil {
		return err
	}
	return c.attached(p, func() (link.Link, error) {
		return link.AttachTracing(link.TracingOptions{Program: p})
	})
}

// attachExit attaches to the raw tracepoint at the exit of system calls, which costs
// each of them some ten ns.
func (c *copies) attachExit(l *kernelbtf.Layout) error {
	release, err := kernelSymbol("bpf_prog_release")
	if err != nil {
		return err
	}
	code, err := copyProgram(l, c.ring.FD(), atExit(l, runtime.GOARCH, release))
	if err != nil {
		return err
	}
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: copyName, Type: ebpf.RawTracepoint,
		Instructions: code, License: "GPL"})
	if err != nil {
		return err
	}
	return c.attached(p, func() (link.Link, error) {
		return link.AttachRawTracepoint(link.RawTracepointOptions{Name: "sys_exit", Program: p})
	})
}

// attached attaches a program, or closes it.
func (c *copies) attached(p *ebpf.Program, attach func() (link.Link, error)) error {
	l, err := attach()
	if err != nil {
		return errors.Join(err, p.Close())
	}
	c.prog, c.link = p, l
	return nil
}

// kernelSymbol returns a symbol's address.
func kernelSymbol(name string) (pc uint64, err error) {
	f, err := os.Open("/proc/kallsyms")
	if err != nil {
		return 0, err
	}
	defer f.Close()
	err = kallsyms.Read("/proc/kallsyms", f, func(s kallsyms.Symbol) bool {
		if s.Name == name && s.Module == "" {
			pc = s.Addr
		}
		return pc == 0
	})
	if pc == 0 && err == nil {
		err = fmt.Errorf("kallsyms has no %s", name)
	}
	if pc != 0 {
		err = nil
	}
	return pc, err
}

func (c *copies) drain() time.Duration { return 0 }

// stop detaches the program and takes what is in its ring.
func (c *copies) stop() {
	if c.link == nil {
		return
	}
	if stats, err := c.prog.Stats(); err == nil {
		c.s.lost("copies inside the kernel: two loads at once on a CPU", stats.RecursionMisses)
	}
	if err := c.link.Close(); err != nil {
		c.s.warn("%v", err)
	}
	c.link = nil
	if err := c.reader.Flush(); err != nil {
		c.s.warn("%v", err)
		c.reader.Close()
	}
	<-c.done
	c.s.lost("copies inside the kernel that are not whole", uint64(len(c.partial)))
}

func (c *copies) add(*bundle.Writer) error { return c.err }

func (c *copies) close() {
	if c.link != nil {
		c.link.Close()
	}
	if c.reader != nil {
		c.reader.Close()
	}
	if c.prog != nil {
		c.prog.Close()
	}
	if c.ring != nil {
		c.ring.Close()
	}
	c.copySpools.close()
	c.before.close()
	c.copySpools, c.before = copySpools{}, copySpools{}
	c.link, c.reader, c.prog, c.ring = nil, nil, nil, nil
}

func (c *copies) read() {
	defer close(c.done)
	var rec ringbuf.Record
	for {
		err := c.reader.ReadInto(&rec)
		if errors.Is(err, ringbuf.ErrFlushed) || errors.Is(err, os.ErrClosed) {
			return
		}
		if err != nil {
			c.s.warn("copies inside the kernel: %v", err)
			return
		}
		c.piece(rec.RawSample)
	}
}

// fill gives programs that could not be read the copy that was made of them.
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

// turn forgets the copies of the part before the last: the records of their programs have
// been read since.
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

// copySpools have the copies of a time of the recording.
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
