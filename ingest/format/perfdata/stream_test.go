package perfdata

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"symbolize/buildid"
	"symbolize/fixtures/perfbuild"
)

// containerInput is a file with events, features and records of several kinds.
func containerInput(big bool) *perfbuild.File {
	b := perfbuild.NewOrder(big)
	b.Events = []perfbuild.Event{
		{Type: 1, Period: 1000, SampleType: perfbuild.IP | perfbuild.TID | perfbuild.Time |
			perfbuild.Identifier, Flags: perfbuild.SampleIDAll, IDs: []uint64{11, 12}, Name: "first"},
		{Type: 2, Config: 77, Period: 1, SampleType: perfbuild.IP | perfbuild.TID |
			perfbuild.Time | perfbuild.Identifier, Flags: perfbuild.SampleIDAll,
			IDs: []uint64{21}, Name: "sched:second"},
	}
	b.FeatureString(perfbuild.FeatureHostname, "host")
	b.FeatureString(perfbuild.FeatureArch, "x86_64")
	b.CmdLine("perf", "record", "-o", "-")
	b.EventDesc()
	b.BuildIDs(perfbuild.BuildIDEntry{ID: bytes.Repeat([]byte{7}, 20), Filename: "/bin/x"},
		perfbuild.BuildIDEntry{ID: bytes.Repeat([]byte{8}, 8), Filename: "/bin/longer-name"})
	b.Feature(perfbuild.FeatureTracingData, []byte("\x17\x08\x44tracing of some length"))
	b.Comm(1, 1, "x", false, perfbuild.At{Time: 1, ID: 11})
	for i := range uint64(5) {
		b.Sample(perfbuild.Sample{PID: 1, TID: 1, Time: 2 + i, IP: 0x400000 + i, Event: int(i % 2)})
	}
	return b
}

// TestPipe reads the same from a stream as from the file of the same content.
func TestPipe(t *testing.T) {
	bothOrders(t, func(t *testing.T, b *perfbuild.File) {
		b = containerInput(b.BigEndian)
		file, pipe := openBuilt(t, b), openBytes(t, b.Pipe())
		if !pipe.Pipe() || file.Pipe() || len(pipe.Warnings) > 0 {
			t.Errorf("pipe %v, %v; warnings %v", pipe.Pipe(), file.Pipe(), pipe.Warnings)
		}
		x, y := &file.Features, &pipe.Features
		if x.Hostname != y.Hostname || x.Arch != y.Arch || !slices.Equal(x.CmdLine, y.CmdLine) ||
			!slices.Equal(x.BuildIDs, y.BuildIDs) || len(y.BuildIDs) != 2 || x.Present != y.Present {
			t.Errorf("features %+v, of the file %+v", y, x)
		}
		blob, err := pipe.FeatureBytes(FeatureTracingData, 1<<10)
		if err != nil || !bytes.HasPrefix(blob, []byte("\x17\x08\x44tracing of some length")) {
			t.Errorf("tracing data %q, %v", blob, err)
		}
		for i := range file.Events {
			a, b := file.Events[i], pipe.Events[i]
			if a.Attr != b.Attr || a.Name != b.Name || !slices.Equal(a.IDs, b.IDs) {
				t.Errorf("event %+v, of the file %+v", b, a)
			}
		}
		if a, b := samplesOf(t, file), samplesOf(t, pipe); !slices.Equal(a, b) || len(b) != 5 {
			t.Errorf("samples %v, of the file %v", b, a)
		}
	})
}

// samplesOf returns the event and address of each sample.
func samplesOf(t *testing.T, f *File) (out [][2]uint64) {
	t.Helper()
	for _, rec := range records(t, f) {
		var s Sample
		if rec.Type != TypeSample {
			continue
		}
		if err := f.DecodeSample(&rec, &s); err != nil {
			t.Fatal(err)
		}
		out = append(out, [2]uint64{uint64(s.Event), s.IP})
	}
	return out
}

// TestPipeUpdates has names that come as records of their own, and build IDs that come late.
func TestPipeUpdates(t *testing.T) {
	bothOrders(t, func(t *testing.T, b *perfbuild.File) {
		big := b.BigEndian
		b = perfbuild.NewOrder(big)
		b.Events = containerInput(big).Events
		b.EventNameUpdate(12, "renamed")
		b.EventTypeRecord(77, "old:name")
		b.Sample(perfbuild.Sample{PID: 1, TID: 1, Time: 2, IP: 0x400000})
		late := perfbuild.NewOrder(big)
		late.Events = nil
		late.BuildIDs(perfbuild.BuildIDEntry{ID: bytes.Repeat([]byte{9}, 20), Filename: "/bin/late"})
		data := append(b.Pipe(), late.StreamHeader()...)
		f := openBytes(t, append(data, data[len(data)-100:]...))
		if f.Events[0].Name != "renamed" || f.Events[1].Name != "old:name" {
			t.Errorf("events %q and %q", f.Events[0].Name, f.Events[1].Name)
		}
		want := buildid.New(bytes.Repeat([]byte{9}, 20))
		if ids := f.Features.BuildIDs; len(ids) == 0 || ids[0].ID != want {
			t.Errorf("build IDs %+v", ids)
		}
	})
}

// TestPipeDamage opens streams that end early or carry text of their recorder at the end.
func TestPipeDamage(t *testing.T) {
	data := containerInput(false).Pipe()
	f := openBytes(t, append(slices.Clone(data), "[ perf record: Woken up 1 times ]\n"...))
	if recs, err := readAll(f.AllRecords()); err == nil || len(f.Events) != 2 || len(recs) < 10 {
		t.Errorf("text behind the stream: %d records, %d events, %v", len(recs), len(f.Events), err)
	}
	empty := openBytes(t, data[:16])
	if len(empty.Warnings) != 1 || !strings.Contains(empty.Warnings[0].Error(), "no events") {
		t.Errorf("a header alone: %v", empty.Warnings)
	}
	for n := range data {
		f, err := Open("cut", bytes.NewReader(data[:n]), int64(n))
		if n < 8 && !errors.Is(err, ErrNotPerfData) || n >= 16 && err != nil {
			t.Fatalf("%d bytes: %v", n, err)
		}
		if err == nil {
			walkFuzzed(t, f, int64(n))
		}
	}
}

// TestVersion1 reads files with a magic without byte order.
func TestVersion1(t *testing.T) {
	bothOrders(t, func(t *testing.T, b *perfbuild.File) {
		b = containerInput(b.BigEndian)
		f, want := openBytes(t, b.Version1()), openBuilt(t, b)
		if f.BigEndian != b.BigEndian || len(f.Warnings) > 0 || f.Events[1].Name != "sched:second" {
			t.Errorf("big-endian %v, warnings %v, events %+v", f.BigEndian, f.Warnings, f.Events)
		}
		if a, b := samplesOf(t, f), samplesOf(t, want); !slices.Equal(a, b) {
			t.Errorf("samples %v, want %v", a, b)
		}
		pipe := b.Pipe()
		copy(pipe, "PERFFILE")
		if f := openBytes(t, pipe); f.BigEndian != b.BigEndian || len(f.Events) != 2 {
			t.Errorf("pipe: big-endian %v, %d events", f.BigEndian, len(f.Events))
		}
	})
}
