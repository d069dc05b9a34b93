package perfdata

import (
	"reflect"
	"testing"

	"symbolize/buildid"
	"symbolize/fixtures/perfbuild"
)

// allTrailer is a sample type with every field that a trailer can have.
const allTrailer = perfbuild.TID | perfbuild.Time | perfbuild.IDField | perfbuild.StreamID |
	perfbuild.CPU | perfbuild.Identifier | perfbuild.IP

var (
	at   = perfbuild.At{PID: 70, TID: 71, Time: 123456789, CPU: 3, StreamID: 99}
	id20 = []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}
)

// sideBand has every record type with a decoder: its encoding, and the expected result. Byte slices
// are given as strings, so that results compare.
var sideBand = []struct {
	name  string
	build func(b *perfbuild.File)
	typ   Type
	get   func(f *File, rec *Record) (any, error)
	want  any
}{
	{name: "MMAP", build: func(b *perfbuild.File) {
		b.Mmap(perfbuild.Mmap{PID: 7, TID: 8, Addr: 0x1000, Len: 0x2000, PgOff: 0x3000,
			Filename: "/bin/x"}, at)
	}, typ: TypeMmap, get: getMmap,
		want: mmapResult{Mmap{PID: 7, TID: 8, Addr: 0x1000, Len: 0x2000,
			PgOff: 0x3000, Prot: ProtExec}, "/bin/x"}},
	{name: "MMAP of data", build: func(b *perfbuild.File) {
		b.Mmap(perfbuild.Mmap{PID: 7, Misc: User | MiscMmapData, Filename: "1234567"}, at)
	}, typ: TypeMmap, get: getMmap, want: mmapResult{Mmap{PID: 7, TID: 7, Data: true}, "1234567"}},
	{name: "MMAP of the kernel", build: func(b *perfbuild.File) {
		b.KernelMap("_text", 0xffffffff81000000, 0xffffffff81000000, 0x1000000)
	}, typ: TypeMmap, get: getMmap, want: mmapResult{Mmap{PID: -1, Addr: 0xffffffff81000000,
		Len: 0x1000000, PgOff: 0xffffffff81000000, Prot: ProtExec}, "[kernel.kallsyms]_text"}},
	{name: "MMAP2 of the kernel", build: func(b *perfbuild.File) {
		b.KernelMap2("_stext", 0xffffffff81000000, 0xffffffff81000000, 0x1000000, id20)
	}, typ: TypeMmap2, get: getMmap,
		want: mmapResult{Mmap{PID: -1, Addr: 0xffffffff81000000, Len: 0x1000000,
			PgOff: 0xffffffff81000000, BuildID: buildid.New(id20)}, "[kernel.kallsyms]_stext"}},
	{name: "MMAP2", build: func(b *perfbuild.File) {
		b.Mmap2(perfbuild.Mmap{PID: 7, Addr: 0x1000, Len: 0x2000, PgOff: 0x3000, Maj: 8, Min: 1,
			Ino: 1 << 40, InoGen: 5, Prot: 5, Flags: 2, Filename: "/lib/libc.so.6"}, at)
	}, typ: TypeMmap2, get: getMmap,
		want: mmapResult{Mmap{PID: 7, TID: 7, Addr: 0x1000, Len: 0x2000,
			PgOff: 0x3000, Maj: 8, Min: 1, Ino: 1 << 40, InoGen: 5, Prot: 5, Flags: 2},
			"/lib/libc.so.6"}},
	{name: "MMAP2 with build ID", build: func(b *perfbuild.File) {
		b.Mmap2(perfbuild.Mmap{PID: 7, BuildID: id20, Filename: "/lib/a"}, at)
	}, typ: TypeMmap2, get: getMmap,
		want: mmapResult{Mmap{PID: 7, TID: 7, Prot: 5, BuildID: buildid.New(id20)},
			"/lib/a"}},
	{name: "MMAP2 with short build ID", build: func(b *perfbuild.File) {
		b.Mmap2(perfbuild.Mmap{PID: 7, BuildID: id20[:8], Filename: "/lib/a"}, at)
	}, typ: TypeMmap2, get: getMmap, want: mmapResult{Mmap{PID: 7, TID: 7, Prot: 5,
		BuildID: buildid.New(id20[:8])}, "/lib/a"}},
	{name: "MMAP2 with build ID of unbelievable size", build: func(b *perfbuild.File) {
		b.Mmap2(perfbuild.Mmap{PID: 7, BuildID: id20[:16], BuildIDSize: 200, Filename: "/lib/a"},
			at)
	}, typ: TypeMmap2, get: getMmap, want: mmapResult{Mmap{PID: 7, TID: 7, Prot: 5}, "/lib/a"}},
	{name: "COMM", build: func(b *perfbuild.File) { b.Comm(7, 8, "kworker/0:1", false, at) },
		typ: TypeComm, get: getComm, want: commResult{Comm{PID: 7, TID: 8}, "kworker/0:1"}},
	{name: "COMM by exec", build: func(b *perfbuild.File) { b.Comm(7, 7, "", true, at) },
		typ: TypeComm, get: getComm, want: commResult{Comm{PID: 7, TID: 7, Exec: true}, ""}},
	{name: "FORK", build: func(b *perfbuild.File) { b.Fork(9, 7, 9, 7, at) },
		typ: TypeFork, get: getTask, want: Task{PID: 9, PPID: 7, TID: 9, PTID: 7, Time: at.Time}},
	{name: "FORK made up by perf",
		build: func(b *perfbuild.File) { b.ForkSynthesized(9, 7, 10, 7) },
		typ:   TypeFork, get: getTask,
		want: Task{PID: 9, PPID: 7, TID: 10, PTID: 7, Synthesized: true}},
	{name: "EXIT", build: func(b *perfbuild.File) { b.Exit(9, 7, 9, 7, at) },
		typ: TypeExit, get: getTask, want: Task{PID: 9, PPID: 7, TID: 9, PTID: 7, Time: at.Time}},
	{name: "KSYMBOL", build: func(b *perfbuild.File) {
		b.KSymbol(0xffffffffc0001000, 205, 1, false, "bpf_prog_0f9a6a44222df5bf_f", at)
	}, typ: TypeKSymbol, get: getKSymbol,
		want: ksymbolResult{KSymbol{Addr: 0xffffffffc0001000, Len: 205,
			Kind: KSymbolBPF}, "bpf_prog_0f9a6a44222df5bf_f"}},
	{name: "KSYMBOL unregistered", build: func(b *perfbuild.File) {
		b.KSymbol(0xffffffffc0001000, 4096, 2, true, "kprobe_optinsn_page", at)
	}, typ: TypeKSymbol, get: getKSymbol,
		want: ksymbolResult{KSymbol{Addr: 0xffffffffc0001000, Len: 4096,
			Kind: KSymbolOOL, Unregister: true}, "kprobe_optinsn_page"}},
	{name: "BPF_EVENT", build: func(b *perfbuild.File) {
		b.BPFEvent(1, 960, [8]byte{1, 2, 3, 4, 5, 6, 7, 8}, at)
	},
		typ: TypeBPFEvent, get: getBPFEvent, want: BPFEvent{Kind: BPFLoad, ID: 960,
			Tag: [8]byte{1, 2, 3, 4, 5, 6, 7, 8}}},
	{name: "LOST", build: func(b *perfbuild.File) { b.Lost(11, 5, at) },
		typ: TypeLost, get: getLost, want: Lost{ID: 11, Count: 5}},
	{name: "LOST_SAMPLES", build: func(b *perfbuild.File) { b.LostSamples(6, false, at) },
		typ: TypeLostSamples, get: getLost, want: Lost{Count: 6}},
	{name: "LOST_SAMPLES by BPF", build: func(b *perfbuild.File) { b.LostSamples(6, true, at) },
		typ: TypeLostSamples, get: getLost, want: Lost{Count: 6, ByBPF: true}},
	{name: "CALLCHAIN_DEFERRED",
		build: func(b *perfbuild.File) { b.DeferredChain(9, []uint64{1, 1 << 40}, at) },
		typ:   TypeCallchainDeferred, get: getDeferredChain,
		want: deferredResult{9, string(le(1, 1<<40))}},
	{name: "NAMESPACES", build: func(b *perfbuild.File) {
		b.Namespaces(7, 8, [][2]uint64{{4, 100}, {4, 101}, {4, 102}}, at)
	}, typ: TypeNamespaces, get: getNamespaces, want: Namespaces{PID: 7, TID: 8,
		Links: [7]Namespace{{4, 100}, {4, 101}, {4, 102}}}},
	{name: "CGROUP", build: func(b *perfbuild.File) { b.Cgroup(1<<33, "/system.slice", at) },
		typ: TypeCgroup, get: getCgroup, want: cgroupResult{1 << 33, "/system.slice"}},
}

