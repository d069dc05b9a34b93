package reporter

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/record/sys"
)

// Move is a mapping that a process has moved.
type Move struct {
	PID        int32
	Time       uint64 // by the clock of the event
	From       uint64 // where it began
	Start, End uint64 // where it is
}

// MoveReporter is the program in the kernel with its events.
type MoveReporter struct {
	events *ebpf.Map // by CPU
	prog   *ebpf.Program
	link   link.Link
	fds    []int
}

const progName = "symbolize_moves" // as bpftool lists it

// AttachMoves loads and attaches the program, which reports nothing before Open. log receives the reason
// where it is not attached at the cheaper place.
func AttachMoves(log func(format string, args ...any)) (r *MoveReporter, err error) {
	r = &MoveReporter{}
	r.events, err = ebpf.NewMap(&ebpf.MapSpec{Name: "moves", Type: ebpf.PerfEventArray}) // of all CPUs
	if err == nil {
		if err = r.attach(moveHook, atCopy); err != nil {
			log("moves of mappings are not reported by %s: %v", moveHook, err)
			err = r.attach("", moveAtExit)
		}
	}
	if err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// Open has moves reported in the rings. clocked gives an event their clock.
func (r *MoveReporter) Open(rings []*sys.Ring,
	clocked func(*unix.PerfEventAttr) *unix.PerfEventAttr) error {
	for _, ring := range rings {
		fd, _, err := sys.OpenEvent(clocked(&unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE,
			Config:      unix.PERF_COUNT_SW_BPF_OUTPUT,
			Sample_type: uint64(sys.SampleType | perfdata.SampleRaw), Sample: 1,
			Bits: sys.AttrBits(perfdata.FlagSampleIDAll)}), -1, ring.CPU)
		if err == nil {
			err = ring.Redirect(fd)
		}
		if err != nil {
			return err
		}
		r.fds = append(r.fds, fd)
		if err := r.events.Put(uint32(ring.CPU), uint32(fd)); err != nil {
			return err
		}
	}
	return nil
}

// attach loads a program and attaches it: at the entry of a function of the kernel, or at the exit of
// system calls if that is "".
func (r *MoveReporter) attach(hook string, code func(*sys.BTFLayout, string) asm.Instructions) error {
	spec, err := btf.LoadKernelSpec()
	if err != nil {
		return err
	}
	layout := sys.NewLayout(spec)
	ins := program(code(layout, runtime.GOARCH), r.events.FD())
	if layout.Err != nil {
		return layout.Err
	}
	kind := ebpf.RawTracepoint
	if hook != "" {
		kind = ebpf.Kprobe
	}
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: progName, Type: kind, Instructions: ins,
		License: "GPL"})
	if err != nil {
		return err
	}
	var l link.Link
	if hook != "" {
		l, err = link.Kprobe(hook, p, nil)
	} else {
		l, err = link.AttachRawTracepoint(link.RawTracepointOptions{Name: "sys_exit", Program: p})
	}
	if err != nil {
		return errors.Join(err, p.Close())
	}
	r.prog, r.link = p, l
	return nil
}

// Close detaches the program. It may be called on nil.
func (r *MoveReporter) Close() {
	if r == nil {
		return
	}
	if r.link != nil {
		r.link.Close()
	}
	if r.prog != nil {
		r.prog.Close()
	}
	if r.events != nil {
		r.events.Close()
	}
	for _, fd := range r.fds {
		unix.Close(fd)
	}
	r.fds = nil
}

// ParseMove decodes a sample: header, u64 id, u32 pid, u32 tid, u64 time, u32 cpu, u32 res, u32 size of
// the rest, and what the program sends.
func ParseMove(rec []byte) (m Move, err error) {
	const dataAt = sys.RecordHeader + 8 + 8 + 8 + 8 + 4
	order := binary.NativeEndian
	if len(rec) < dataAt+outSize {
		return m, fmt.Errorf("a sample of a moved mapping has %d bytes", len(rec))
	}
	m.PID = int32(order.Uint32(rec[sys.RecordHeader+8:]))
	m.Time = order.Uint64(rec[sys.RecordHeader+16:])
	data := rec[dataAt:]
	m.From, m.Start = order.Uint64(data[outFrom:]), order.Uint64(data[outStart:])
	m.End = m.Start + order.Uint64(data[outLength:])
	if m.End < m.Start {
		m.End = ^uint64(0)
	}
	return m, nil
}
