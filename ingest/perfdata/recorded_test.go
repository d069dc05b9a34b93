package perfdata

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"symbolize/buildid"
	"symbolize/fixtures/perfbuild"
)

const captures = "../../fixtures/captures"

func recorded(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(captures, name+".data"))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// readable are the captures that this package reads.
func readable(t testing.TB) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(captures, "*.data"))
	if err != nil || len(paths) < 10 {
		t.Fatalf("captures %v, %v", paths, err)
	}
	var names []string
	for _, p := range paths {
		name := strings.TrimSuffix(filepath.Base(p), ".data")
		if name != "pipe" {
			names = append(names, name)
		}
	}
	return names
}

// line is what perf script prints of a sample and perfdata knows without
// symbols.
type line struct {
	pid, tid int32
	micros   uint64
	event    string
	kernel   string // its kernel addresses, which perf prints as they are
}

// ours returns the lines of a capture, sorted.
func ours(t *testing.T, f *File) map[line]int {
	t.Helper()
	lines := make(map[line]int)
	var s Sample
	for _, rec := range records(t, f) {
		if rec.Type != TypeSample {
			continue
		}
		if err := f.DecodeSample(&rec, &s); err != nil {
			t.Fatal(err)
		}
		l := line{s.PID, s.TID, s.Time / 1000, f.Events[s.Event].Name, ""}
		for c := s.Chain; len(c) > 0; c = c[8:] {
			if ip := u64(c, false); ip >= 1<<63 && ip < ^uint64(4094) {
				l.kernel += fmt.Sprintf(" %x", ip)
			}
		}
		lines[l]++
	}
	return lines
}

var (
	sampleLine = regexp.MustCompile(`(-?\d+)/(-?\d+) +(?:(\d+)\.(\d{6}): +)?(\S+): *(.*)$`)
	frameLine  = regexp.MustCompile(`^\s+([89a-f][0-9a-f]{15}) `)
)

// perfs returns the lines of the perf script text beside a capture.
func perfs(t *testing.T, name string) map[line]int {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(captures, name+".script.gz"))
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	lines := make(map[line]int)
	for sample := range strings.SplitSeq(strings.Trim(string(text), "\n"), "\n\n") {
		head, frames, _ := strings.Cut(sample, "\n")
		m := sampleLine.FindStringSubmatch(head)
		if m == nil {
			t.Fatalf("%s: line %q", name, head)
		}
		l := line{event: m[5]}
		for i, p := range []*int32{&l.pid, &l.tid} {
			v, _ := strconv.ParseInt(m[1+i], 10, 32)
			*p = int32(v)
		}
		l.micros, _ = strconv.ParseUint(m[3]+m[4], 10, 64)
		for frame := range strings.Lines(frames) {
			if m := frameLine.FindStringSubmatch(frame); m != nil {
				l.kernel += " " + m[1]
			}
		}
		lines[l]++
	}
	return lines
}

// TestAgainstPerf wants of every recorded capture exactly the samples that perf
// prints, with the same process, thread, time, event and kernel addresses.
func TestAgainstPerf(t *testing.T) {
	for _, name := range []string{"mixed", "mixed-buildid", "per-thread", "events", "bpf", "spawn",
		"deleted", "deleted-buildid", "fixed", "clock", "go"} {
		got, want := ours(t, openBytes(t, recorded(t, name))), perfs(t, name)
		if len(got) < 5 {
			t.Errorf("%s: only %d samples", name, len(got))
		}
		if !maps.Equal(got, want) {
			for l, n := range got {
				if want[l] != n {
					t.Errorf("%s: ours only: %+v", name, l)
				}
			}
			for l, n := range want {
				if got[l] != n {
					t.Errorf("%s: perf's only: %+v", name, l)
				}
			}
		}
	}
}

