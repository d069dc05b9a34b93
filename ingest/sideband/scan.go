package sideband

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"symbolize/ingest"
	"symbolize/ingest/addrspace"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/object/bpf"
)

// ScanOptions are inputs of Scan besides the records.
type ScanOptions struct {
	ChunkSize int64    // minimum bytes of a chunk; 0 for the default
	Bundles   []Bundle // possibly of the same boot, with facts that the capture lacks
	// Missing are programs without code, listed by the bundle that contains the records.
	Missing []bundle.MissingProgram
	// Kallsyms are paths of copies of /proc/kallsyms. Those of the same boot name the functions of
	// modules without a build ID.
	Kallsyms []string
	// JIT returns the code that a process compiled at run time; nil for none.
	JIT      func(*JITQuery) JITCode
	Switches bool       // read the context switches into Records.Switches
	Data     bool       // read the mappings of data into State.Data
	File     FileTimes  // of the recording
	Now      HostClocks // nil if they are unknown
	Loads    []uint32   // see State.SeparateLoads
}

// errCompressed is the error of a COMPRESSED record that was not unpacked when the file was opened,
// because it follows uncompressed samples, which no recorder writes.
var errCompressed = errors.New("COMPRESSED record after samples that are not compressed")

// defaultChunkSize is the size in bytes of the chunks read by workers of the second pass. The first
// pass records where they start.
const defaultChunkSize = 4 << 20

// Scan is the first pass over a perf.data file: it reads all records once, collects the changes of
// state of processes and kernel, and applies them in order of time.
func Scan(ctx context.Context, f *perfdata.File, opts *ScanOptions) (*State, error) {
	sb := New()
	sb.Records.File, sb.changes.file = f, f
	sb.Host = Host{Name: f.Features.Hostname, Arch: f.Features.Arch,
		Release: f.Features.OSRelease, BigEndian: f.BigEndian}
	sb.UseTimes(opts.File, opts.Now)
	sb.data = opts.Data
	sb.SeparateLoads(opts.Loads)
	sb.buildIDs.entries = slices.Clip(f.Features.BuildIDs)
	if f.Features.PaddedIDs {
		sb.Records.Warn(AtEnd, ingest.Warning{
			Text: "the list of build IDs has zeros between its entries, as perf 6.12.0 wrote it: they are passed over",
			Hint: "perf reads only the first of these build IDs: record with another version of perf"})
	}
	sb.Clock.Timed = timed(f)
	defer sb.changes.spooled.close()
	if err := sb.scanRecords(ctx, opts); err != nil {
		return nil, err
	}
	if err := sb.changes.unspool(&sb.sampled, sb.Objects, sb.Records.namesOthers()); err != nil {
		return nil, err
	}
	sb.Programs.read(&sb.Records)
	sb.buildIDs.refuteModules(sb.Objects)
	sb.lists.use(f)
	sb.Programs.noteMissing(opts.Missing)
	if err := sb.addSameBoot(ctx, opts.Bundles); err != nil {
		return nil, err
	}
	sb.Kernel.nameModules(opts.Kallsyms, NewIdentifier(sb, ObjectQuery{}, nil))
	sb.AddJIT(opts.JIT)
	sb.Build()
	sb.Programs.addMissing(opts.Missing)
	return sb, nil
}

