package perfdata

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"symbolize/fixtures/perfbuild"
	"symbolize/ingest/decode"
)

// TestRecordedSwapped rewrites recorded captures in the format of a big-endian recorder,
// and requires equal results of both.
func TestRecordedSwapped(t *testing.T) {
	for _, name := range []string{"mixed", "mixed-buildid", "events", "bpf", "spawn", "dwarf",
		"tracepoint", "nochain"} {
		little := openBytes(t, recorded(t, name))
		big := openBuilt(t, swapped(t, little))
		if !big.BigEndian {
			t.Fatal("not big-endian")
		}
		a, b := records(t, little), records(t, big)
		if len(a) != len(b) {
			t.Fatalf("%s: %d records, %d swapped", name, len(a), len(b))
		}
		for i := range little.Events {
			x, y := little.Events[i], big.Events[i]
			if x.Attr != y.Attr || x.Name != y.Name || !slices.Equal(x.IDs, y.IDs) {
				t.Errorf("%s: event %+v, swapped %+v", name, x, y)
			}
		}
		for i := range a {
			x, y := describe(t, little, &a[i]), describe(t, big, &b[i])
			if x != y {
				t.Fatalf("%s: record %d\n%s\nswapped\n%s", name, i, x, y)
			}
		}
	}
}

// describe returns all decoded values of a record.
func describe(t *testing.T, f *File, rec *Record) string {
	t.Helper()
	id, err := f.SampleID(rec)
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("%s %#x %d %+v", rec.Type, rec.Misc, rec.Size, id)
	if rec.Type == TypeSample {
		var s Sample
		if err := f.DecodeSample(rec, &s); err != nil {
			t.Fatal(err)
		}
		s.scratch = nil
		return text + fmt.Sprintf(" %+v", s)
	}
	if get := getters[rec.Type]; get != nil {
		x, err := get(f, rec)
		if err != nil {
			t.Fatal(err)
		}
		return text + fmt.Sprintf(" %+v", x)
	}
	return text
}

// swapped writes the records of a little-endian file anew. Types without a decoder keep
// their bytes.
func swapped(t *testing.T, f *File) *perfbuild.File {
	t.Helper()
	b := perfbuild.NewOrder(true)
	b.Events = nil
	for _, ev := range f.Events {
		a := ev.Attr
		b.AttrSize = int(a.Size)
		b.Events = append(b.Events, perfbuild.Event{Type: uint32(a.Type), Config: a.Config,
			Period: a.SamplePeriod, SampleType: uint64(a.SampleType),
			ReadFormat: uint64(a.ReadFormat),
			Flags:      uint64(a.Flags), Config1: a.Config1, BranchSampleType: a.BranchSampleType,
			RegsUser: a.SampleRegsUser, StackUser: a.SampleStackUser, ClockID: a.ClockID,
			RegsIntr: a.SampleRegsIntr, MaxStack: a.SampleMaxStack, IDs: ev.IDs, Name: ev.Name})
	}
	b.EventDesc()
	for _, rec := range records(t, f) {
		swapRecord(t, f, &rec, b)
	}
	return b
}

func swapRecord(t *testing.T, f *File, rec *Record, b *perfbuild.File) {
	t.Helper()
	id, err := f.SampleID(rec)
	if err != nil {
		t.Fatal(err)
	}
	event, _ := f.EventOf(rec)
	at := perfbuild.At{PID: id.PID, TID: id.TID, Time: id.Time, CPU: id.CPU, StreamID: id.StreamID,
		ID: id.ID, Event: event}
	switch rec.Type {
	case TypeSample:
		swapSample(t, f, rec, b)
	case TypeMmap, TypeMmap2:
		swapMmap(t, f, rec, at, b)
	case TypeComm:
		x, _ := getComm(f, rec)
		c := x.(commResult)
		b.Comm(c.PID, c.TID, c.name, c.Exec, at)
	case TypeFork, TypeExit:
		swapTask(f, rec, at, b)
	case TypeKSymbol:
		x, _ := getKSymbol(f, rec)
		k := x.(ksymbolResult)
		b.KSymbol(k.Addr, k.Len, k.Kind, k.Unregister, k.name, at)
	case TypeBPFEvent:
		x, _ := getBPFEvent(f, rec)
		e := x.(BPFEvent)
		b.BPFEvent(e.Kind, e.ID, e.Tag, at)
	case TypeLost:
		x, _ := getLost(f, rec)
		b.Lost(x.(Lost).ID, x.(Lost).Count, at)
	default:
		if rec.Type < firstUserType {
			t.Fatalf("%s records cannot be swapped yet", rec.Type)
		}
		b.Record(uint32(rec.Type), rec.Misc, rec.Body)
	}
}

func swapMmap(t *testing.T, f *File, rec *Record, at perfbuild.At, b *perfbuild.File) {
	t.Helper()
	x, err := getMmap(f, rec)
	if err != nil {
		t.Fatal(err)
	}
	m := x.(mmapResult)
	p := perfbuild.Mmap{PID: m.PID, TID: m.TID, Addr: m.Addr, Len: m.Len, PgOff: m.PgOff,
		Maj: m.Maj, Min: m.Min, Ino: m.Ino, InoGen: m.InoGen, Prot: m.Prot, Flags: m.Flags,
		Misc: rec.Misc, NoProt: m.Prot == 0, Filename: m.name}
	if !m.BuildID.IsZero() {
		p.BuildID = m.BuildID.Bytes()
	}
	if rec.Type == TypeMmap {
		b.Mmap(p, at)
	} else {
		b.Mmap2(p, at)
	}
}

func swapTask(f *File, rec *Record, at perfbuild.At, b *perfbuild.File) {
	x, _ := getTask(f, rec)
	k := x.(Task)
	at.BodyTime = k.Time
	switch {
	case rec.Type == TypeExit:
		b.Exit(k.PID, k.PPID, k.TID, k.PTID, at)
	case k.Synthesized:
		b.ForkSynthesized(k.PID, k.PPID, k.TID, k.PTID)
	default:
		b.Fork(k.PID, k.PPID, k.TID, k.PTID, at)
	}
}

func swapSample(t *testing.T, f *File, rec *Record, b *perfbuild.File) {
	t.Helper()
	var s Sample
	if err := f.DecodeSample(rec, &s); err != nil {
		t.Fatal(err)
	}
	b.Sample(perfbuild.Sample{Event: s.Event, Misc: rec.Misc, IP: s.IP, PID: s.PID, TID: s.TID,
		Time: s.Time, Addr: s.Addr, ID: s.ID, StreamID: s.StreamID, CPU: s.CPU, Period: s.Period,
		Read: unpack(s.Read), Chain: unpack(s.Chain), Raw: s.Raw,
		UserRegs:  perfbuild.Regs{ABI: s.UserRegsABI, Values: unpack(s.UserRegs)},
		UserStack: padded(f, &s), DynSize: uint64(len(s.UserStack)), Weight: s.Weight,
		DataSrc: s.DataSrc, PhysAddr: s.PhysAddr, DataPageSize: s.DataPageSize,
		CodePageSize: s.CodePageSize})
}

// padded returns the user stack at the size that the kernel recorded.
func padded(f *File, s *Sample) []byte {
	if len(s.UserStack) == 0 {
		return nil
	}
	return append(bytes.Clone(s.UserStack),
		make([]byte, int(f.Events[s.Event].Attr.SampleStackUser)-len(s.UserStack))...)
}

func unpack(b []byte) []uint64 {
	var words []uint64
	for ; len(b) >= 8; b = b[8:] {
		words = append(words, decode.U64(b, false))
	}
	return words
}