// TestRecorded walks every capture: nothing may be wrong with one.
func TestRecorded(t *testing.T) {
	for _, name := range readable(t) {
		f := openBytes(t, recorded(t, name))
		counts, err := walk(f)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if name == "killed" {
			if len(f.Warnings) != 1 || !errors.Is(f.Warnings[0], ErrUnfinished) ||
				f.Events[0].Name != "cpu-clock" || counts[TypeSample] < 10 {
				t.Errorf("killed: %v, event %q, %v", f.Warnings, f.Events[0].Name, counts)
			}
			continue
		}
		x := &f.Features
		if len(f.Warnings) > 0 || x.Hostname != "vm" || x.Arch != "x86_64" || x.Version != "6.1.192" ||
			!strings.HasPrefix(x.OSRelease, "6.18.") || x.CmdLine[0] != "/usr/bin/perf" {
			t.Errorf("%s: %v, %+v", name, f.Warnings, x)
		}
		if (x.Compressed != nil) != (name == "zstd") || (counts[TypeCompressed] > 0) != (name == "zstd") {
			t.Errorf("%s: compressed %v, %v", name, x.Compressed, counts)
		}
		noTime := name == "per-thread" || name == "zstd" || strings.HasSuffix(name, "-buildid")
		if (x.FirstTime == 0) != noTime || x.LastTime < x.FirstTime {
			t.Errorf("%s: sample time %d to %d", name, x.FirstTime, x.LastTime)
		}
	}
}

// TestRecordedPipe is recognised.
func TestRecordedPipe(t *testing.T) {
	data := recorded(t, "pipe")
	_, err := Open("pipe.data", bytes.NewReader(data), int64(len(data)))
	if !errors.Is(err, ErrPipe) || !IsPerfData(data) {
		t.Errorf("error %v", err)
	}
}

// TestRecordedFacts holds what each capture was made to show.
func TestRecordedFacts(t *testing.T) {
	open := func(name string) (*File, []Record) {
		f := openBytes(t, recorded(t, name))
		return f, records(t, f)
	}
	f, _ := open("per-thread")
	if f.Events[0].Attr.SampleType&SampleTime != 0 {
		t.Error("per-thread: it has TIME")
	}
	f, _ = open("events")
	var names []string
	for _, ev := range f.Events {
		names = append(names, ev.Name)
	}
	if !slices.Equal(names, []string{"cpu-clock", "page-faults", "context-switches"}) {
		t.Errorf("events: %q", names)
	}
	f, recs := open("clock")
	if a := f.Events[0].Attr; !a.Has(FlagUseClockID) || a.ClockID != 1 || f.Features.ClockData == nil ||
		f.Features.ClockData.ClockID != 1 || f.Features.ClockData.WallNanos < 1<<60 {
		t.Errorf("clock: %+v, %+v", a, f.Features.ClockData)
	}
	f, recs = open("dwarf")
	stacks := 0
	var s Sample
	for i := range recs {
		if recs[i].Type == TypeSample && f.DecodeSample(&recs[i], &s) == nil && s.HasUserStack {
			stacks++
			if len(s.UserRegs) != 20*8 || len(s.UserStack) == 0 || len(s.UserStack) > 1024 {
				t.Errorf("dwarf: %d bytes of registers, %d of stack", len(s.UserRegs), len(s.UserStack))
			}
		}
	}
	if stacks < 5 {
		t.Errorf("dwarf: %d user stacks", stacks)
	}
	f, recs = open("tracepoint")
	for i := range recs {
		if recs[i].Type == TypeSample && (f.DecodeSample(&recs[i], &s) != nil ||
			!bytes.Contains(s.Raw, []byte("bin/")) && !bytes.Contains(s.Raw, []byte("/proc/self/exe"))) {
			t.Errorf("tracepoint: raw %q", s.Raw)
		}
	}
	if ev := f.Events[0]; ev.Name != "sched:sched_process_exec" || ev.Attr.Type != AttrTracepoint {
		t.Errorf("tracepoint: %+v", ev)
	}
}

// TestRecordedBuildIDs wants the build IDs of the objects beside the captures,
// from the feature section and from MMAP2 records.
func TestRecordedBuildIDs(t *testing.T) {
	f := openBytes(t, recorded(t, "mixed"))
	byName := make(map[string]buildid.ID)
	for _, e := range f.Features.BuildIDs {
		byName[e.Filename] = e.ID
	}
	g := openBytes(t, recorded(t, "mixed-buildid"))
	inRecords := make(map[string]buildid.ID)
	for _, rec := range records(t, g) {
		var m Mmap
		if rec.Type == TypeMmap2 {
			if err := g.Mmap(&rec, &m); err != nil {
				t.Fatal(err)
			}
			inRecords[string(m.Filename)] = m.BuildID
		}
	}
	notes, err := os.ReadFile("../../fixtures/kernel/notes")
	if err != nil {
		t.Fatal(err)
	}
	kernel := buildid.New(notes[16:36]) // the first note is the build ID
	for name, ids := range map[string]map[string]buildid.ID{"feature": byName, "MMAP2": inRecords} {
		k := ids["[kernel.kallsyms]"]
		if name == "MMAP2" {
			k = ids["[kernel.kallsyms]_text"]
		}
		if !k.Matches(kernel) {
			t.Errorf("%s: kernel %s, want %s", name, k, kernel)
		}
		for _, path := range []string{"bin/mixed", "bin/fixed", "lib/libkernels.so"} {
			id := ids["/srv/app/"+path]
			b, err := os.ReadFile("../../fixtures/objects/" + path)
			if err != nil {
				t.Fatal(err)
			}
			if id.Len() != 20 || !bytes.Contains(b, id.Bytes()) {
				t.Errorf("%s: %s has %q, which is not in the file", name, path, id)
			}
		}
	}
}

