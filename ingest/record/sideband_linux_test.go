package record

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"symbolize/ingest/format/bpf"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/record/sys"
)

// ringRecord makes a record as it lies in a ring: with the trailer of sys.SampleType.
func ringRecord(kind perfdata.Type, body []byte) []byte {
	const trailer = 32
	o := binary.NativeEndian
	b := o.AppendUint32(nil, uint32(kind))
	b = o.AppendUint16(b, 0)
	b = o.AppendUint16(b, uint16(sys.RecordHeader+len(body)+trailer))
	b = append(b, body...)
	b = o.AppendUint32(b, 11) // pid
	b = o.AppendUint32(b, 12) // tid
	b = o.AppendUint64(b, 99) // time
	b = o.AppendUint64(b, 1)  // cpu
	return o.AppendUint64(b, 5)
}

// ksymbolRecord reports the load or unload of code with a name.
func ksymbolRecord(pc uint64, name string, unregister bool) []byte {
	o := binary.NativeEndian
	b := o.AppendUint64(nil, pc)
	b = o.AppendUint32(b, 64)
	b = o.AppendUint16(b, 1) // BPF
	flags := uint16(0)
	if unregister {
		flags = 1
	}
	b = o.AppendUint16(b, flags)
	b = append(b, name...)
	b = append(b, make([]byte, 8-len(name)%8)...)
	return ringRecord(perfdata.TypeKSymbol, b)
}

func bpfEventRecord(kind uint16, id uint32, tag bpf.Tag) []byte {
	o := binary.NativeEndian
	b := o.AppendUint16(nil, kind)
	b = o.AppendUint16(b, 0)
	b = o.AppendUint32(b, id)
	return ringRecord(perfdata.TypeBPFEvent, append(b, tag[:]...))
}