// scanRecords reads the records and divides them into chunks.
func (sb *State) scanRecords(ctx context.Context, opts *ScanOptions) error {
	x := &sb.Records
	chunk := opts.ChunkSize
	if chunk == 0 {
		chunk = defaultChunkSize
	}
	if slices.ContainsFunc(x.File.Events, func(ev perfdata.Event) bool {
		return ev.Attr.SampleType&perfdata.SampleRead != 0
	}) {
		x.readings = make(readings)
	}
	x.keepSwitches = opts.Switches
	r := x.File.AllRecords()
	next := Position(x.File.Data.Offset)
	for r.Next() {
		rec := r.Record()
		if at := PositionOf(rec); at >= next {
			if err := ctx.Err(); err != nil {
				return err
			}
			x.starts = append(x.starts, at)
			next = at + Position(chunk)
		}
		x.count(rec.Type)
		sample := rec.Type == perfdata.TypeSample
		if sample || len(opts.Bundles) > 0 {
			sb.sampled.note(x.File, rec)
		}
		if sample {
			sb.changes.samples = true
			if x.readings != nil {
				x.noteReadings(rec)
			}
			continue
		}
		err := sb.record(rec)
		if rec.Type.Compressed() {
			err = fmt.Errorf("%s: offset %#x: %w", x.File.Name, rec.Offset, errCompressed)
		}
		if err != nil {
			x.Stats.BadRecords++
			sb.Records.Warn(PositionOf(rec), ingest.Warning{Text: err.Error(), Partial: true})
		}
	}
	if err := r.Err(); err != nil {
		x.Warnings = append(x.Warnings, Warning{AtEnd, ingest.Warning{
			Text: err.Error() + "; all records before it are used", Partial: true,
			Hint: "the file is cut off or damaged, or its recorder was killed: copy or record it again"}})
	}
	x.starts = append(x.starts, Position(r.Offset()))
	x.deferred.finish()
	x.Stats.Lost = x.losses.records()
	x.warnTraces()
	return nil
}

// warnTraces reports traces, from which perf inject makes samples. Without other samples the
// recording is only partially read.
func (x *Records) warnTraces() {
	name := x.File.Name
	if x.traces.size == 0 {
		if x.Types[perfdata.TypeAuxtraceInfo] > 0 && x.Types[perfdata.TypeSample] == 0 {
			x.Warnings = append(x.Warnings, Warning{0, ingest.Warning{Partial: true,
				Text: fmt.Sprintf("%s: no samples, and no data of the recorded %s trace", name,
					x.traces.kind),
				Hint: "record it again, with more memory for traces: perf record -m ,16M"}})
		}
		return
	}
	x.Warnings = append(x.Warnings, Warning{0, ingest.Warning{
		Text: fmt.Sprintf("%s: %d KiB of %s trace, which is not decoded into samples", name,
			(x.traces.size+1<<10-1)>>10, x.traces.kind),
		Hint: fmt.Sprintf("run `perf inject --itrace -i %s -o DECODED` on the recording host, and "+
			"read DECODED", name),
		Partial: x.Types[perfdata.TypeSample] == 0}})
}

func (x *Records) count(t perfdata.Type) {
	if t < perfdata.Type(len(x.Types)) {
		x.Types[t]++
	} else {
		x.OtherTypes[t]++
	}
}

// timed reports whether every record that matters has a time.
func timed(f *perfdata.File) bool {
	return len(f.Events) > 0 && !slices.ContainsFunc(f.Events, func(ev perfdata.Event) bool {
		return ev.Attr.SampleType&perfdata.SampleTime == 0 || !ev.Attr.Has(perfdata.FlagSampleIDAll)
	})
}

// guestEvents adds the events of virtual machines.
func (sb *State) guestEvents(rec *perfdata.Record) error {
	return sb.Records.File.GuestIDs(rec, func(id uint64, machine int32) {
		if sb.Records.guests == nil {
			sb.Records.guests = make(map[uint64]uint32)
		}
		sb.Records.guests[id] = sb.Threads.Comm(ingest.GuestComm(machine))
	})
}

// Guest returns the comm of all threads of a virtual machine, which has process and thread IDs of
// its own, and false for samples of the host.
func (x *Records) Guest(s *perfdata.Sample) (comm uint32, ok bool) {
	if x.guests == nil {
		return 0, false
	}
	comm, ok = x.guests[s.ID]
	return comm, ok
}

// ofGuest reports whether a record other than a sample comes from a virtual machine.
func (x *Records) ofGuest(rec *perfdata.Record) bool {
	if x.guests == nil || rec.Type >= perfdata.TypeHeaderAttr {
		return false
	}
	id, err := x.File.SampleID(rec)
	if err != nil {
		return false
	}
	_, ok := x.guests[id.ID]
	return ok
}