// walk decodes everything that can be, and returns how many records of each type
// there were, and the first error.
func walk(f *File) (map[Type]int, error) {
	counts := make(map[Type]int)
	var first error
	note := func(err error) {
		if first == nil {
			first = err
		}
	}
	var s Sample
	r := f.AllRecords()
	for r.Next() {
		rec := r.Record()
		counts[rec.Type]++
		if _, err := f.SampleID(rec); err != nil {
			note(err)
		}
		f.EventOf(rec)
		if rec.Type == TypeSample {
			note(f.DecodeSample(rec, &s))
		} else if get := getters[rec.Type]; get != nil {
			_, err := get(f, rec)
			note(err)
		}
	}
	note(r.Err())
	return counts, first
}

var getters = map[Type]func(*File, *Record) (any, error){
	TypeMmap: getMmap, TypeMmap2: getMmap, TypeComm: getComm, TypeFork: getTask, TypeExit: getTask,
	TypeKSymbol: getKSymbol, TypeBPFEvent: getBPFEvent, TypeLost: getLost,
	TypeLostSamples: getLost, TypeThrottle: getThrottle, TypeUnthrottle: getThrottle,
	TypeTextPoke: getTextPoke, TypeNamespaces: getNamespaces, TypeCgroup: getCgroup,
	TypeSwitch: getSwitch, TypeSwitchCPUWide: getSwitch,
}

// TestRecordedSwept opens recorded captures at many cuts.
func TestRecordedSwept(t *testing.T) {
	for _, name := range readable(t) {
		data := recorded(t, name)
		if name != "killed" {
			sweep(t, data, 1+len(data)/150)
		}
	}
}

// TestRecordedSwapped writes recorded captures as a big-endian recorder would
// have, and wants the same of both.
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

// describe returns all that is decoded of a record.
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

// swapped writes the records of a little-endian file anew. The types that are
// not decoded here keep their bytes.
func swapped(t *testing.T, f *File) *perfbuild.File {
	t.Helper()
	b := perfbuild.NewOrder(true)
	b.Events = nil
	for _, ev := range f.Events {
		a := ev.Attr
		b.AttrSize = int(a.Size)
		b.Events = append(b.Events, perfbuild.Event{Type: uint32(a.Type), Config: a.Config,
			Period: a.SamplePeriod, SampleType: uint64(a.SampleType), ReadFormat: uint64(a.ReadFormat),
			Flags: uint64(a.Flags), Config1: a.Config1, BranchSampleType: a.BranchSampleType,
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
		x, err := getMmap(f, rec)
		m := x.(mmapResult)
		p := perfbuild.Mmap{PID: m.PID, TID: m.TID, Addr: m.Addr, Len: m.Len, PgOff: m.PgOff,
			Maj: m.Maj, Min: m.Min, Ino: m.Ino, InoGen: m.InoGen, Prot: m.Prot, Flags: m.Flags,
			Misc: rec.Misc, NoProt: m.Prot == 0, Filename: m.name}
		if !m.BuildID.IsZero() {
			p.BuildID = m.BuildID.Bytes()
		}
		if err != nil {
			t.Fatal(err)
		}
		if rec.Type == TypeMmap {
			b.Mmap(p, at)
		} else {
			b.Mmap2(p, at)
		}
	case TypeComm:
		x, _ := getComm(f, rec)
		c := x.(commResult)
		b.Comm(c.PID, c.TID, c.name, c.Exec, at)
	case TypeFork, TypeExit:
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
		words = append(words, u64(b, false))
	}
	return words
}
