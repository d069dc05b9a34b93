package sampler

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"symbolize/fixtures/must"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/stackmap"
)

// withoutKernel is a Sampler that stopped, with records as if from a kernel.
func withoutKernel(t *testing.T, o Options) *Sampler {
	t.Helper()
	return &Sampler{opts: o, stopped: true,
		Part: &Part{opts: &o, tables: twoTables(t), counts: newCounts(), files: make(fileSet)}}
}

// commit writes a sampler's bundle and opens it.
func commit(t *testing.T, s *Sampler) *bundle.Bundle {
	t.Helper()
	path := filepath.Join(t.TempDir(), "stacks.bundle")
	w, err := bundle.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.Write(w)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Commit(&bundle.Manifest{Format: 1, Samples: []bundle.Samples{m}}); err != nil {
		t.Fatal(err)
	}
	b, err := bundle.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

// readBack reads the samples of a bundle by its manifest.
func readBack(t *testing.T, b *bundle.Bundle) *stackmap.Set {
	t.Helper()
	m := b.Manifest.Samples[0]
	input := func(name string) stackmap.Input {
		r, size, err := b.Entry(name)
		if err != nil {
			t.Fatal(err)
		}
		return stackmap.Input{Name: name, R: r, Size: size}
	}
	kernel, counts := input(m.KernelStacks), input(m.Counts)
	x := stackmap.Sampled{Event: stackmap.Event{Name: m.Event, Unit: m.Unit, Period: m.Period},
		Stacks: input(m.Stacks), Options: stackmap.Options{Counts: &counts, Kernel: &kernel}}
	var err error
	if x.Options.Key, err = stackmap.ParseFields(m.Key); err != nil {
		t.Fatal(err)
	}
	if x.Options.Value, err = stackmap.ParseValue(m.Value); err != nil {
		t.Fatal(err)
	}
	if m.Weight != "" {
		if x.Options.Weight, err = stackmap.ParseValue(m.Weight); err != nil {
			t.Fatal(err)
		}
	}
	set, err := stackmap.ReadSampled([]stackmap.Sampled{x})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// formatSamples prints samples, one a line: "pid comm user;… kernel;… count weight".
func formatSamples(set *stackmap.Set) (lines []string) {
	part := func(p stackmap.Part) string {
		if p.Cause != stackmap.Present {
			return p.Cause.String()
		}
		var text []string
		for _, f := range set.Stack(p.Stack) {
			word := fmt.Sprintf("%#x", f.Offset)
			if f.Status == stackmap.Valid {
				word = set.IDs[f.Ref].Hex() + "+" + word
			}
			text = append(text, word)
		}
		return strings.Join(text, ";")
	}
	for _, x := range set.Samples {
		lines = append(lines, fmt.Sprintf("%d %s | %s | %s | %d %d", x.PID, x.Comm, part(x.User),
			part(x.Kernel), x.Count, x.Weight))
	}
	slices.Sort(lines)
	return lines
}

// kernelFrames are addresses.
func kernelFrames(list ...uint64) (b []byte) {
	for _, pc := range list {
		b = binary.NativeEndian.AppendUint64(b, pc)
	}
	return b
}

// received fills tables and counts: a sample of everything that can be there or lost.
func received(s *Sampler) {
	user := userFrames(1, 2)
	copy(user[4:], "\x11\x22\x33\x44\x55\x66\x77\x88") // a build ID of 8 bytes
	s.tables[userStack].add(hash{1, 1}, user)
	s.tables[kernelStack].add(hash{2, 2}, kernelFrames(0xffffffff81000010, 0xffffffff81000020))
	errno := func(n int64) hash { return hash{uint64(-n), noStack} }
	for _, x := range []struct {
		user, kernel hash
		pid          uint32
		comm         string
		v            countValue
	}{
		{user: hash{1, 1}, kernel: hash{2, 2}, pid: 10, comm: "both", v: countValue{1, 1000}},
		{user: hash{1, 1}, kernel: hashOf(nil), pid: 10, comm: "user", v: countValue{2, 2000}},
		{user: hashOf(nil), kernel: hash{2, 2}, pid: 0, comm: "swapper/0", v: countValue{3, 3000}},
		{user: hash{1, 1}, kernel: hash{9, 9}, pid: 10, comm: "unsent", v: countValue{4, 4000}},
		{user: errno(12), kernel: hash{2, 2}, pid: 10, comm: "no memory", v: countValue{5, 5000}},
		{user: errno(17), kernel: hash{2, 2}, pid: 10, comm: "fifteen letters",
			v: countValue{6, 6000}},
		{user: errno(14), kernel: errno(14), pid: 10, comm: "nothing", v: countValue{7, 7000}},
	} {
		key := countKey{User: x.user, Kernel: x.kernel, PID: x.pid}
		copy(key.Comm[:], x.comm)
		s.counts.add(s.tables, &key, [2]uint64{}, x.v)
	}
	s.final[statSamples] = s.counts.total() + 11 // 8 had no room, 3 were in between
	s.final[statNoCount] = 8
}

// TestReadBack writes a bundle and reads its samples with package stackmap: all stacks,
// labels and values are there, and losses are reported once, by cause.
func TestReadBack(t *testing.T) {
	for _, c := range []struct {
		o      Options
		event  stackmap.Event
		weight uint64 // of one sample, 0: its own
	}{
		{o: Options{Frequency: 1000}, event: stackmap.Event{Name: "cpu-clock", Unit: "nanoseconds",
			Period: 1_000_000}, weight: 1_000_000},
		{o: Options{Event: Event{Kind: Tracepoint, Group: "a", Name: "b"}},
			event: stackmap.Event{Name: "a:b", Unit: "count", Period: 1}, weight: 1},
		{o: Options{Event: Event{Kind: Uprobe, Path: "/a", Function: "f"}},
			event: stackmap.Event{Name: "uprobe:/a:f", Unit: "count", Period: 1}, weight: 1},
		{o: Options{Event: Event{Kind: OffCPU}},
			event: stackmap.Event{Name: "off-cpu", Unit: "nanoseconds"}, weight: 0},
	} {
		s := withoutKernel(t, c.o)
		received(s)
		set := readBack(t, commit(t, s))
		if len(set.Events) != 1 || set.Events[0] != c.event {
			t.Errorf("events %+v, want %+v", set.Events, c.event)
		}
		const user, kernel = "1122334455667788+0x1;0x2", "0xffffffff81000010;0xffffffff81000020"
		want := []string{
			"10 both | " + user + " | " + kernel + " | 1",
			"10 user | " + user + " | absent | 2",
			"0 swapper/0 | absent | " + kernel + " | 3",
			"10 unsent | " + user + " | not in the dump | 4",
			"10 no memory | no memory | " + kernel + " | 5",
			"10 fifteen letters | bucket taken | " + kernel + " | 6",
			"10 nothing | no stack taken | absent | 7",
		}
		for i := range want {
			weight := uint64(i+1) * 1000
			if c.weight > 0 {
				weight = uint64(i+1) * c.weight
			}
			want[i] += fmt.Sprintf(" %d", weight)
		}
		slices.Sort(want)
		if got := formatSamples(set); !slices.Equal(got, want) {
			t.Errorf("%s: samples\n%s\nwant\n%s", c.event.Name, strings.Join(got, "\n"),
				strings.Join(want, "\n"))
		}
		if set.LostSamples != 11 { // the 4 without a stack are among the samples
			t.Errorf("%d samples lost, want 11: %v", set.LostSamples, set.Losses)
		}
		losses := fmt.Sprint(set.Losses)
		for _, cause := range []string{"4 " + LostRing, "8 " + LostCounts, "3 " + LostDrain} {
			if !strings.Contains(losses, cause) {
				t.Errorf("%q is not reported: %s", cause, losses)
			}
		}
	}
}

// TestNothing reads back a recording in which nothing was sampled.
func TestNothing(t *testing.T) {
	set := readBack(t, commit(t, withoutKernel(t, Options{Frequency: 99})))
	if len(set.Samples) != 0 || set.NumStacks() != 0 || len(set.Warnings) != 0 {
		t.Errorf("%+v", set)
	}
}

// TestStats accounts for each sample once.
func TestStats(t *testing.T) {
	s := withoutKernel(t, Options{Event: Event{Kind: OffCPU}})
	received(s)
	s.final[statNoThread], s.final[statNoScratch], s.nested = 20, 30, 40
	s.final[statNoReturn] = 50
	st := s.Stats()
	want := map[string]uint64{LostCounts: 8, LostOffCPU: 20, LostScratch: 30, LostNested: 40,
		LostDrain: 3, LostRing: 4, LostReturn: 50}
	if fmt.Sprint(st.Lost) != fmt.Sprint(want) || st.Samples != 28+11+20+30+40+50 {
		t.Errorf("%+v, want %v lost", st, want)
	}
	s.readErr = os.ErrPermission
	if st := s.Stats(); st.Lost[LostRead] != 3 || st.Lost[LostDrain] != 0 || s.Err() == nil {
		t.Errorf("counts that cannot be read: %v", st.Lost)
	}
}

// TestLiveUnreadable: counts that cannot be read are lost, and reported.
func TestLiveUnreadable(t *testing.T) {
	must.BeLive(t, "loads BPF programs")
	s := start(t, Options{Frequency: 999})
	for s.stat(statSamples) == 0 { // this loop is sampled
	}
	s.maps.counts.Close()
	s.Stop()
	if st := s.Stats(); s.Err() == nil || st.Samples == 0 || st.Lost[LostRead] != st.Samples {
		t.Errorf("%v: %+v", s.Err(), st)
	}
}

// TestAddPiped has writers end, whoever fails.
func TestAddPiped(t *testing.T) {
	w, err := bundle.Create(filepath.Join(t.TempDir(), "x"))
	if err != nil {
		t.Fatal(err)
	}
	failure := errors.New("disk gone")
	if err := addPiped(w, "dumps/a", func(w io.Writer) error {
		_, err := w.Write([]byte("half"))
		return errors.Join(err, failure)
	}); !errors.Is(err, failure) {
		t.Errorf("error %v", err)
	}
	w.Abort()
	ended := false
	err = addPiped(w, "dumps/b", func(w io.Writer) error {
		defer func() { ended = true }()
		_, err := w.Write(make([]byte, 1<<20))
		return err
	})
	if !errors.Is(err, bundle.ErrClosed) || !ended {
		t.Errorf("error %v, the writer has ended: %v", err, ended)
	}
}
