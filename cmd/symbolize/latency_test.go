package main

import (
	"path/filepath"
	"strings"
	"testing"

	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/fixtures/must"
	"symbolize/fixtures/perfbuild"
)

// TestLatency: reports of a recording with context switches weigh by wall-clock time, and by
// processor time without --latency. Other recordings and --count are refused with the reason.
func TestLatency(t *testing.T) {
	path := filepath.Join(t.TempDir(), "perf.data")
	write := func(switches bool) {
		t.Helper()
		b := perfbuild.New()
		b.Events = perfbuild.SwitchEvents()
		b.EventDesc()
		b.NrCPUs(4, 4)
		sample := func(time uint64, tid int32, comm string) {
			b.Sample(perfbuild.Sample{Event: 2, PID: tid, TID: tid, Time: time, Period: 1_000_000})
		}
		for tid, comm := range map[int32]string{8: "alone", 9: "many"} {
			b.Comm(tid, tid, comm, false, perfbuild.At{Time: 1, PID: tid, TID: tid})
		}
		for i := range uint64(3) {
			sample(10+i, 8, "alone")
		}
		if switches {
			for tid := range int32(3) {
				b.Switch(false, false, perfbuild.At{Time: 20, PID: 9, TID: 10 + tid})
			}
		}
		for i := range uint64(4) {
			sample(30+i, 9, "many")
		}
		must.Write(t, path, b.Bytes())
	}
	for _, tt := range []struct {
		name, args string
		switches   bool
		status     int
		want       string // parts of the output, or of the error, in this order; | between them
	}{
		{name: "top", args: "top --latency --by comm", switches: true,
			want: "total 4.00ms|latency: weights are divided|latency latency% overhead|" +
				"3.00ms   75.00%   42.86%|alone|1.00ms   25.00%   57.14%|many"},
		{name: "processor time", args: "top --by comm", switches: true,
			want: "total 7.00ms|4.00ms 57.14%|many|3.00ms 42.86%|alone"},
		{name: "tree", args: "tree --latency --by parallelism,comm", switches: true,
			want: "total 4.00ms|latency: |3.00ms  75.00%|parallelism 1|alone|1.00ms  25.00%|parallelism 4|many"},
		{name: "a range", args: "top --by comm --tag-focus parallelism=1:2", switches: true,
			want: "3.00ms 42.86%|alone"},
		{name: "JSON", args: "top --latency --by comm --format json", switches: true,
			want: `"latency": true|"flat": 3000000|"overhead": 3000000|"total_overhead": 7000000`},
		{name: "flame graph", args: "flamegraph --latency --format folded", switches: true,
			want: "alone|3000000|many|1000000"},
		{name: "no switches", args: "top --latency", status: cli.Failed,
			want: "error: |it has no context switches|hint: record it with `perf record --switch-events`"},
		{name: "count", args: "top --latency --count", switches: true, status: cli.Usage,
			want: "error: --latency weighs samples"},
	} {
		write(tt.switches)
		env, stdout, stderr := inProcess(append(append([]string{"--store", t.TempDir()},
			strings.Fields(tt.args)...), path)...)
		code := Main(t.Context(), env)
		text := stdout.String()
		if code != 0 {
			text = stderr.String()
		}
		rest := text
		for part := range strings.SplitSeq(tt.want, "|") {
			_, after, ok := strings.Cut(rest, part)
			if !ok || code != tt.status {
				t.Fatalf("%s: status %d, no %q in\n%s%s", tt.name, code, part, text, stderr)
			}
			rest = after
		}
	}
}
