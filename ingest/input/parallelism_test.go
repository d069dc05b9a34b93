package input

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"symbolize/fixtures/perfbuild"
	"symbolize/ingest"
	"symbolize/ingest/sideband"
)

func TestParallelismAt(t *testing.T) {
	for _, tt := range []struct {
		name     string
		cpus     int
		switches string // "TIME TID CPU in|out|exit", of CPUs if it begins with "*"
		want     string // at the times 0 to 9
	}{
		{name: "no switch", want: "1 1 1 1 1 1 1 1 1 1"},
		{name: "from one", cpus: 4, switches: "2 8 0 in;4 9 0 in;6 8 0 out;8 9 0 out",
			want: "1 1 2 2 3 3 2 2 1 1"},
		{name: "in any order", cpus: 4, switches: "8 9 0 out;4 9 0 in;2 8 0 in;6 8 0 out",
			want: "1 1 2 2 3 3 2 2 1 1"},
		{name: "not more than CPUs", cpus: 2, switches: "2 8 0 in;4 9 0 in;6 8 0 out",
			want: "1 1 2 2 2 2 2 2 2 2"},
		{name: "not less than one", switches: "2 8 0 out;4 9 0 out;6 8 0 in;7 8 0 in;8 8 0 in",
			want: "1 1 1 1 1 1 1 1 2 2"},
		{name: "exits", cpus: 2, switches: "2 8 0 in;4 8 0 exit;6 9 0 in;8 9 0 exit",
			want: "1 1 2 2 1 1 2 2 1 1"},
		{name: "exits, of CPUs", cpus: 2, switches: "*;2 8 0 exit;3 8 0 out;3 0 0 in;5 0 0 out;5 9 0 in;" +
			"6 9 1 exit;7 9 0 out", want: "1 1 1 1 1 1 1 1 1 1"},
		{name: "of CPUs", cpus: 2, switches: "*;2 8 0 out;2 0 0 in;4 7 1 out;4 9 1 in;6 0 0 out;6 8 0 in",
			want: "2 2 1 1 1 1 2 2 2 2"},
	} {
		var list []sideband.Switch
		text, wide := strings.CutPrefix(tt.switches, "*;")
		for line := range strings.SplitSeq(text, ";") {
			s, way := sideband.Switch{CPUWide: wide}, ""
			if n, _ := fmt.Sscan(line, &s.Time, &s.TID, &s.CPU, &way); n == 4 {
				s.Out, s.Exit = way != "in", way == "exit"
				list = append(list, s)
			}
		}
		p := newParallelism(list, tt.cpus)
		var got []string
		for time := range uint64(10) {
			got = append(got, strconv.Itoa(int(p.at(time))))
		}
		if text := strings.Join(got, " "); text != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, text, tt.want)
		}
	}
}

// TestLatencyExample is the example of perf's documentation: a function runs for 9 s in one thread,
// another one for 1 s in 128 threads. The processor time is 6.6 % and 93.4 %, the latency 90 % and
// 10 %.
func TestLatencyExample(t *testing.T) {
	const second, foo, bar = 1_000_000_000, 1, 2
	c := waitsCapture(false)
	c.NrCPUs(128, 128)
	sample := func(time uint64, tid int32, function uint64) {
		c.Sample(perfbuild.Sample{Event: clockEvent, PID: 10, TID: tid, Time: time, Period: second / 100,
			Chain: []uint64{cK, 0xffffffff81000000 + function}})
	}
	for i := range uint64(900) {
		sample(1+i*second/100, 10, foo)
	}
	c.Switch(true, false, perfbuild.At{Time: 9 * second, PID: 10, TID: 10})
	for tid := range int32(128) {
		c.Switch(false, false, perfbuild.At{Time: 9*second + 1, PID: 10, TID: 100 + tid})
	}
	for i := range uint64(100) {
		for tid := range int32(128) {
			sample(9*second+2+i*second/100, 100+tid, bar)
		}
	}
	p := fold(t, c.Bytes(), Options{Selection: Selection{Event: "cpu-clock",
		Keep: ingest.Keep{Tags: ingest.ParallelismTag}}})
	overhead, latency := make(map[uint64]float64), make(map[uint64]float64)
	for i := range p.Samples {
		s := &p.Samples[i]
		n, err := strconv.ParseFloat(p.Tag(s, ingest.ParallelismTag), 64)
		if err != nil {
			t.Fatal(err)
		}
		at := uint64(p.Locations[p.Leaves[s.Stack]].Offset)
		overhead[at] += float64(s.Weight) / (137 * second) * 100
		latency[at] += float64(s.Weight) / n / (10 * second) * 100
	}
	got := fmt.Sprintf("overhead %.1f %.1f, latency %.1f %.1f", overhead[foo], overhead[bar], latency[foo],
		latency[bar])
	if want := "overhead 6.6 93.4, latency 90.0 10.0"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestParallelismUnknown: a recording without context switches has no parallelism, and the error
// names the option that records them. Lost records are reported.
func TestParallelismUnknown(t *testing.T) {
	keep := Options{Selection: Selection{Keep: ingest.Keep{Tags: ingest.ParallelismTag}}}
	c := waitsCapture(false)
	c.record(t, "1 0 clock 11")
	unknown, err := openBytes(t, c.Bytes(), keep)
	if err == nil {
		_, err = unknown.Profile(t.Context())
	}
	if err == nil || !strings.Contains(err.Error(), "no context switches") {
		t.Errorf("%v", err)
	}
	waits := keep
	waits.Event = ingest.OffCPUEvent
	unknown, err = openBytes(t, c.Bytes(), waits)
	if err == nil {
		_, err = unknown.Profile(t.Context())
	}
	if err == nil || !strings.Contains(err.Error(), "samples of off-cpu have no parallelism") {
		t.Errorf("of waits: %v", err)
	}
	c.record(t, "2 0 in 12")
	c.record(t, "3 0 lost")
	c.record(t, "4 0 clock 12")
	p := fold(t, c.Bytes(), keep)
	if !slices.ContainsFunc(p.Stats.Warnings, func(w ingest.Warning) bool {
		return strings.Contains(w.Text, "3 records were lost: the parallelism may be wrong")
	}) {
		t.Errorf("%v", p.Stats.Warnings)
	}
}