// record processes a record other than a sample.
func (sb *State) record(rec *perfdata.Record) error {
	if sb.Records.ofGuest(rec) {
		return nil // all guest code is one location
	}
	switch rec.Type {
	case perfdata.TypeIDIndex:
		return sb.guestEvents(rec)
	case perfdata.TypeMmap, perfdata.TypeMmap2:
		if err := sb.Records.File.Mmap(rec, &sb.Records.mmap); err != nil {
			return err
		}
		sb.mapping(rec)
	case perfdata.TypeComm:
		var c perfdata.Comm
		if err := sb.Records.File.Comm(rec, &c); err != nil {
			return err
		}
		sb.changes.add(rec, sb.Threads.named(&c))
	case perfdata.TypeExit:
		sb.Threads.exit(sb.Records.File, rec)
		return sb.Records.contextSwitch(rec)
	case perfdata.TypeFork:
		var t perfdata.Task
		if err := sb.Records.File.Task(rec, &t); err != nil {
			return err
		}
		sb.changes.add(rec, forked(&t))
	case perfdata.TypeKSymbol:
		return sb.ksymbol(rec)
	case perfdata.TypeBPFEvent:
		var b perfdata.BPFEvent
		if err := sb.Records.File.BPFEvent(rec, &b); err != nil {
			return err
		}
		if b.Kind == perfdata.BPFLoad {
			sb.changes.add(rec, change{kind: changeProgramLoad, ref: b.ID, a: tagWord(b.Tag)})
		}
		sb.Programs.noteLife(sb.Records.File, rec, &b)
	case perfdata.TypeBPFMetadata:
		return sb.Records.metadata(rec)
	case perfdata.TypeLost, perfdata.TypeLostSamples:
		var l perfdata.Lost
		if err := sb.Records.File.Lost(rec, &l); err != nil {
			return err
		}
		sb.Records.losses.add(rec, &l, sb.Records.File)
	case perfdata.TypeSwitch, perfdata.TypeSwitchCPUWide:
		return sb.Records.contextSwitch(rec)
	case perfdata.TypeCgroup:
		return sb.Threads.cgroup(sb.Records.File, rec)
	case perfdata.TypeNamespaces:
		return sb.enterNamespaces(rec)
	case perfdata.TypeCPUMap:
		n, err := sb.Records.File.CPUMap(rec)
		sb.Records.CPUs = n
		return err
	case perfdata.TypeThrottle:
		sb.Records.Stats.Throttled++
	case perfdata.TypeCallchainDeferred:
		return sb.Records.deferredChain(rec)
	case perfdata.TypeAuxtraceInfo:
		sb.Records.traces.kind = sb.Records.File.AuxtraceType(rec)
	case perfdata.TypeAuxtrace:
		sb.Records.traces.size += sb.Records.File.AuxtraceSize(rec)
	}
	// EXIT changes no mappings: late samples of an ended process still find its mappings, and the next
	// process with its number has a FORK.
	return nil
}

// enterNamespaces adds a NAMESPACES record.
func (sb *State) enterNamespaces(rec *perfdata.Record) error {
	var n perfdata.Namespaces
	if err := sb.Records.File.Namespaces(rec, &n); err != nil {
		return err
	}
	id, err := sb.Records.File.SampleID(rec)
	sb.Threads.enterNamespaces(&n, sb.changes.timeOf(rec, &id, err))
	return nil
}

// Switch is a record of a context switch, or of the exit of a thread.
type Switch struct {
	Time     uint64 // as recorded
	TID, CPU int32  // the thread that starts or stops to run; CPU -1 if it was not recorded
	Out      bool   // it stops
	Exit     bool   // it ends: a recording of processes has no other record of its stop
	CPUWide  bool   // of a recording of CPUs, which has the idle thread, 0, too
}

