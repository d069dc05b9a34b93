package history

import (
	"fmt"
	"strings"
	"testing"

	"symbolize/ingest/format/procmaps"
)

func mapped(start, end uint64, path string) procmaps.Mapping {
	return procmaps.Mapping{Start: start, End: end, File: procmaps.File{Inode: 7, Path: path}}
}

// events fills a log of the time 100 on, one word an event: "TIME+FILE" maps FILE at [0x1000,
// 0x2000) of process 5, "TIME*FILE" at [0x3000, 0x4000), "TIME!" begins a program, "TIME?TIME"
// loses records.
func events(t *testing.T, text string) *Log {
	t.Helper()
	l := New(100)
	for word := range strings.FieldsSeq(text) {
		var time, to uint64
		var file string
		switch {
		case scans(word, "%d+%s", &time, &file):
			l.Add(5, time, mapped(0x1000, 0x2000, file))
		case scans(word, "%d*%s", &time, &file):
			l.Add(5, time, mapped(0x3000, 0x4000, file))
		case scans(word, "%d?%d", &time, &to):
			l.Lost(time, to)
		case scans(word, "%d!", &time):
			l.Begin(5, time)
		default:
			t.Fatalf("event %q", word)
		}
	}
	return l
}

func scans(text, format string, to ...any) bool {
	n, err := fmt.Sscanf(text, format, to...)
	return n == len(to) && err == nil
}

func TestUnchanged(t *testing.T) {
	for _, c := range []struct {
		events         string
		at, from, till uint64
		want           bool
	}{
		{at: 0x1000, from: 100, till: 900, want: true},
		{at: 0x1000, from: 99, till: 900}, // before the log
		{events: "200+a", at: 0x1000, from: 100, till: 199, want: true},
		{events: "200+a", at: 0x1000, from: 100, till: 200},
		{events: "200+a", at: 0x1fff, from: 199, till: 900},
		{events: "200+a", at: 0x2000, from: 199, till: 900, want: true},
		{events: "200+a", at: 0xfff, from: 199, till: 900, want: true},
		{events: "200+a", at: 0x1000, from: 200, till: 900, want: true},
		{events: "200+a", at: 0x1000, from: 900, till: 100, want: true}, // no time at all
		{events: "200*a 300+b 400*c", at: 0x1000, from: 200, till: 299, want: true},
		{events: "200*a 300+b 400*c", at: 0x1000, from: 200, till: 300},
		{events: "400*c 300+b 200*a", at: 0x1000, from: 200, till: 300}, // read in another order
		{events: "400*c 300+b 200*a", at: 0x3000, from: 200, till: 399, want: true},
		{events: "200!", at: 0x1000, from: 100, till: 199, want: true},
		{events: "200!", at: 0x9000, from: 100, till: 200},
		{events: "200?300", at: 0x1000, from: 100, till: 199, want: true},
		{events: "200?300", at: 0x1000, from: 100, till: 200},
		{events: "200?300", at: 0x1000, from: 250, till: 260},
		{events: "200?300", at: 0x1000, from: 300, till: 400},
		{events: "200?300", at: 0x1000, from: 301, till: 400, want: true},
		{events: "300?400 100?200 250?260", at: 0x1000, from: 210, till: 240}, // losses of several CPUs in one
		{events: "200?300 400?500", at: 0x1000, from: 301, till: 399, want: true},
		{events: "200?300 400?500", at: 0x1000, from: 301, till: 400},
	} {
		if got := events(t, c.events).Unchanged(5, c.at, c.from, c.till); got != c.want {
			t.Errorf("%q: %#x from %d to %d: %v", c.events, c.at, c.from, c.till, got)
		}
	}
	if !events(t, "200+a").Unchanged(6, 0x1000, 100, 900) {
		t.Error("another process has changed")
	}
}

