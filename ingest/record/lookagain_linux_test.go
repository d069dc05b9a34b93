package record

import (
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"symbolize/ingest/format/bpf"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/record/history"
	"symbolize/ingest/record/sampler"
	"symbolize/ingest/record/sys"
)

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

// symbolRecords lists the KSYMBOL records of a file in its order: "+" or "-", the
// address and the length; those of time 0 and of the ring's have it before them.
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

// TestLookAgain: after records were lost the programs that are there have records of that time,
// those that are not there any more one of their unload, and epochs are known again.
func TestLookAgain(t *testing.T) {
	k := newFakeKernel(3, 4, 5)
	x := newTestSideband(t, k)
	x.changes = history.NewCodeLog(func() {}, func() {})
	x.lookAgainAfterLoss()
	x.again.next = func(id uint32) (uint32, error) {
		for _, next := range slices.Sorted(maps.Keys(k.programs)) {
			if next > id {
				return next, nil
			}
		}
		return 0, os.ErrNotExist
	}
	if ms := x.lookAgain(x.s.host.Monotonic()); ms != -1 {
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
	if ms := x.lookAgain(x.s.host.Monotonic()); ms != -1 {
		t.Errorf("there is another look in %d ms", ms)
	}
	if got := x.changes.Epoch([]uint64{at}, x.s.host.Monotonic()); got != x.again.last {
		t.Errorf("it was looked again at %d, and the epoch is %d", x.again.last, got)
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
	if ms := x.lookAgain(x.again.last + 1); ms < 900 || ms > 1001 {
		t.Errorf("the next look is in %d ms", ms)
	}
	if len(k.opened) != 0 {
		t.Errorf("%d programs are open", len(k.opened))
	}
}