// contextSwitch keeps a context switch, if it has a time.
func (x *Records) contextSwitch(rec *perfdata.Record) error {
	if !x.keepSwitches {
		return nil
	}
	id, err := x.File.SampleID(rec)
	if err != nil || id.Time == NoTime {
		return err
	}
	s := Switch{Time: id.Time, TID: id.TID, CPU: -1, Out: rec.Misc&perfdata.MiscSwitchOut != 0,
		CPUWide: rec.Type == perfdata.TypeSwitchCPUWide}
	if rec.Type == perfdata.TypeExit {
		s.Out, s.Exit = true, true
	}
	if id.Has&perfdata.SampleCPU != 0 {
		s.CPU = int32(id.CPU)
	}
	x.Switches = append(x.Switches, s)
	return nil
}

func (sb *State) ksymbol(rec *perfdata.Record) error {
	var k perfdata.KSymbol
	if err := sb.Records.File.KSymbol(rec, &k); err != nil {
		return err
	}
	if k.Len == 0 {
		return nil // not JITed
	}
	e, program := sb.codeChange(&k)
	if program {
		sb.Programs.symbols++
	}
	sb.changes.add(rec, e)
	return nil
}

// codeChange returns the change of the kernel's code that a KSYMBOL record reports, and whether the
// code belongs to a BPF program.
func (sb *State) codeChange(k *perfdata.KSymbol) (e change, program bool) {
	e = change{kind: changeKernelMapping, layer: addrspace.Image,
		a: k.Addr, b: endOf(k.Addr, uint64(k.Len))}
	if program = bpf.IsSymbol(k.Name); program {
		e.layer = addrspace.Program
	}
	if k.Unregister {
		e.kind = changeKernelUnmapping
	} else {
		e.ref = sb.Objects.ksymbol(k, sb.Host.Arch)
	}
	return e, program
}

// endOf returns start + length, limited to the end of the address space.
func endOf(start, length uint64) uint64 {
	if end := start + length; end >= start {
		return end
	}
	return math.MaxUint64
}

// mapping processes the MMAP or MMAP2 record in sb.Records.mmap.
func (sb *State) mapping(rec *perfdata.Record) {
	m := &sb.Records.mmap
	if m.Data && !sb.data {
		return
	}
	switch mode := rec.CPUMode(); {
	case mode == perfdata.CPUModeGuestKernel, mode == perfdata.CPUModeGuestUser:
		return // all guest code is one location
	case m.Data:
		if mode == perfdata.CPUModeUser && m.PID != -1 {
			e := mapped(m)
			e.kind, e.ref = changeDataMapping, sb.Objects.user(m, sb.Host.is64())
			sb.changes.add(rec, e)
		}
	case mode == perfdata.CPUModeKernel || m.PID == -1:
		e := mapped(m)
		if sb.Kernel.mapping(rec, m, &e) {
			sb.changes.add(rec, e)
		}
	default:
		sb.changes.add(rec, sb.mappedFile(m))
	}
}

// mapped returns the change of a mapping, without its object.
func mapped(m *perfdata.Mmap) change {
	return change{kind: changeMapping, pid: m.PID, a: m.Addr, b: endOf(m.Addr, m.Len), c: m.PgOff}
}

// mappedFile returns the change of a mapping in a process.
func (sb *State) mappedFile(m *perfdata.Mmap) change {
	if string(m.Filename) == ingest.VsyscallPath {
		e := mapped(m)
		e.ref = Vsyscall
		return e
	}
	if m.Prot&jitSymbolFile != 0 {
		m.PgOff = m.Addr // its symbols have run-time addresses
	}
	e := mapped(m)
	e.ref = sb.Objects.user(m, sb.Host.is64())
	sb.Objects.segment(e.ref, m.PgOff, m.Len)
	return e
}

// forked returns the change of a new process or thread.
func forked(t *perfdata.Task) change {
	return change{kind: changeFork, pid: t.PID, tid: t.TID, flag: t.Synthesized,
		a: uint64(uint32(t.PPID)), b: uint64(uint32(t.PTID))}
}