func TestAt(t *testing.T) {
	for _, c := range []struct {
		events   string
		at, time uint64
		want     string // "": it is not known
	}{
		{at: 0x1000, time: 200},
		{events: "200+a", at: 0x1000, time: 199},
		{events: "200+a", at: 0x1000, time: 200, want: "a"},
		{events: "200+a 300+b", at: 0x1000, time: 299, want: "a"},
		{events: "200+a 300+b", at: 0x1000, time: 300, want: "b"},
		{events: "300+b 200+a", at: 0x1000, time: 299, want: "a"},
		{events: "200+a 250*c 300!", at: 0x1000, time: 299, want: "a"},
		{events: "200+a 250*c 300!", at: 0x1000, time: 300},
		{events: "200+a 250*c 300! 310+d", at: 0x1000, time: 400, want: "d"},
		{events: "200+a 250*c 300! 310+d", at: 0x3000, time: 400},
		{events: "200+a 250?260", at: 0x1000, time: 249, want: "a"},
		{events: "200+a 250?260", at: 0x1000, time: 250},
		{events: "200+a 250?260", at: 0x1000, time: 400},
		{events: "250?260 300+a", at: 0x1000, time: 400, want: "a"},
	} {
		m, ok := events(t, c.events).At(5, c.at, c.time)
		if ok != (c.want != "") || ok && m.File.Path != c.want {
			t.Errorf("%q: %#x at %d: %+v, %v", c.events, c.at, c.time, m, ok)
		}
	}
}

// TestForget: of processes that are kept all records stay, of others those since a time; before
// that nothing is certain.
func TestForget(t *testing.T) {
	l := New(100)
	for pid := int32(1); pid <= 2; pid++ {
		for time := uint64(200); time <= 600; time += 100 {
			l.Add(pid, time, mapped(0x1000, 0x2000, fmt.Sprint(time)))
		}
	}
	l.Forget(0, nil)
	l.Forget(400, []int32{1, 3})
	for pid, want := range map[int32]bool{1: true, 2: false, 3: true, 4: false} {
		if got := l.Unchanged(pid, 0x5000, 150, 900); got != want {
			t.Errorf("process %d: everything since 150 is known: %v", pid, got)
		}
		if !l.Unchanged(pid, 0x5000, 400, 900) {
			t.Errorf("process %d: not everything since 400 is known", pid)
		}
	}
	if _, ok := l.At(1, 0x1000, 250); !ok {
		t.Error("a record of a process that is kept was forgotten")
	}
	if m, ok := l.At(2, 0x1000, 450); !ok || m.File.Path != "400" {
		t.Error("a record of the time was forgotten")
	}
	l.Forget(1000, nil)
	if len(l.of) != 0 || l.total != 0 {
		t.Errorf("%d records of %d processes are left", l.total, len(l.of))
	}
	l.Forget(500, nil)
	if l.from != 1000 {
		t.Errorf("records since %d are known, which were forgotten", l.from)
	}
}

// TestBounds: a process that maps without end has its newest records, and beyond the bound of all
// processes nothing is certain.
func TestBounds(t *testing.T) {
	l := New(100)
	for time := uint64(200); time < 200+3*maxRecords; time++ {
		l.Add(1, time, mapped(0x1000, 0x2000, "a"))
	}
	last := uint64(200 + 3*maxRecords - 1)
	if n := len(l.of[1].list); n > maxRecords || n != l.total || !l.Unchanged(1, 0x5000, last, last+9) ||
		l.Unchanged(1, 0x5000, 200, 201) {
		t.Errorf("%d records, %d in all", n, l.total)
	}
	for i := range int32(maxTotal) {
		l.Begin(i+2, last)
	}
	if l.total != maxTotal || l.Unchanged(1, 0x5000, last, last+9) || !l.Unchanged(1, 0x5000, last+1, last+9) {
		t.Errorf("%d records", l.total)
	}
	for time := last; time < last+9*maxLosses; time += 3 {
		l.Lost(time, time+1)
	}
	if len(l.losses) > maxLosses || l.Unchanged(1, 0x5000, last+8*maxLosses, last+8*maxLosses+1) {
		t.Errorf("%d losses", len(l.losses))
	}
	for i := range 2 * maxPaths {
		l.Add(1, last, mapped(0, 1, fmt.Sprint(i)))
	}
	if len(l.paths) > maxPaths {
		t.Errorf("%d paths", len(l.paths))
	}
}
