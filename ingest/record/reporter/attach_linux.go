package reporter

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/ringbuf"

	"symbolize/ingest/object/symlist"
	"symbolize/ingest/record/sys"
)

const (
	copyName = "symbolize_copy" // of the program, in bpftool's list
	copyRing = 16 << 20         // bytes; a program needs 25 KiB or more
	copyHook = "perf_event_bpf_event"
)

// Copier is the BPF program and its ring. Stop can be called during Read.
type Copier struct {
	ring   *ebpf.Map
	prog   *ebpf.Program
	link   link.Link
	reader *ringbuf.Reader
}

// AttachCopier loads and attaches the program. log receives the reason if it cannot use the cheaper
// attachment.
func AttachCopier(log func(format string, args ...any)) (*Copier, error) {
	c := &Copier{}
	if err := c.attach(log); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func (c *Copier) attach(log func(format string, args ...any)) error {
	spec, err := btf.LoadKernelSpec()
	if err != nil {
		return err
	}
	c.ring, err = ebpf.NewMap(&ebpf.MapSpec{Name: copyName, Type: ebpf.RingBuf,
		MaxEntries: copyRing})
	if err != nil {
		return err
	}
	if c.reader, err = ringbuf.NewReader(c.ring); err != nil {
		return err
	}
	entryErr := c.attachEntry(sys.NewLayout(spec))
	if entryErr == nil {
		return nil
	}
	log("no copies at the entry of %s: %v", copyHook, entryErr)
	if err := c.attachExit(sys.NewLayout(spec)); err != nil {
		return fmt.Errorf("%w; at the entry of %s: %w", err, copyHook, entryErr)
	}
	return nil
}

// attachEntry attaches to the function that reports a load to perf (fentry).
func (c *Copier) attachEntry(l *sys.BTFLayout) error {
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

// attachExit attaches to the raw tracepoint at the exit of system calls, which costs 100 to 150 ns
// per call, most of it because the kernel leaves its fast path.
func (c *Copier) attachExit(l *sys.BTFLayout) error {
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

// attached attaches a program, and closes it on failure.
func (c *Copier) attached(p *ebpf.Program, attach func() (link.Link, error)) error {
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
	err = symlist.ReadKallsyms("/proc/kallsyms", f, func(s symlist.KernelSymbol) bool {
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

// Read passes each piece to add until Stop; a piece is valid until add returns.
func (c *Copier) Read(add func(piece []byte)) error {
	var rec ringbuf.Record
	for {
		err := c.reader.ReadInto(&rec)
		if errors.Is(err, ringbuf.ErrFlushed) || errors.Is(err, os.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		add(rec.RawSample)
	}
}

// Stop detaches the program and makes Read return after the last piece. missed counts the loads not
// copied because another was being copied on their CPU.
func (c *Copier) Stop() (missed uint64, errs []error) {
	if c.link == nil {
		return 0, nil
	}
	if stats, err := c.prog.Stats(); err == nil {
		missed = stats.RecursionMisses
	}
	if err := c.link.Close(); err != nil {
		errs = append(errs, err)
	}
	c.link = nil
	if err := c.reader.Flush(); err != nil {
		errs = append(errs, err)
		c.reader.Close()
	}
	return missed, errs
}

// Close releases everything.
func (c *Copier) Close() {
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
	c.link, c.reader, c.prog, c.ring = nil, nil, nil, nil
}
