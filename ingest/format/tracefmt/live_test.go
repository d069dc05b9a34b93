package tracefmt

import (
	"bufio"
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"

	"symbolize/fixtures/must"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/object/symlist"
)

// TestLiveFormats parses the print formats of all tracepoints of this kernel. Formats are not
// understood only where they call functions of the kernel that are no helpers.
func TestLiveFormats(t *testing.T) {
	if os.Getenv("SYMBOLIZE_LIVE") == "" {
		t.Skip("SYMBOLIZE_LIVE is not set: reads tracefs")
	}
	list, err := filepath.Glob("/sys/kernel/tracing/events/*/*/format")
	if err != nil || len(list) == 0 {
		t.Skip("no formats in tracefs")
	}
	unknown := 0
	for _, path := range list {
		b := must.Read(t, path)
		_, text, ok := strings.Cut(string(b), "print fmt: ")
		if !ok {
			continue
		}
		f, err := Parse(strings.TrimSpace(text))
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if slices.ContainsFunc(f.args, func(n node) bool { return n.op == "unknown" }) {
			unknown++
			t.Logf("%s: %s", path, text)
		}
	}
	t.Logf("%d formats, %d with an argument that is not understood", len(list), unknown)
	if unknown*20 > len(list) {
		t.Errorf("%d of %d formats are not understood", unknown, len(list))
	}
}

// TestLivePerf compares with perf script, for the recording RECORDING or a new one. Differences
// are that perf 6.1 prints other flags for timer:timer_start than the trace buffer of the kernel, and
// the first name for 0 in flags with names of constants (writeback).
func TestLivePerf(t *testing.T) {
	if os.Getenv("SYMBOLIZE_LIVE") == "" {
		t.Skip("SYMBOLIZE_LIVE is not set: records with perf")
	}
	path := os.Getenv("RECORDING")
	if path == "" {
		path = filepath.Join(t.TempDir(), "perf.data")
		args := []string{"record", "-q", "-a", "-m", "1M", "-o", path}
		for _, e := range []string{"sched:sched_*", "kmem:kmalloc", "kmem:mm_page_alloc", "signal:*", "irq:*",
			"timer:hrtimer_*", "raw_syscalls:*", "task:*", "sock:*", "net:*", "skb:kfree_skb"} {
			args = append(args, "-e", e)
		}
		out, err := exec.Command("perf", append(args, "--", "sh", "-c", "ls / >/dev/null; kill -0 $$")...).CombinedOutput()
		if err != nil {
			t.Skipf("perf record: %v: %s", err, out)
		}
	}
	cmd := exec.Command("perf", "script", "-F", "event,trace", "-i", path)
	out, err := cmd.Output()
	if err != nil {
		t.Skipf("perf script: %v", err)
	}
	want := make(map[string]int)
	for line := range strings.Lines(string(out)) {
		event, text, _ := strings.Cut(strings.TrimSpace(line)+" ", ": ")
		want[event+": "+strings.TrimSpace(text)]++
	}
	different := func(event string) bool {
		return event == "timer:timer_start" || strings.HasPrefix(event, "writeback:")
	}
	got, skipped := printed(t, path, symbols(t))
	var bad []string
	for line, n := range got {
		event, _, _ := strings.Cut(line, ": ")
		if _, ok := skipped[event]; !ok && !different(event) && want[line] != n {
			bad = append(bad, fmt.Sprintf("%s: %d times, perf script %d", line, n, want[line]))
		}
	}
	for line, n := range want {
		event, _, _ := strings.Cut(line, ": ")
		if _, ok := skipped[event]; !ok && !different(event) && got[line] == 0 {
			bad = append(bad, fmt.Sprintf("%s: only perf script, %d times", line, n))
		}
	}
	sort.Strings(bad)
	t.Logf("%d lines; not printed: %v", len(got), skipped)
	if len(got) == 0 || len(bad) > 0 {
		t.Errorf("%d lines, %d differ from perf script: %s", len(got), len(bad),
			strings.Join(bad[:min(len(bad), 40)], "\n"))
	}
}

// printed prints the samples of a recording, and counts the lines. skipped are the events with a
// format that is not understood.
func printed(t *testing.T, path string, symbol func(uint64, bool) string) (lines, skipped map[string]int) {
	r, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	info, err := r.Stat()
	if err != nil {
		t.Fatal(err)
	}
	file, err := perfdata.Open(path, r, info.Size())
	if err != nil {
		t.Fatal(err)
	}
	points, err := file.Tracepoints()
	if err != nil {
		t.Fatal(err)
	}
	byID := make(map[uint64]*perfdata.Tracepoint)
	formats := make(map[uint64]*Format)
	for i := range points {
		p := &points[i]
		byID[p.ID] = p
		if formats[p.ID], err = Parse(p.Print); err != nil {
			t.Errorf("%s: %v", p.Name, err)
			delete(formats, p.ID)
		}
	}
	lines, skipped = make(map[string]int), make(map[string]int)
	var s perfdata.Sample
	records := file.AllRecords()
	for records.Next() {
		rec := records.Record()
		if rec.Type != perfdata.TypeSample || file.DecodeSample(rec, &s) != nil {
			continue
		}
		event := &file.Events[s.Event]
		f := formats[event.Attr.Config]
		if f == nil {
			continue
		}
		text, ok := f.Append(nil, &Sample{Fields: byID[event.Attr.Config].Fields, Raw: s.Raw,
			BigEndian: file.BigEndian, Symbol: symbol})
		if !ok {
			skipped[event.Name]++
			continue
		}
		lines[event.Name+": "+string(bytes.TrimSpace(text))]++
	}
	if records.Err() != nil {
		t.Fatal(records.Err())
	}
	return lines, maps.Clone(skipped)
}

// symbols returns the names of this kernel's functions.
func symbols(t *testing.T) func(uint64, bool) string {
	r, err := os.Open("/proc/kallsyms")
	if err != nil {
		t.Skip(err)
	}
	defer r.Close()
	type symbol struct {
		addr uint64
		name string
	}
	var list []symbol
	err = symlist.ReadKallsyms("/proc/kallsyms", bufio.NewReader(r), func(s symlist.KernelSymbol) bool {
		list = append(list, symbol{uint64(s.Addr), s.Name})
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortStableFunc(list, func(a, b symbol) int {
		if a.addr < b.addr {
			return -1
		} else if a.addr > b.addr {
			return 1
		}
		return 0
	})
	return func(a uint64, offset bool) string {
		i := sort.Search(len(list), func(i int) bool { return list[i].addr > a })
		if i == 0 {
			return ""
		}
		if !offset {
			return list[i-1].name
		}
		return fmt.Sprintf("%s+%#x", list[i-1].name, a-list[i-1].addr)
	}
}