// newTestSideband is one whose rings are the test, and whose kernel is k.
func newTestSideband(t *testing.T, k *fakeKernel) *sideband {
	t.Helper()
	r := newTestRoot(t)
	s := r.session(&Options{})
	procs, mods := r.processes(s), newModules(s)
	x, err := newSideband(s, &kernel{s: s, modules: mods}, mods, procs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(x.close)
	x.programs.source = k
	if x.out, err = newPerfOut([]uint64{5}, false); err != nil {
		t.Fatal(err)
	}
	return x
}

// TestSideband: each load in the records is read; one that is gone has the whole name from them.
func TestSideband(t *testing.T) {
	x := newTestSideband(t, newFakeKernel(3))
	const gone = "bpf_prog_0901000000000000_gone_at_once"
	for _, rec := range [][]byte{
		ksymbolRecord(0x1000, "bpf_prog_0301000000000000_on_enter", false),
		ksymbolRecord(0x2000, "bpf_prog_0303000000000000_inner", false),
		bpfEventRecord(perfdata.BPFLoad, 3, bpf.Tag{3, 1}),
		ksymbolRecord(0x5000, "bpf_trampoline_6442", false),
		ksymbolRecord(0x1000, "bpf_prog_0901000000000000_before", true),
		ksymbolRecord(0x3000, gone, false),
		ksymbolRecord(0x4000, "bpf_prog_0902000000000000_its_inner", false),
		bpfEventRecord(perfdata.BPFLoad, 9, bpf.Tag{9, 1}),
		bpfEventRecord(perfdata.BPFLoad, 8, bpf.Tag{8, 1}), // whose KSYMBOLs were lost
		bpfEventRecord(2, 3, bpf.Tag{3, 1}),                // an unload
		ringRecord(perfdata.TypeLost, binary.NativeEndian.AppendUint64(make([]byte, 8), 6)),
		ringRecord(perfdata.TypeComm, []byte{1, 2, 0, 0, 1, 2, 0, 0, 'c', 0, 0, 0, 0, 0, 0, 0}),
	} {
		x.record(rec)
	}
	x.programs.finish()
	s := x.s.summary
	want := []MissingProgram{{ID: 8, Symbol: "bpf_prog_0801000000000000", Reason: bpf.MissingGone},
		{ID: 9, Symbol: gone, Reason: bpf.MissingGone}}
	if !slices.Equal(s.Missing, want) || s.Programs != 3 || s.Images != 1 || x.ksymbols != 6 ||
		s.Lost["records of the rings"] != 6 || !x.procs.seen[0x201] || len(x.named) != 0 {
		t.Errorf("%+v, %d KSYMBOL records, processes %v", s, x.ksymbols, x.procs.seen)
	}
	part := &sidePart{out: x.out, symbols: x.symbols}
	part.imageThere(0x5000, "bpf_trampoline_6442") // already reported
	part.imageThere(0x6000, "bpf_dispatcher_xdp")
	names, ids := recordsOf(t, x.out)
	if len(names) != 7 || names[6] != "bpf_dispatcher_xdp" ||
		!slices.Equal(ids, []uint32{3, 9, 8, 3}) {
		t.Errorf("perf.data has %q and events of %v", names, ids)
	}
}

// TestSidebandCut: bytes that the kernel adds to a record for other recorders are not
// kept, so that any reader finds the trailer.
func TestSidebandCut(t *testing.T) {
	x := newTestSideband(t, newFakeKernel())
	for _, whole := range [][]byte{ksymbolRecord(0x1000, "bpf_prog_0301000000000000_f", false),
		bpfEventRecord(perfdata.BPFLoad, 3, bpf.Tag{3, 1})} {
		for _, more := range []int{0, 24, 32} {
			rec := append(slices.Clone(whole), make([]byte, more)...)
			binary.NativeEndian.PutUint16(rec[6:], uint16(len(rec)))
			if got := x.cut(rec); !slices.Equal(got, whole) {
				t.Errorf("%d bytes more: %x, want %x", more, got, whole)
			}
		}
	}
	comm := ringRecord(perfdata.TypeComm, make([]byte, 64))
	if got := x.cut(comm); len(got) != len(comm) {
		t.Errorf("a COMM record was cut to %d bytes", len(got))
	}
}

// TestSidebandDamaged passes over records that are not whole.
func TestSidebandDamaged(t *testing.T) {
	x := newTestSideband(t, newFakeKernel())
	for _, rec := range [][]byte{
		ksymbolRecord(0x1000, "bpf_prog_0301000000000000_on_enter", false),
		bpfEventRecord(perfdata.BPFLoad, 3, bpf.Tag{3, 1}), ringRecord(perfdata.TypeSample, make([]byte, 40)),
		ringRecord(perfdata.TypeLost, make([]byte, 16)), ringRecord(perfdata.TypeComm, make([]byte, 8)),
	} {
		for n := sys.RecordHeader; n < len(rec); n++ {
			x.record(rec[:n:n])
		}
	}
	if len(x.named) > maxNamed {
		t.Errorf("%d bytes of names", len(x.named))
	}
}

// TestNamedBound: names whose load never comes are not kept for ever.
func TestNamedBound(t *testing.T) {
	x := newTestSideband(t, newFakeKernel())
	rec := ksymbolRecord(0x1000, "bpf_prog_0301000000000000_on_enter", false)
	for range 2 * maxNamed / 30 {
		x.ksymbol(rec)
	}
	if len(x.named) > maxNamed {
		t.Errorf("%d bytes of names", len(x.named))
	}
	x.load(3, bpf.Tag{3, 1})
	if len(x.named) != 0 || x.programs.seen[3].symbol != "bpf_prog_0301000000000000_on_enter" {
		t.Errorf("%d bytes, %q", len(x.named), x.programs.seen[3].symbol)
	}
}

// FuzzRecords has records of any content taken in.
func FuzzRecords(f *testing.F) {
	f.Add(bpfEventRecord(perfdata.BPFLoad, 3, bpf.Tag{3, 1}))
	f.Add(ksymbolRecord(1, "bpf_prog_0301000000000000_on_enter", false))
	f.Add(ringRecord(perfdata.TypeSample, make([]byte, 40)))
	f.Add([]byte{9, 0, 0, 0, 0, 0, 8, 0})
	f.Fuzz(func(t *testing.T, rec []byte) {
		if len(rec) < sys.RecordHeader {
			return
		}
		rec = slices.Clone(rec[:min(len(rec), math.MaxUint16)&^7])
		binary.NativeEndian.PutUint16(rec[6:], uint16(len(rec)))
		newTestSideband(t, newFakeKernel(3)).record(rec)
	})
}
