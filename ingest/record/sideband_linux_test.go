package record

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/object/bpf"
	"symbolize/ingest/record/history"
	"symbolize/ingest/record/sampler"
	"symbolize/ingest/record/sys"
)

// ringRecord returns a record as in a ring: with the trailer of sys.SampleType.
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

// newTestSideband returns a sideband with kernel k; the test replaces the rings.
func newTestSideband(t *testing.T, k *fakeKernel) *sideband {
	t.Helper()
	r := newTestRoot(t)
	s := r.recording(&Options{})
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
	part.writeImage(0x5000, "bpf_trampoline_6442") // already reported
	part.writeImage(0x6000, "bpf_dispatcher_xdp")
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

// TestNamedBound: names without a load are not kept forever.
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

// FuzzRecords handles records with any content.
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

// TestSettled: after a list of the loaded programs addresses have an epoch of their own again.
func TestSettled(t *testing.T) {
	c := history.NewCodeLog(func() {}, func() {})
	c.Add(10, 0x5000, 0x200)
	c.Lost(50, 60)
	c.Lost(70, 80)
	c.LoseRange(50, 60, 0x20000, 0x1000)
	c.Add(95, 0x5000, 0x200)
	c.Settled(60, 65)
	for _, tt := range []struct{ pc, time, want uint64 }{
		{pc: 0x5010, time: 49, want: 10}, {pc: 0x777, time: 49, want: 0}, {pc: 0x5010, time: 64,
			want: sampler.UnknownTime}, {pc: 0x5010, time: 65, want: 65},
		{pc: 0x777, time: 69, want: 65}, {pc: 0x777, time: 70, want: sampler.UnknownTime}, {pc: 0x5010,
			time: 95, want: 95},
		{pc: 0x20010, time: 65, want: sampler.UnknownTime}, // of this range nobody has looked
	} {
		if got := c.Epoch([]uint64{tt.pc}, tt.time); got != tt.want {
			t.Errorf("%#x at %d: %d, want %d", tt.pc, tt.time, got, tt.want)
		}
	}
	c.Settled(80, 90)
	if got := c.Epoch([]uint64{0x777}, 93); got != 90 {
		t.Errorf("after the second look: %d", got)
	}
	var none *history.CodeLog
	none.Settled(1, 2)
}

// symbolRecords lists the KSYMBOL records of a file in order: "+" or "-", address and length,
// preceded by the time if it is 0 or the ring's.
func symbolRecords(t *testing.T, out *perfOut) (list []string, times map[uint64]bool) {
	t.Helper()
	if err := out.w.Close(); err != nil {
		t.Fatal(err)
	}
	fi, err := out.file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	f, err := perfdata.Open("perf.data", out.file, fi.Size())
	if err != nil {
		t.Fatal(err)
	}
	times = make(map[uint64]bool)
	for r := f.AllRecords(); r.Next(); {
		rec := r.Record()
		var k perfdata.KSymbol
		if rec.Type != perfdata.TypeKSymbol {
			continue
		}
		if err := f.KSymbol(rec, &k); err != nil {
			t.Fatal(err)
		}
		const timeFromEnd = 24
		time := binary.NativeEndian.Uint64(rec.Body[len(rec.Body)-timeFromEnd:])
		at, sign := "", "+"
		if time < 100 {
			at = fmt.Sprint(time)
		} else {
			times[time] = true
		}
		if k.Unregister {
			sign = "-"
		}
		list = append(list, fmt.Sprintf("%s%s%#x:%d", at, sign, k.Addr&0xffffff, k.Len))
	}
	return list, times
}

// TestRelist: after a loss of records, present programs get records with that time, absent ones a
// record of their unload, and epochs are known again.
func TestRelist(t *testing.T) {
	k := newFakeKernel(3, 4, 5)
	x := newTestSideband(t, k)
	x.changes = history.NewCodeLog(func() {}, func() {})
	x.relistAfterLoss()
	x.relisting.next = func(id uint32) (uint32, error) {
		for _, next := range slices.Sorted(maps.Keys(k.programs)) {
			if next > id {
				return next, nil
			}
		}
		return 0, os.ErrNotExist
	}
	if ms := x.relist(x.s.host.Monotonic()); ms != -1 {
		t.Errorf("nothing was lost, and there is a look in %d ms", ms)
	}
	delete(k.programs, 5)
	x.programs.present(3)
	load := func(id uint32, tag bpf.Tag) {
		p := testProgram(id)
		for _, f := range p.Funcs {
			rec := ksymbolRecord(uint64(f.Start), "bpf_prog_0501000000000000_"+f.Name, false)
			binary.NativeEndian.PutUint32(rec[sys.RecordHeader+8:], uint32(len(f.Code)))
			x.record(rec)
		}
		x.record(bpfEventRecord(perfdata.BPFLoad, id, tag))
	}
	load(5, bpf.Tag{5, 1}) // it is gone, the record of which is lost, as that of the load of 4
	x.current.Latest = 100
	x.record(ringRecord(perfdata.TypeLost, binary.NativeEndian.AppendUint64(make([]byte, 8), 6)))
	at := uint64(testProgram(4).Funcs[0].Start) + 8
	if got := x.changes.Epoch([]uint64{at}, x.s.host.Monotonic()); got != sampler.UnknownTime {
		t.Errorf("records were lost, and the epoch is %d", got)
	}
	if ms := x.relist(x.s.host.Monotonic()); ms != -1 {
		t.Errorf("there is another look in %d ms", ms)
	}
	if got := x.changes.Epoch([]uint64{at}, x.s.host.Monotonic()); got != x.relisting.last {
		t.Errorf("it was looked again at %d, and the epoch is %d", x.relisting.last, got)
	}
	x.programs.finish()
	n := 0
	if err := x.programs.synthesize(x.out.w, &n); err != nil {
		t.Fatal(err)
	}
	got, times := symbolRecords(t, x.out)
	const want = "99+0x050000:4136 99+0x058000:24 -0x050000:4136 -0x058000:24 " +
		"0+0x030000:4136 0+0x038000:24 +0x030000:4136 +0x038000:24 +0x040000:4136 +0x048000:24"
	text := strings.ReplaceAll(strings.Join(got, " "), "0x", "0x0")
	if text != want || len(times) != 1 {
		t.Errorf("%s at %v, want\n%s", text, times, want)
	}
	x.record(ringRecord(perfdata.TypeLost, binary.NativeEndian.AppendUint64(make([]byte, 8), 6)))
	if ms := x.relist(x.relisting.last + 1); ms < 900 || ms > 1001 {
		t.Errorf("the next look is in %d ms", ms)
	}
	if len(k.opened) != 0 {
		t.Errorf("%d programs are open", len(k.opened))
	}
}

// TestIsBPFImage: code of BPF in kallsyms that is no program.
func TestIsBPFImage(t *testing.T) {
	for name, want := range map[string]bool{"bpf_trampoline_6442": true, "bpf_dispatcher_xdp": true,
		"bpf__tcp_congestion_ops_cong_avoid": true, "bpf_prog_5366fbb9fb520c5e_h1_avoid": false,
		"bpf_trampoline": false, "": false} {
		if got := isBPFImage([]byte(name)); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
