package perfdata

import (
	"encoding/binary"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"symbolize/fixtures/perfbuild"
	"symbolize/ingest/decode"
)

// le returns words as the bytes in a Sample.
func le(words ...uint64) []byte {
	var b []byte
	for _, w := range words {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	return b
}

// everything is a sample with a value in every field.
var everything = perfbuild.Sample{
	PID: 70, TID: 71, IP: 0x401234, Time: 1 << 40, Addr: 0xadd4, ID: 11, StreamID: 13, CPU: 3,
	Period: 250, Read: []uint64{1000, 900, 800, 11, 2},
	Chain:        []uint64{perfbuild.ContextUser, 0x401234, 0x402345},
	Raw:          []byte("0123456789ab"),
	BranchHWIdx:  5,
	Branches:     []perfbuild.Branch{{From: 1, To: 2, Flags: 0x1a5_0013}, {From: 3, To: 4}},
	BranchCounts: []uint64{8, 9},
	UserRegs:     perfbuild.Regs{ABI: 2, Values: []uint64{101, 102, 103}},
	UserStack:    []byte("sixteen bytes..!"), DynSize: 11,
	Weight: 0x0003_0002_00000001, DataSrc: 31, Transaction: 32,
	IntrRegs: perfbuild.Regs{ABI: 1, Values: []uint64{104, 105}},
	PhysAddr: 33, Cgroup: 34, DataPageSize: 35, CodePageSize: 36, Aux: []byte("auxdata!"),
}

// everythingDecoded is its decoded form when the event has all fields.
var everythingDecoded = Sample{
	PID: 70, TID: 71, IP: 0x401234, Time: 1 << 40, Addr: 0xadd4, ID: 11, StreamID: 13, CPU: 3,
	Period: 250, Chain: le(^uint64(511), 0x401234, 0x402345), HasUserStack: true,
	SampleExtra: SampleExtra{
		Read: le(1000, 900, 800, 11, 2), Raw: []byte("0123456789ab"), BranchHWIdx: 5,
		Branches: le(1, 2, 0x1a5_0013, 3, 4, 0), BranchCounts: le(8, 9),
		UserRegsABI: 2, UserRegs: le(101, 102, 103), UserStack: []byte("sixteen byt"), UserAsked: 16,
		Weight: 0x0003_0002_00000001, DataSrc: 31, Transaction: 32,
		IntrRegsABI: 1, IntrRegs: le(104, 105),
		PhysAddr: 33, Cgroup: 34, DataPageSize: 35, CodePageSize: 36, Aux: []byte("auxdata!"),
	},
}

// fieldEvent returns an event with these fields in samples.
func fieldEvent(sampleType uint64) perfbuild.Event {
	return perfbuild.Event{Type: 1, Period: 777, SampleType: sampleType, ReadFormat: 0b10111,
		BranchSampleType: 1<<17 | 1<<19, RegsUser: 0b10101, RegsIntr: 0b11, IDs: []uint64{11}}
}

// want cuts everythingDecoded to the fields of a sample type.
func want(sampleType uint64) Sample {
	w := everythingDecoded
	w.Fields = SampleType(sampleType)
	clearField := func(bit uint64, p any) {
		if sampleType&bit == 0 {
			reflect.ValueOf(p).Elem().SetZero()
		}
	}
	clearField(perfbuild.IP, &w.IP)
	clearField(perfbuild.TID, &w.PID)
	clearField(perfbuild.TID, &w.TID)
	clearField(perfbuild.Time, &w.Time)
	clearField(perfbuild.Addr, &w.Addr)
	clearField(perfbuild.IDField|perfbuild.Identifier, &w.ID)
	clearField(perfbuild.StreamID, &w.StreamID)
	clearField(perfbuild.CPU, &w.CPU)
	clearField(perfbuild.Read, &w.Read)
	clearField(perfbuild.Callchain, &w.Chain)
	clearField(perfbuild.Raw, &w.Raw)
	clearField(perfbuild.BranchStack, &w.BranchHWIdx)
	clearField(perfbuild.BranchStack, &w.Branches)
	clearField(perfbuild.BranchStack, &w.BranchCounts)
	clearField(perfbuild.RegsUser, &w.UserRegsABI)
	clearField(perfbuild.RegsUser, &w.UserRegs)
	clearField(perfbuild.StackUser, &w.UserStack)
	clearField(perfbuild.StackUser, &w.UserAsked)
	clearField(perfbuild.Weight|perfbuild.WeightStruct, &w.Weight)
	clearField(perfbuild.DataSrc, &w.DataSrc)
	clearField(perfbuild.Transaction, &w.Transaction)
	clearField(perfbuild.RegsIntr, &w.IntrRegsABI)
	clearField(perfbuild.RegsIntr, &w.IntrRegs)
	clearField(perfbuild.PhysAddr, &w.PhysAddr)
	clearField(perfbuild.Cgroup, &w.Cgroup)
	clearField(perfbuild.DataPageSize, &w.DataPageSize)
	clearField(perfbuild.CodePageSize, &w.CodePageSize)
	clearField(perfbuild.Aux, &w.Aux)
	w.HasUserStack = sampleType&perfbuild.RegsUser != 0 && sampleType&perfbuild.StackUser != 0
	if sampleType&perfbuild.Period == 0 {
		w.Period = 777
	}
	return w
}

// equal compares the exported fields of two Samples.
func equal(a, b *Sample) bool {
	x, y := *a, *b
	x.scratch, y.scratch, x.dirty, y.dirty = nil, nil, false, false
	return reflect.DeepEqual(x, y)
}

// TestSampleFields decodes samples of each field alone, of all but one, and of all, into one
// Sample: no value of an earlier one may stay.
func TestSampleFields(t *testing.T) {
	const all = 1<<25 - 1
	types := []uint64{all, 0, perfbuild.IP | perfbuild.TID | perfbuild.Callchain}
	for bit := range 25 {
		types = append(types, 1<<bit, all&^(1<<bit))
	}
	bothOrders(t, func(t *testing.T, b *perfbuild.File) {
		var s Sample
		for _, st := range types {
			b := perfbuild.NewOrder(b.BigEndian)
			b.Events = []perfbuild.Event{fieldEvent(st)}
			b.Sample(everything)
			f := openBuilt(t, b)
			recs := records(t, f)
			w := want(st)
			if err := f.DecodeSample(&recs[0], &s); err != nil || !equal(&s, &w) {
				t.Errorf("sample_type %#x: %v\ngot  %+v\nwant %+v", st, err, s, w)
			}
		}
	})
}

// TestSampleCut cuts a sample at every length: an error with the record, but never a panic; and no
// field may reach behind the record.
func TestSampleCut(t *testing.T) {
	bothOrders(t, func(t *testing.T, b *perfbuild.File) {
		for _, st := range []uint64{1<<25 - 1, perfbuild.IP | perfbuild.TID | perfbuild.Callchain} {
			b := perfbuild.NewOrder(b.BigEndian)
			b.Events = []perfbuild.Event{fieldEvent(st)}
			b.Sample(everything)
			f := openBuilt(t, b)
			rec := records(t, f)[0]
			body := rec.Body
			var s Sample
			for n := range body {
				rec.Body = body[:n:n]
				err := f.DecodeSample(&rec, &s)
				var de *decode.Error
				if !errors.As(err, &de) || de.Offset != rec.Offset ||
					!strings.Contains(de.Name, "SAMPLE") {
					t.Fatalf("%d of %d bytes: error %v", n, len(body), err)
				}
			}
		}
	})
}

// TestSampleCounts sets absurd counts in a sample.
func TestSampleCounts(t *testing.T) {
	for _, field := range []uint64{perfbuild.Callchain, perfbuild.BranchStack, perfbuild.StackUser,
		perfbuild.Aux, perfbuild.Raw, perfbuild.Read} {
		for _, n := range []uint64{1 << 63, 1<<61 + 1, ^uint64(0), 100, 1 << 32} {
			b := perfbuild.New()
			ev := fieldEvent(perfbuild.IP | field)
			ev.BranchSampleType = 0
			ev.ReadFormat = 1 << 3 // GROUP
			b.Events = []perfbuild.Event{ev}
			b.Record(9, User, le(0x1234, n|1<<31, 5, 6))
			f := openBuilt(t, b)
			rec := records(t, f)[0]
			var s Sample
			if err := f.DecodeSample(&rec, &s); err == nil {
				t.Errorf("field %#x, count %#x: no error", field, n)
			}
		}
	}
}

// TestReadFormats decodes a sample with READ values before the chain, for each read_format: the
// chain must be found.
func TestReadFormats(t *testing.T) {
	for rf := range uint64(32) {
		var values []uint64
		each := 1
		for _, bit := range []uint64{4, 16} {
			if rf&bit != 0 {
				each++
			}
		}
		times := int(rf&1 + rf>>1&1)
		if rf&8 != 0 {
			values = append(values, 3)
			each *= 3
		}
		for i := range each + times {
			values = append(values, uint64(1000+i))
		}
		b := perfbuild.New()
		b.Events = []perfbuild.Event{{
			SampleType: perfbuild.IP | perfbuild.Read | perfbuild.Callchain, ReadFormat: rf}}
		b.Sample(perfbuild.Sample{Read: values, Chain: []uint64{perfbuild.ContextUser, 0x77}})
		f := openBuilt(t, b)
		rec := records(t, f)[0]
		var s Sample
		err := f.DecodeSample(&rec, &s)
		if err != nil || !slices.Equal(s.Read, le(values...)) ||
			!slices.Equal(s.Chain, le(perfbuild.ContextUser, 0x77)) {
			t.Errorf("read_format %#x: %v, read %d bytes, chain %x", rf, err, len(s.Read), s.Chain)
		}
	}
}

func TestPeriod(t *testing.T) {
	const fields = perfbuild.IP | perfbuild.TID
	for _, tt := range []struct {
		name  string
		event perfbuild.Event
		want  uint64
	}{
		{name: "field", event: perfbuild.Event{SampleType: fields | perfbuild.Period, Period: 5},
			want: 42},
		{name: "fixed", event: perfbuild.Event{SampleType: fields, Period: 5}, want: 5},
		{name: "frequency",
			event: perfbuild.Event{SampleType: fields, Period: 99, Flags: perfbuild.Freq},
			want:  1},
		{name: "none", event: perfbuild.Event{SampleType: fields}, want: 1},
	} {
		b := perfbuild.New()
		b.Events = []perfbuild.Event{tt.event}
		b.Sample(perfbuild.Sample{PID: 1, IP: 2, Period: 42})
		f := openBuilt(t, b)
		rec := records(t, f)[0]
		var s Sample
		if err := f.DecodeSample(&rec, &s); err != nil || s.Period != tt.want {
			t.Errorf("%s: period %d, %v; want %d", tt.name, s.Period, err, tt.want)
		}
	}
}

// TestUserAsked: the requested size is the size of the copy if the record is full, and the
// attribute's if a recorder has truncated the copy to its valid bytes.
func TestUserAsked(t *testing.T) {
	for _, test := range []struct {
		name             string
		copied, attr     int
		valid, wantAsked int
	}{
		{name: "as asked", copied: 8192, attr: 8192, valid: 8192, wantAsked: 8192},
		{name: "with rubbish behind", copied: 8192, attr: 8192, valid: 800, wantAsked: 8192},
		{name: "cut by the recorder", copied: 4928, attr: 65528, valid: 4928, wantAsked: 65528},
		{name: "cut to the room of a record", copied: 65472, attr: 65528, valid: 65472,
			wantAsked: 65472},
		{name: "no attribute", copied: 16, attr: 0, valid: 16, wantAsked: 16},
	} {
		b := perfbuild.New()
		b.Events = []perfbuild.Event{{SampleType: perfbuild.IP | perfbuild.RegsUser | perfbuild.StackUser,
			RegsUser: 1, StackUser: uint32(test.attr)}}
		b.Sample(perfbuild.Sample{UserRegs: perfbuild.Regs{ABI: 2, Values: []uint64{1}},
			UserStack: make([]byte, test.copied), DynSize: uint64(test.valid)})
		f := openBuilt(t, b)
		var s Sample
		if err := f.DecodeSample(&records(t, f)[0], &s); err != nil ||
			s.UserAsked != test.wantAsked || len(s.UserStack) != test.valid {
			t.Errorf("%s: %v: %d valid of %d, want %d of %d", test.name, err, len(s.UserStack), s.UserAsked,
				test.valid, test.wantAsked)
		}
	}
}

// TestUserStackAbsent has samples of an event with user stacks in a kernel thread: no registers, no
// stack.
func TestUserStackAbsent(t *testing.T) {
	b := perfbuild.New()
	b.Events = []perfbuild.Event{fieldEvent(perfbuild.IP | perfbuild.Callchain |
		perfbuild.RegsUser | perfbuild.StackUser)}
	b.Sample(perfbuild.Sample{Chain: []uint64{perfbuild.ContextKernel, 0xffffffff81000000}})
	f := openBuilt(t, b)
	rec := records(t, f)[0]
	var s Sample
	if err := f.DecodeSample(&rec, &s); err != nil || s.HasUserStack || s.UserStack != nil {
		t.Errorf("%v, %+v", err, s)
	}
}

// TestUnknownReadBit refuses an event with unknown values in the READ field.
func TestUnknownReadBit(t *testing.T) {
	b := perfbuild.New()
	b.Events = []perfbuild.Event{{SampleType: perfbuild.IP | perfbuild.Read, ReadFormat: 1 << 5}}
	b.FinishedRound()
	if err := openBuilt(t, b).Events[0].Err; err == nil || !strings.Contains(err.Error(), "bit 5") {
		t.Errorf("with READ: %v", err)
	}
	b.Events[0].SampleType = perfbuild.IP
	if err := openBuilt(t, b).Events[0].Err; err != nil {
		t.Errorf("without READ: %v", err)
	}
}

// TestUnknownSampleBit refuses one event, not the file.
func TestUnknownSampleBit(t *testing.T) {
	bothOrders(t, func(t *testing.T, b *perfbuild.File) {
		const fields = perfbuild.Identifier | perfbuild.IP
		b.Events = []perfbuild.Event{
			{SampleType: fields, IDs: []uint64{1}, Name: "good"},
			{SampleType: fields | 1<<40, IDs: []uint64{2}, Name: "future"},
		}
		b.EventDesc()
		b.Sample(perfbuild.Sample{Event: 1, IP: 7})
		b.Sample(perfbuild.Sample{Event: 0, IP: 8})
		f := openBuilt(t, b)
		if f.Events[0].Err != nil || f.Events[1].Err == nil ||
			!strings.Contains(f.Events[1].Err.Error(), "bit 40") {
			t.Fatalf("errors %v, %v", f.Events[0].Err, f.Events[1].Err)
		}
		recs := records(t, f)
		var s Sample
		if err := f.DecodeSample(&recs[0], &s); err != f.Events[1].Err {
			t.Errorf("future event: %v", err)
		}
		if err := f.DecodeSample(&recs[1], &s); err != nil || s.IP != 8 {
			t.Errorf("good event: %v, %+v", err, s)
		}
	})
}

// TestEventOfSample covers the ways of identifying a sample's event.
func TestEventOfSample(t *testing.T) {
	const base = perfbuild.IP | perfbuild.TID | perfbuild.Time
	far := []uint64{5, 1 << 50} // too far apart for a table
	tests := []struct {
		name   string
		events []perfbuild.Event
		sample perfbuild.Sample
		want   int
		ok     bool
	}{
		{name: "one event, any ID", events: []perfbuild.Event{
			{SampleType: base | perfbuild.IDField, IDs: []uint64{5}}},
			sample: perfbuild.Sample{ID: 99}, want: 0, ok: true},
		{name: "identifier", events: []perfbuild.Event{
			{SampleType: base | perfbuild.Identifier, IDs: []uint64{5}},
			{SampleType: base | perfbuild.Identifier | perfbuild.CPU, IDs: []uint64{6, 7}}},
			sample: perfbuild.Sample{Event: 1, ID: 7}, want: 1, ok: true},
		{name: "ID field",
			events: []perfbuild.Event{{SampleType: base | perfbuild.IDField, IDs: []uint64{5}},
				{SampleType: base | perfbuild.IDField, IDs: []uint64{6}}},
			sample: perfbuild.Sample{Event: 1}, want: 1, ok: true},
		{name: "ID field behind ADDR", events: []perfbuild.Event{
			{SampleType: base | perfbuild.Addr | perfbuild.IDField, IDs: []uint64{5}},
			{SampleType: base | perfbuild.Addr | perfbuild.IDField, IDs: []uint64{6}}},
			sample: perfbuild.Sample{Event: 1}, want: 1, ok: true},
		{name: "IDs at different places", events: []perfbuild.Event{
			{SampleType: base | perfbuild.Identifier, IDs: []uint64{5}},
			{SampleType: base | perfbuild.IDField, IDs: []uint64{6}}},
			sample: perfbuild.Sample{Event: 1, IP: 0x1234}, want: 1, ok: true},
		{name: "far IDs",
			events: []perfbuild.Event{{SampleType: base | perfbuild.Identifier, IDs: far[:1]},
				{SampleType: base | perfbuild.Identifier, IDs: far[1:]}},
			sample: perfbuild.Sample{Event: 1}, want: 1, ok: true},
		{name: "no ID in samples", events: []perfbuild.Event{{SampleType: base, IDs: []uint64{5}},
			{SampleType: base, IDs: []uint64{6}}}, sample: perfbuild.Sample{Event: 1}, want: 0,
			ok: true},
		{name: "no IDs in attrs",
			events: []perfbuild.Event{{SampleType: base | perfbuild.Identifier},
				{SampleType: base | perfbuild.Identifier}}, sample: perfbuild.Sample{Event: 1, ID: 3},
			want: 0, ok: true},
		{name: "unknown ID", events: []perfbuild.Event{
			{SampleType: base | perfbuild.Identifier, IDs: []uint64{5}},
			{SampleType: base | perfbuild.Identifier, IDs: []uint64{6}}},
			sample: perfbuild.Sample{ID: 99}, want: 0},
		{name: "ID of two events", events: []perfbuild.Event{
			{SampleType: base | perfbuild.Identifier, IDs: []uint64{5}},
			{SampleType: base | perfbuild.Identifier, IDs: []uint64{5, 6}}},
			sample: perfbuild.Sample{ID: 5}, want: 0, ok: true},
	}
	bothOrders(t, func(t *testing.T, b *perfbuild.File) {
		for _, tt := range tests {
			b := perfbuild.NewOrder(b.BigEndian)
			b.Events = tt.events
			b.Sample(tt.sample)
			f := openBuilt(t, b)
			rec := records(t, f)[0]
			if got, ok := f.EventOf(&rec); got != tt.want || ok != tt.ok {
				t.Errorf("%s: event %d, %v; want %d, %v", tt.name, got, ok, tt.want, tt.ok)
			}
			var s Sample
			if err := f.DecodeSample(&rec, &s); tt.ok && (err != nil || s.Event != tt.want) ||
				!tt.ok && !errors.Is(err, ErrUnknownID) {
				t.Errorf("%s: decoded event %d, %v", tt.name, s.Event, err)
			}
		}
	})
}

// TestNoAllocations checks that decoding does not allocate.
func TestNoAllocations(t *testing.T) {
	bothOrders(t, func(t *testing.T, b *perfbuild.File) {
		for range 100 {
			b.Sample(perfbuild.Sample{PID: 1, Time: 5,
				Chain: []uint64{perfbuild.ContextUser, 1, 2, 3}})
			b.Comm(1, 1, "name", false, perfbuild.At{Time: 6})
		}
		f := openBuilt(t, b)
		r := f.AllRecords()
		var s Sample
		var c Comm
		n := testing.AllocsPerRun(5, func() {
			r.Reset(f.Data.Offset, f.Data.End())
			for r.Next() {
				var err error
				switch r.Record().Type {
				case TypeSample:
					err = f.DecodeSample(r.Record(), &s)
				case TypeComm:
					err = f.Comm(r.Record(), &c)
				}
				if err != nil {
					t.Fatal(err)
				}
				if _, err := f.SampleID(r.Record()); err != nil {
					t.Fatal(err)
				}
			}
		})
		if n != 0 {
			t.Errorf("%v allocations", n)
		}
	})
}
