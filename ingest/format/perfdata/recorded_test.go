package perfdata

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"symbolize/buildid"
	"symbolize/fixtures/must"
	"symbolize/ingest/decode"
)

const captures = "../../../fixtures/captures"

func recorded(t testing.TB, name string) []byte {
	t.Helper()
	data := must.Read(t, filepath.Join(captures, name+".data"))
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

// line is perf script's output for a sample, without symbols.
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
			if ip := decode.U64(c, false); ip >= 1<<63 && ip < ^uint64(4094) {
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
	b := must.Read(t, filepath.Join(captures, name+".script.gz"))
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

// TestAgainstPerf requires of every recorded capture exactly the samples that perf
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

// TestRecorded decodes every capture without an error.
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
		if len(f.Warnings) > 0 || x.Hostname != "vm" || x.Arch != "x86_64" ||
			x.Version != "6.1.192" || !strings.HasPrefix(x.OSRelease, "6.18.") ||
			x.CmdLine[0] != "/usr/bin/perf" {
			t.Errorf("%s: %v, %+v", name, f.Warnings, x)
		}
		zstd := name == "zstd"
		if x.Compressed != zstd || (counts[TypeCompressed] > 0) != zstd {
			t.Errorf("%s: compressed %v, %v", name, x.Compressed, counts)
		}
		noTime := name == "per-thread" || zstd || strings.HasSuffix(name, "-buildid")
		if (x.FirstTime == 0) != noTime || x.LastTime < x.FirstTime {
			t.Errorf("%s: sample time %d to %d", name, x.FirstTime, x.LastTime)
		}
	}
}

// TestRecordedPipe reads the tables that perf writes as records.
func TestRecordedPipe(t *testing.T) {
	f, recs := open(t, "pipe")
	x := &f.Features
	if !f.Pipe() || len(f.Warnings) > 0 || len(f.Events) != 1 || f.Events[0].Name != "cpu-clock" {
		t.Errorf("pipe %v, warnings %v, events %+v", f.Pipe(), f.Warnings, f.Events)
	}
	if x.Arch != "x86_64" || x.Version == "" || len(x.CmdLine) == 0 || len(recs) != 65 {
		t.Errorf("%d records, features %+v", len(recs), x)
	}
}

// open opens a recorded capture.
func open(t *testing.T, name string) (*File, []Record) {
	t.Helper()
	f := openBytes(t, recorded(t, name))
	return f, records(t, f)
}

// TestRecordedAttrs checks the recorded options of the captures' events.
func TestRecordedAttrs(t *testing.T) {
	f, _ := open(t, "per-thread")
	if f.Events[0].Attr.SampleType&SampleTime != 0 {
		t.Error("per-thread: it has TIME")
	}
	f, _ = open(t, "events")
	var names []string
	for _, ev := range f.Events {
		names = append(names, ev.Name)
	}
	if !slices.Equal(names, []string{"cpu-clock", "page-faults", "context-switches"}) {
		t.Errorf("events: %q", names)
	}
	f, _ = open(t, "clock")
	c := f.Features.ClockData
	if a := f.Events[0].Attr; !a.Has(FlagUseClockID) || a.ClockID != 1 || c == nil ||
		c.ClockID != 1 || c.WallNanos < 1<<60 {
		t.Errorf("clock: %+v, %+v", a, c)
	}
	f, _ = open(t, "tracepoint")
	if ev := f.Events[0]; ev.Name != "sched:sched_process_exec" || ev.Attr.Type != AttrTracepoint {
		t.Errorf("tracepoint: %+v", ev)
	}
	list, err := f.Tracepoints()
	if err != nil || len(list) == 0 {
		t.Fatal(list, err)
	}
	for _, x := range list {
		if x.Name == "" || x.ID != f.Events[0].Attr.Config && len(f.Events) == 1 || len(x.Fields) == 0 {
			t.Errorf("%+v", x)
		}
	}
}

// TestRecordedSamples checks the recorded options of the captures' samples.
func TestRecordedSamples(t *testing.T) {
	var s Sample
	f, recs := open(t, "dwarf")
	stacks := 0
	for i := range recs {
		if recs[i].Type == TypeSample && f.DecodeSample(&recs[i], &s) == nil && s.HasUserStack {
			stacks++
			if len(s.UserRegs) != 20*8 || len(s.UserStack) == 0 || len(s.UserStack) > 1024 {
				t.Errorf("dwarf: %d bytes of registers, %d of stack", len(s.UserRegs),
					len(s.UserStack))
			}
		}
	}
	if stacks < 5 {
		t.Errorf("dwarf: %d user stacks", stacks)
	}
	f, recs = open(t, "tracepoint")
	program := regexp.MustCompile("bin/|/proc/self/exe")
	for i := range recs {
		if recs[i].Type != TypeSample {
			continue
		}
		if err := f.DecodeSample(&recs[i], &s); err != nil || !program.Match(s.Raw) {
			t.Errorf("tracepoint: raw %q", s.Raw)
		}
	}
}

// TestRecordedBuildIDs checks the build IDs of the objects beside the captures, from the feature
// section and from MMAP2 records.
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
	notes := must.Read(t, "../../../fixtures/kernel/notes")
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
			b := must.Read(t, "../../../fixtures/objects/"+path)
			if id.Len() != 20 || !bytes.Contains(b, id.Bytes()) {
				t.Errorf("%s: %s has %q, which is not in the file", name, path, id)
			}
		}
	}
}

// walk decodes all records, and returns the number of records of each type, and the
// first error.
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
	TypeLostSamples: getLost, TypeCallchainDeferred: getDeferredChain,
	TypeNamespaces: getNamespaces, TypeCgroup: getCgroup,
}

// TestRecordedSwept opens recorded captures truncated at many lengths.
func TestRecordedSwept(t *testing.T) {
	for _, name := range readable(t) {
		data := recorded(t, name)
		if name != "killed" {
			sweep(t, data, 1+len(data)/150)
		}
	}
}
