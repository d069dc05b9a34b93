package input

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"symbolize/fixtures/must"
	"symbolize/fixtures/perfbuild"
	"symbolize/ingest/addr"
	"symbolize/ingest/files"
	"symbolize/ingest/sideband"
)

// TestJITTimes: of a recording without a wall clock of its own a process began at the latest as
// long before its file was closed as by its records, and at the earliest after the file was
// created.
func TestJITTimes(t *testing.T) {
	const second = 1_000_000_000
	b := perfbuild.New()
	b.Words64(perfbuild.FeatureSampleTime, 5*second, 6*second)
	at := perfbuild.At{PID: 7, TID: 7, Time: 5 * second}
	b.Comm(7, 7, "app", true, at)
	b.Mmap2(perfbuild.Mmap{PID: 7, TID: 7, Addr: 0x1000, Len: 0x1000, Prot: 5, Filename: "//anon"}, at)
	b.Sample(perfbuild.Sample{PID: 7, TID: 7, Time: 6 * second})
	path := filepath.Join(t.TempDir(), "perf.data")
	must.Write(t, path, b.Bytes())
	closed := time.Now().Add(time.Minute)
	if err := os.Chtimes(path, closed, closed); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	born := files.Born(f)
	f.Close()
	var asked []sideband.JITQuery
	foldPath(t, path, Options{JIT: func(q *sideband.JITQuery) sideband.JITCode {
		asked = append(asked, *q)
		return sideband.JITCode{}
	}})
	if len(asked) != 1 || asked[0].BeginNanos != closed.UnixNano()-second {
		t.Fatalf("asked %+v", asked)
	}
	want := born.UnixNano()
	if born.IsZero() {
		want = asked[0].BeginNanos
	}
	if asked[0].EarliestNanos != want {
		t.Errorf("at the earliest %v, the file is of %v", time.Unix(0, asked[0].EarliestNanos), born)
	}
}

// TestJITOrder: the records of an exec and of a fork follow the mappings' records in the file, as
// records of another CPU do, and precede them in time.
func TestJITOrder(t *testing.T) {
	b := perfbuild.New()
	anon := func(pid int32, start, time uint64) {
		b.Mmap2(perfbuild.Mmap{PID: pid, TID: pid, Addr: start, Len: 0x1000, Prot: 5, Filename: "//anon"},
			perfbuild.At{PID: pid, TID: pid, Time: time})
	}
	anon(7, 0x1000, 10) // before the exec: gone
	anon(7, 0x5000, 30)
	b.Comm(7, 7, "app", true, perfbuild.At{PID: 7, TID: 7, Time: 20})
	b.Fork(8, 7, 8, 7, perfbuild.At{PID: 7, TID: 7, Time: 40})
	b.Sample(perfbuild.Sample{PID: 7, TID: 7, Time: 50})
	b.Sample(perfbuild.Sample{PID: 8, TID: 8, Time: 50})
	path := filepath.Join(t.TempDir(), "perf.data")
	must.Write(t, path, b.Bytes())
	asked := make(map[int32][]addr.Range)
	foldPath(t, path, Options{JIT: func(q *sideband.JITQuery) sideband.JITCode {
		asked[q.PID] = q.Memory
		return sideband.JITCode{}
	}})
	want := []addr.Range{{Start: 0x5000, End: 0x6000}}
	if !slices.Equal(asked[7], want) || !slices.Equal(asked[8], want) {
		t.Errorf("asked for %v, want %v of 7 and its child 8", asked, want)
	}
}