const User = uint16(CPUModeUser)

type (
	mmapResult struct {
		Mmap
		name string
	}
	commResult struct {
		Comm
		name string
	}
	ksymbolResult struct {
		KSymbol
		name string
	}
	cgroupResult struct {
		id   uint64
		path string
	}
)

func getMmap(f *File, rec *Record) (any, error) {
	var m Mmap
	err := f.Mmap(rec, &m)
	name := string(m.Filename)
	m.Filename = nil
	return mmapResult{m, name}, err
}

func getComm(f *File, rec *Record) (any, error) {
	var c Comm
	err := f.Comm(rec, &c)
	name := string(c.Name)
	c.Name = nil
	return commResult{c, name}, err
}

func getKSymbol(f *File, rec *Record) (any, error) {
	var k KSymbol
	err := f.KSymbol(rec, &k)
	name := string(k.Name)
	k.Name = nil
	return ksymbolResult{k, name}, err
}

func getTask(f *File, rec *Record) (any, error) {
	var x Task
	err := f.Task(rec, &x)
	return x, err
}

func getBPFEvent(f *File, rec *Record) (any, error) {
	var x BPFEvent
	err := f.BPFEvent(rec, &x)
	return x, err
}

func getLost(f *File, rec *Record) (any, error) {
	var x Lost
	err := f.Lost(rec, &x)
	return x, err
}

