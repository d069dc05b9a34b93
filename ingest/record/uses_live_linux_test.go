package record

import (
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"symbolize/fixtures/must"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/object/bpf"
)

// counted is a program that runs when the test has it run, and at no other time.
func counted(t *testing.T) (p *ebpf.Program, id uint32) {
	t.Helper()
	m, err := ebpf.NewMap(&ebpf.MapSpec{Name: "counted_map", Type: ebpf.Array, KeySize: 4,
		ValueSize: 8, MaxEntries: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	p, err = ebpf.NewProgram(&ebpf.ProgramSpec{Name: "counted", Type: ebpf.SocketFilter,
		License: "GPL", Instructions: asm.Instructions{asm.LoadMapPtr(asm.R1, m.FD()),
			asm.Mov.Imm(asm.R0, 0), asm.Return()}})
	if err != nil {
		t.Fatal(err)
	}
	info, err := p.Info()
	if err != nil {
		t.Fatal(err)
	}
	number, _ := info.ID()
	return p, uint32(number)
}

func runProgram(t *testing.T, p *ebpf.Program, times uint32) {
	t.Helper()
	if _, err := p.Run(&ebpf.RunOptions{Data: make([]byte, 64), Repeat: times}); err != nil {
		t.Skipf("SKIPPED: this kernel runs no program on request: %v", err)
	}
}

// shown is a program by bpftool.
type shown struct {
	Runs uint64 `json:"run_cnt"`
	Time uint64 `json:"run_time_ns"`
}

func bpftool(t *testing.T, id uint32) (s shown) {
	t.Helper()
	out, err := exec.Command("bpftool", "-j", "prog", "show", "id", strconv.Itoa(int(id))).Output()
	if err == nil {
		err = json.Unmarshal(out, &s)
	}
	if err != nil {
		t.Fatalf("bpftool: %v: %s", err, out)
	}
	return s
}

// TestUsesLive: runs and times of a recording match bpftool's, for programs that existed before,
// are loaded and are unloaded; afterwards the kernel no longer counts.
func TestUsesLive(t *testing.T) {
	needLive(t)
	if _, err := exec.LookPath("bpftool"); err != nil {
		t.Skip("SKIPPED: no bpftool")
	}
	before, first := counted(t)
	defer before.Close()
	runProgram(t, before, 3) // runs before are no part of the recording, counted or not
	was := bpftool(t, first)
	path := filepath.Join(t.TempDir(), "capture.data")
	w, err := bundle.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	type result struct {
		sum *Summary
		err error
	}
	done := make(chan result, 1)
	flushed := make(chan struct{})
	go func() {
		sum, err := Record(ctx, w, Options{BPFStats: true, flushEvery: 20 * time.Millisecond,
			Flushed: func() {
				select {
				case flushed <- struct{}{}:
				case <-ctx.Done():
				}
			}})
		done <- result{sum, err}
	}()
	// read waits until the counts were read once more: each flush does that, and the first that
	// ends may have done it before.
	read := func() {
		t.Helper()
		for range 2 {
			select {
			case r := <-done:
				t.Fatalf("the recording ended: %v", r.err)
			case <-flushed:
			}
		}
	}
	read()
	was = bpftool(t, first)
	runProgram(t, before, 1000)
	came, second := counted(t)
	runProgram(t, came, 77)
	end := bpftool(t, second)
	read()
	came.Close()
	read()
	is := bpftool(t, first)
	cancel()
	r := <-done
	if r.err != nil {
		t.Fatal(r.err)
	}
	runProgram(t, before, 5)
	always := must.Read(t, "/proc/sys/kernel/bpf_stats_enabled")
	if after := bpftool(t, first); after != is && string(always) != "1\n" {
		t.Errorf("the kernel still counts: %+v became %+v", is, after)
	}
	list := statsOf(t, path)
	check := func(id uint32, runs, ns uint64, gone bool) {
		t.Helper()
		i := slices.IndexFunc(list.Programs, func(p bpf.ProgramStats) bool { return p.ID == id })
		if i < 0 {
			t.Fatalf("program %d is not in the list", id)
		}
		p := &list.Programs[i]
		if p.Runs != runs || p.RunTime != ns || p.Gone != gone || p.Name != "counted" ||
			p.Type != uint32(ebpf.SocketFilter) || len(p.Maps) != 1 || p.Maps[0].Name != "counted_map" {
			t.Errorf("%+v, by bpftool %d runs in %d ns, gone %v", p, runs, ns, gone)
		}
	}
	check(first, is.Runs-was.Runs, is.Time-was.Time, false)
	check(second, end.Runs, end.Time, true)
	if !list.Counted() || r.sum.BPFRuns == nil || r.sum.BPFRuns.Runs < is.Runs-was.Runs {
		t.Errorf("begin %d, end %d, summary %+v", list.Begin, list.End, r.sum.BPFRuns)
	}
}

// statsOf returns how programs were used in a bundle.
func statsOf(t *testing.T, path string) *bpf.Stats {
	t.Helper()
	b, err := bundle.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	data, err := b.ReadEntry(bundle.BPFStatsName, bpf.MaxStats)
	if err != nil {
		t.Fatal(err)
	}
	list, err := bpf.DecodeStats(path, data)
	if err != nil {
		t.Fatal(err)
	}
	return list
}
