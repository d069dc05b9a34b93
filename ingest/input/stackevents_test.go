package input

import (
	"encoding/binary"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"symbolize/fixtures/bundlebuild"
	"symbolize/fixtures/must"
	"symbolize/ingest"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/rawdump"
)

// waitDump makes the dump of counts of threads off CPU, all with the first user stack.
func waitDump(t *testing.T, rows ...[3]uint64) []byte {
	t.Helper()
	var pairs [][2][]byte
	order := binary.LittleEndian
	for _, r := range rows { // prev_state, count, weight
		key := order.AppendUint32(order.AppendUint64(nil, 0xfffffff2<<32), 7)
		key = order.AppendUint64(append(key, "work"...), r[0])
		pairs = append(pairs, [2][]byte{key, order.AppendUint64(order.AppendUint64(nil, r[1]), r[2])})
	}
	b, err := rawdump.Append(nil, rawdump.Header{Type: 1, KeySize: 24, ValueSize: 16,
		Name: "off_cpu_counts"}, pairs)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// wallBundle writes a bundle of `capture --wall` with two stacks of running threads, 3 and 4
// samples of 100 ns, and four kinds of waits.
func wallBundle(t *testing.T, events ...string) (path string) {
	t.Helper()
	const valid, id = 1, "abcdefghijklmnopqrst"
	h := bundlebuild.NewHost()
	stacks := stackDump(t, [][]byte{stackRecord(valid, id, 0x100)},
		[][]byte{stackRecord(valid, id, 0x500)})
	h.Entries = map[string][]byte{
		bundle.DumpName("stacks"): stacks, bundle.DumpName("off_cpu_stacks"): stacks,
		bundle.DumpName("counts"): countDump(t, [5]any{0, -14, 7, "work", 3},
			[5]any{1, -14, 7, "work", 4}),
		bundle.DumpName("off_cpu_counts"): waitDump(t, [3]uint64{1, 2, 5000}, [3]uint64{2, 1, 600},
			[3]uint64{0, 3, 30}, [3]uint64{0x100, 1, 4}),
	}
	const key = "user_stack_id:0:4,kernel_stack_id:4:4,tgid:8:4,comm:12:4"
	of := map[string]map[string]any{
		"cpu-clock": {"event": "cpu-clock", "unit": "nanoseconds", "period": 100,
			"stacks": bundle.DumpName("stacks"), "counts": bundle.DumpName("counts"), "key": key,
			"value": "0:8"},
		"off-cpu": {"event": "off-cpu", "unit": "nanoseconds",
			"stacks": bundle.DumpName("off_cpu_stacks"), "counts": bundle.DumpName("off_cpu_counts"),
			"key": key + ",state:16:8", "value": "0:8", "weight": "8:8"},
	}
	var list []map[string]any
	for _, e := range events {
		list = append(list, of[e])
	}
	h.Manifest = map[string]any{"format": bundle.Format, "samples": list}
	path = filepath.Join(t.TempDir(), "wall.data")
	must.Write(t, path, h.Bundle())
	return path
}

// TestBundleWall: events of a bundle by name. Wall is the samples of running threads and all waits,
// by state.
func TestBundleWall(t *testing.T) {
	waits := map[string]uint64{"S": 5000, "D": 600, "R": 30, "R+": 4}
	for _, tt := range []struct {
		event  string
		want   map[string]uint64 // weight by state
		events int
	}{
		{event: "cpu-clock", want: map[string]uint64{"": 700}, events: 1},
		{event: "off-cpu", want: waits, events: 1},
		{event: "wall", want: map[string]uint64{"running": 700, "S": 5000, "D": 600, "R": 30, "R+": 4},
			events: 1},
		{event: "", want: map[string]uint64{"": 700, "S": 5000, "D": 600, "R": 30, "R+": 4}, events: 2},
	} {
		_, p := foldPath(t, wallBundle(t, "cpu-clock", "off-cpu"), Options{Selection: Selection{Event: tt.event}})
		got, total := make(map[string]uint64), uint64(0)
		for i := range p.Samples {
			got[p.Tag(&p.Samples[i], ingest.StateTag)] += p.Samples[i].Weight
		}
		for state, n := range tt.want {
			if got[state] != n {
				t.Errorf("%q: %d ns in state %q, want %d", tt.event, got[state], state, n)
			}
			total += n
		}
		if len(got) != len(tt.want) || p.Stats.Weight != total || len(p.Events) != tt.events ||
			tt.events == 1 && (p.Events[0].Name != tt.event || p.Events[0].Unit != "nanoseconds") {
			t.Errorf("%q: states %v, weight %d, want %d; %+v", tt.event, got, p.Stats.Weight, total,
				p.Events)
		}
	}
}

// TestBundleWakers: a waker's stack is above the stack of the wait, upside down, and its name is a
// label.
func TestBundleWakers(t *testing.T) {
	const valid, id, absent = 1, "abcdefghijklmnopqrst", 0xfffffff2
	h, order := bundlebuild.NewHost(), binary.LittleEndian
	h.Entries = map[string][]byte{bundle.DumpName("stacks"): stackDump(t,
		[][]byte{stackRecord(valid, id, 0x100), stackRecord(valid, id, 0x201)},
		[][]byte{stackRecord(valid, id, 0x500), stackRecord(valid, id, 0x601)})}
	var pairs [][2][]byte
	for i, by := range []uint32{0, 1, 2} {
		key := order.AppendUint32(order.AppendUint32(order.AppendUint32(nil, 0), absent), 7)
		key = order.AppendUint32(order.AppendUint32(append(key, "work"...), 1), absent)
		key = order.AppendUint32(append(order.AppendUint32(key, 8), "wake"...), by)
		pairs = append(pairs, [2][]byte{key, order.AppendUint64(nil, 1<<i)})
	}
	var err error
	h.Entries[bundle.DumpName("counts")], err = rawdump.Append(nil, rawdump.Header{Type: 1, KeySize: 36,
		ValueSize: 8, Name: "counts"}, pairs)
	if err != nil {
		t.Fatal(err)
	}
	h.Manifest = map[string]any{"format": bundle.Format, "samples": []map[string]any{{"event": "off-cpu",
		"unit": "nanoseconds", "period": 1, "stacks": bundle.DumpName("stacks"),
		"counts": bundle.DumpName("counts"), "value": "0:8",
		"key": "user_stack_id:0:4,kernel_stack_id:4:4,tgid:8:4,comm:12:4,waker_user_stack_id:16:4," +
			"waker_kernel_stack_id:20:4,waker_tgid:24:4,waker_comm:28:4,waker_by:32:4"}}}
	path := filepath.Join(t.TempDir(), "wakers.data")
	must.Write(t, path, h.Bundle())
	for _, tt := range []struct {
		depth int
		want  map[string]uint64
	}{
		{0, map[string]uint64{"100 200 by ": 1, "100 200 by wake": 2, "100 200 by [interrupt]": 4}},
		{1, map[string]uint64{"100 200 by ": 1, "600 500 [woken by] 100 200 by wake": 2,
			"600 500 [woken by an interrupt] 100 200 by [interrupt]": 4}},
	} {
		_, p := foldPath(t, path, Options{Selection: Selection{Event: "off-cpu", WakerDepth: tt.depth,
			Keep: ingest.Keep{Tags: ingest.WakerTag}}})
		got := make(map[string]uint64)
		for i := range p.Samples {
			text := ""
			for at := p.Samples[i].Stack; at != 0; at = p.Callers[at] {
				l := &p.Locations[p.Leaves[at]]
				if o := &p.Objects[l.Object]; o.Symbol != "" {
					text += o.Symbol + " "
				} else {
					text += fmt.Sprintf("%x ", uint64(l.Offset))
				}
			}
			got[text+"by "+p.Tag(&p.Samples[i], ingest.WakerTag)] += p.Samples[i].Weight
		}
		if !maps.Equal(got, tt.want) {
			t.Errorf("depth %d: %v, want %v", tt.depth, got, tt.want)
		}
	}
}

// TestBundleWallErrors: options for which a bundle lacks the data.
func TestBundleWallErrors(t *testing.T) {
	for _, tt := range []struct {
		events []string
		opts   Options
		want   string // part of the error; "" for none
	}{
		{events: []string{"off-cpu"}, opts: Options{Selection: Selection{Event: "wall"}},
			want: `no event "wall" in it, only off-cpu`},
		{events: []string{"cpu-clock"}, opts: Options{Selection: Selection{Event: "off-cpu"}},
			want: `no event "off-cpu" in it, only cpu-clock`},
		{events: []string{"cpu-clock"}, opts: Options{Selection: Selection{Keep: ingest.Keep{Tags: "state"}}},
			want: "no state"},
		{events: []string{"off-cpu"}, opts: Options{Selection: Selection{Keep: ingest.Keep{Tags: "state"}}}},
		{events: []string{"off-cpu"}, opts: Options{Selection: Selection{Keep: ingest.Keep{Tags: "waker"}}}, want: "no waker"},
		{events: []string{"off-cpu"}, opts: Options{Selection: Selection{Event: "off-cpu", WakerDepth: 1}}, want: "no wakers"},
	} {
		c, err := Open(t.Context(), wallBundle(t, tt.events...), tt.opts)
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Profile(t.Context())
		c.Close()
		if tt.want == "" && err != nil || tt.want != "" &&
			(err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%v, %+v: %v, want %q", tt.events, tt.opts.Event, err, tt.want)
		}
	}
}