type deferredResult struct {
	cookie uint64
	chain  string
}

func getDeferredChain(f *File, rec *Record) (any, error) {
	var x DeferredChain
	err := f.DeferredChain(rec, &x)
	return deferredResult{x.Cookie, string(x.Chain)}, err
}

func getNamespaces(f *File, rec *Record) (any, error) {
	var x Namespaces
	err := f.Namespaces(rec, &x)
	return x, err
}

func getCgroup(f *File, rec *Record) (any, error) {
	var x Cgroup
	err := f.Cgroup(rec, &x)
	return cgroupResult{x.ID, string(x.Path)}, err
}

// trailers are the possible ends of a record.
var trailers = []struct {
	name  string
	event perfbuild.Event
}{
	{name: "perf's trailer",
		event: perfbuild.Event{SampleType: perfbuild.IP | perfbuild.TID | perfbuild.Time |
			perfbuild.CPU, Flags: perfbuild.SampleIDAll, IDs: []uint64{11}}},
	{name: "full trailer",
		event: perfbuild.Event{SampleType: allTrailer, Flags: perfbuild.SampleIDAll,
			IDs: []uint64{11}}},
	{name: "no time", event: perfbuild.Event{SampleType: perfbuild.IP | perfbuild.TID,
		Flags: perfbuild.SampleIDAll, IDs: []uint64{11}}},
	{name: "no trailer", event: perfbuild.Event{SampleType: allTrailer, IDs: []uint64{11}}},
}

func TestSideBand(t *testing.T) {
	bothOrders(t, func(t *testing.T, b *perfbuild.File) {
		for _, tr := range trailers {
			for _, tt := range sideBand {
				t.Run(tr.name+"/"+tt.name, func(t *testing.T) {
					b := perfbuild.NewOrder(b.BigEndian)
					b.Events = []perfbuild.Event{tr.event}
					tt.build(b)
					f := openBuilt(t, b)
					recs := records(t, f)
					if len(recs) != 1 || recs[0].Type != tt.typ {
						t.Fatalf("records %+v, want one %s", recs, tt.typ)
					}
					got, err := tt.get(f, &recs[0])
					if err != nil || !reflect.DeepEqual(got, tt.want) {
						t.Errorf("got %+v, %v\nwant %+v", got, err, tt.want)
					}
				})
			}
		}
	})
}

// TestSideBandCut cuts every record at every length: the decoder must return an error or, where
// only padding, a name's end or the trailer of a file without one is missing, a result; and never
// panic.
func TestSideBandCut(t *testing.T) {
	for _, tt := range sideBand {
		b := perfbuild.New()
		tt.build(b)
		f := openBuilt(t, b)
		rec := records(t, f)[0]
		trailer := int(f.Events[0].trailer.size)
		body := rec.Body
		for n := range body {
			rec.Body = body[:n:n]
			_, err := tt.get(f, &rec)
			if n < trailer && err == nil {
				t.Errorf("%s of %d bytes: no error", tt.name, n)
			}
			if _, err := f.SampleID(&rec); (err != nil) != (n < trailer) {
				t.Errorf("%s of %d bytes: trailer error %v", tt.name, n, err)
			}
		}
	}
}

func TestSampleIDTrailer(t *testing.T) {
	full := SampleID{Has: allTrailer &^ SampleIP, PID: 70, TID: 71, Time: 123456789, ID: 11,
		StreamID: 99, CPU: 3}
	tests := []struct {
		name       string
		sampleType uint64
		flags      uint64
		at         perfbuild.At
		want       SampleID
	}{
		{name: "all fields", sampleType: allTrailer, flags: perfbuild.SampleIDAll, at: at,
			want: full},
		{name: "ID without IDENTIFIER", sampleType: allTrailer &^ perfbuild.Identifier,
			flags: perfbuild.SampleIDAll, at: at,
			want: SampleID{Has: full.Has &^ SampleIdentifier, PID: 70, TID: 71, Time: 123456789, ID: 11,
				StreamID: 99, CPU: 3}},
		{name: "time and cpu", sampleType: perfbuild.Time | perfbuild.CPU,
			flags: perfbuild.SampleIDAll, at: at,
			want: SampleID{Has: SampleTime | SampleCPU, Time: 123456789, CPU: 3}},
		{name: "made up by perf", sampleType: allTrailer, flags: perfbuild.SampleIDAll,
			at:   perfbuild.At{},
			want: SampleID{Has: full.Has}},
		{name: "no sample_id_all", sampleType: allTrailer, flags: 0, at: at, want: SampleID{}},
	}
	bothOrders(t, func(t *testing.T, b *perfbuild.File) {
		for _, tt := range tests {
			b := perfbuild.NewOrder(b.BigEndian)
			b.Events = []perfbuild.Event{{SampleType: tt.sampleType, Flags: tt.flags,
				IDs: []uint64{11}}}
			b.Comm(70, 71, "a", false, tt.at)
			f := openBuilt(t, b)
			recs := records(t, f)
			got, err := f.SampleID(&recs[0])
			if err != nil || got != tt.want {
				t.Errorf("%s: got %+v, %v\nwant %+v", tt.name, got, err, tt.want)
			}
		}
	})
}

// TestSampleIDOfSample requires the same fields from a sample's start.
func TestSampleIDOfSample(t *testing.T) {
	bothOrders(t, func(t *testing.T, b *perfbuild.File) {
		b.Events[0].SampleType |= perfbuild.CPU | perfbuild.StreamID | perfbuild.IDField
		b.Sample(perfbuild.Sample{PID: 70, TID: 71, Time: 5, CPU: 3, StreamID: 99})
		b.FinishedRound()
		f := openBuilt(t, b)
		recs := records(t, f)
		want := SampleID{Has: SampleTID | SampleTime | SampleCPU | SampleStreamID | SampleIDField,
			PID: 70, TID: 71, Time: 5, ID: 11, StreamID: 99, CPU: 3}
		if got, err := f.SampleID(&recs[0]); err != nil || got != want {
			t.Errorf("got %+v, %v\nwant %+v", got, err, want)
		}
		if got, err := f.SampleID(&recs[1]); err != nil || got != (SampleID{}) {
			t.Errorf("FINISHED_ROUND: got %+v, %v", got, err)
		}
	})
}

// TestTrailerByEvent has events with trailers that differ before the ID: each record must be read
// with the trailer of its event.
func TestTrailerByEvent(t *testing.T) {
	bothOrders(t, func(t *testing.T, b *perfbuild.File) {
		const common = perfbuild.Identifier | perfbuild.TID | perfbuild.Time
		b.Events = []perfbuild.Event{
			{SampleType: common, Flags: perfbuild.SampleIDAll, IDs: []uint64{21, 22}},
			{SampleType: common | perfbuild.CPU | perfbuild.StreamID, Flags: perfbuild.SampleIDAll,
				IDs: []uint64{23}},
		}
		b.Comm(1, 1, "first", false, perfbuild.At{PID: 1, TID: 1, Time: 10, ID: 22})
		b.Comm(2, 2, "second", false, perfbuild.At{PID: 2, TID: 2, Time: 20, CPU: 1, Event: 1})
		b.Comm(3, 3, "madeup", false, perfbuild.At{})
		b.Comm(4, 4, "unknown", false, perfbuild.At{Time: 1, ID: 777})
		f := openBuilt(t, b)
		recs := records(t, f)
		for i, want := range []struct {
			event int
			ok    bool
			name  string
			time  uint64
			err   error
		}{{event: 0, ok: true, name: "first", time: 10}, {event: 1, ok: true, name: "second",
			time: 20}, {event: 0, ok: true, name: "madeup", time: 0},
			{event: 0, time: 0, err: ErrUnknownID}} {
			event, ok := f.EventOf(&recs[i])
			if event != want.event || ok != want.ok {
				t.Errorf("record %d: event %d, %v", i, event, ok)
			}
			id, err := f.SampleID(&recs[i])
			var c Comm
			err2 := f.Comm(&recs[i], &c)
			if id.Time != want.time || err != want.err || err2 != want.err ||
				string(c.Name) != want.name {
				t.Errorf("record %d: %+v %v, %q %v", i, id, err, c.Name, err2)
			}
		}
	})
}
