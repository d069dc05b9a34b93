package history

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"symbolize/ingest/procmaps"
)

func mapping(start, end uint64, path string) procmaps.Mapping {
	return procmaps.Mapping{Start: start, End: end, File: procmaps.File{Inode: 7, Path: path}}
}

// events fills a log of the time 100 on, one word an event: "TIME+FILE" maps FILE at [0x1000,
// 0x2000) of process 5, "TIME*FILE" at [0x3000, 0x4000), "TIME>" moves something to [0x1000,
// 0x1800), "TIME!" begins a program, "TIME^PARENT" forks the process, "TIME?TIME" loses records.
func events(t *testing.T, text string) *Log {
	t.Helper()
	l := New(100)
	for word := range strings.FieldsSeq(text) {
		var time, to uint64
		var file string
		switch {
		case scans(word, "%d+%s", &time, &file):
			l.Add(5, time, mapping(0x1000, 0x2000, file))
		case scans(word, "%d*%s", &time, &file):
			l.Add(5, time, mapping(0x3000, 0x4000, file))
		case scans(word, "%d?%d", &time, &to):
			l.Lost(time, to)
		case scans(word, "%d^%d", &time, &to):
			l.Fork(5, int32(to), time)
		case strings.HasSuffix(word, ">") && scans(word, "%d>", &time):
			l.Move(5, time, 0x1000, 0x1800)
		case strings.HasSuffix(word, "!") && scans(word, "%d!", &time):
			l.Exec(5, time)
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
		{events: "200>", at: 0x1000, from: 100, till: 199, want: true},
		{events: "200>", at: 0x17ff, from: 100, till: 200},
		{events: "200>", at: 0x1800, from: 100, till: 200, want: true},
		{events: "200^7", at: 0x9000, from: 100, till: 200},
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
		want     string // the path, or the proof
	}{
		{at: 0x1000, time: 200, want: "unknown"},
		{events: "200+a", at: 0x1000, time: 199, want: "unknown"},
		{events: "200+a", at: 0x1000, time: 200, want: "a"},
		{events: "200+a 300+b", at: 0x1000, time: 299, want: "a"},
		{events: "200+a 300+b", at: 0x1000, time: 300, want: "b"},
		{events: "300+b 200+a", at: 0x1000, time: 299, want: "a"},
		{events: "200+a 250*c 300!", at: 0x1000, time: 299, want: "a"},
		{events: "200+a 250*c 300!", at: 0x1000, time: 300, want: "nothing"},
		{events: "200+a 250*c 300! 310+d", at: 0x1000, time: 400, want: "d"},
		{events: "200+a 250*c 300! 310+d", at: 0x3000, time: 400, want: "nothing"},
		{events: "200+a 250?260", at: 0x1000, time: 249, want: "a"},
		{events: "200+a 250?260", at: 0x1000, time: 250, want: "uncertain"},
		{events: "200+a 250?260", at: 0x1000, time: 400, want: "uncertain"},
		{events: "250?260 300+a", at: 0x1000, time: 400, want: "a"},
		{events: "200! 250?260", at: 0x1000, time: 249, want: "nothing"},
		{events: "200! 250?260", at: 0x1000, time: 250, want: "unknown"},
		{events: "200+a 300>", at: 0x1000, time: 299, want: "a"},
		{events: "200+a 300>", at: 0x1000, time: 300, want: "uncertain"},
		{events: "200+a 300>", at: 0x1800, time: 300, want: "a"},
		{events: "200+a 300> 400+b", at: 0x1000, time: 400, want: "b"},
		{events: "200^7", at: 0x1000, time: 199, want: "unknown"},
		{events: "200^7", at: 0x1000, time: 200, want: "of 7 at 200"},
		{events: "200^7 250?260", at: 0x1000, time: 260, want: "unknown"},
		{events: "200^7 300*a", at: 0x1000, time: 300, want: "of 7 at 200"},
		{events: "200^7 300+a", at: 0x1000, time: 300, want: "a"},
		{events: "200^7 300!", at: 0x1000, time: 300, want: "nothing"},
		{events: "200^7 300! 400^8", at: 0x1000, time: 400, want: "of 8 at 400"}, // another process
	} {
		x := events(t, c.events).At(5, c.at, c.time)
		got := map[Proof]string{Unknown: "unknown", Uncertain: "uncertain", Mapped: x.Mapping.File.Path,
			Nothing: "nothing", Inherited: fmt.Sprintf("of %d at %d", x.Parent, x.Forked)}[x.Proof]
		if got != c.want {
			t.Errorf("%q: %#x at %d: %s, want %s", c.events, c.at, c.time, got, c.want)
		}
	}
}

// TestProcess: the mappings of a process and its parent.
func TestProcess(t *testing.T) {
	l := events(t, "200^7 300+a 350> 400! 450*b 500^8 600+c")
	var got []string
	for time, m := range l.Mappings(5) {
		got = append(got, fmt.Sprint(time, m.File.Path))
	}
	if want := []string{"300a", "450b", "600c"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if a, b := l.Parent(5), l.Parent(6); a != 8 || b != 0 {
		t.Errorf("parents %d and %d", a, b)
	}
	if !l.ForkedSince(5, 499) || l.ForkedSince(5, 500) || l.ForkedSince(6, 0) {
		t.Error("it was forked last at 500")
	}
}

// TestForget: processes to keep keep all records, others only those since a time; nothing earlier
// is certain.
func TestForget(t *testing.T) {
	l := New(100)
	for pid := int32(1); pid <= 2; pid++ {
		for time := uint64(200); time <= 600; time += 100 {
			l.Add(pid, time, mapping(0x1000, 0x2000, fmt.Sprint(time)))
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
	if c := l.At(1, 0x1000, 250); c.Proof != Mapped {
		t.Error("a record of a process that is kept was forgotten")
	}
	if c := l.At(2, 0x1000, 450); c.Proof != Mapped || c.Mapping.File.Path != "400" {
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
		l.Add(1, time, mapping(0x1000, 0x2000, "a"))
	}
	last := uint64(200 + 3*maxRecords - 1)
	if n := len(l.of[1].list); n > maxRecords || n != l.total || !l.Unchanged(1, 0x5000, last, last+9) ||
		l.Unchanged(1, 0x5000, 200, 201) {
		t.Errorf("%d records, %d in all", n, l.total)
	}
	for i := range int32(maxTotal) {
		l.Exec(i+2, last)
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
		l.Add(1, last, mapping(0, 1, fmt.Sprint(i)))
	}
	if len(l.paths) > maxPaths {
		t.Errorf("%d paths", len(l.paths))
	}
}

func TestWhole(t *testing.T) {
	lib := procmaps.Mapping{Start: 0x1000, End: 0x2000, File: procmaps.File{Path: "/lib/a"}}
	for name, c := range map[string]struct {
		fill func(l *Log)
		ok   bool
	}{
		"no records":          {func(*Log) {}, false},
		"started before":      {func(l *Log) { l.Add(7, 20, lib) }, false},
		"since its start":     {func(l *Log) { l.Exec(7, 20); l.Add(7, 21, lib) }, true},
		"earlier programs":    {func(l *Log) { l.Add(7, 19, lib); l.Exec(7, 20); l.Add(7, 21, lib) }, true},
		"forked":              {func(l *Log) { l.Fork(7, 3, 20); l.Add(7, 21, lib) }, false},
		"another with its ID": {func(l *Log) { l.Exec(7, 18); l.Fork(7, 3, 20); l.Add(7, 21, lib) }, false},
		"moved":               {func(l *Log) { l.Exec(7, 20); l.Move(7, 21, 0x5000, 0x6000); l.Add(7, 22, lib) }, false},
		"lost":                {func(l *Log) { l.Exec(7, 20); l.Add(7, 21, lib); l.Lost(22, 23) }, false},
		"lost before":         {func(l *Log) { l.Lost(18, 19); l.Exec(7, 20); l.Add(7, 21, lib) }, true},
	} {
		l := New(10)
		c.fill(l)
		list, ok := l.Whole(7, 30)
		if ok != c.ok || ok && !slices.Equal(list, []procmaps.Mapping{lib}) {
			t.Errorf("%s: %v %v, want %v", name, list, ok, c.ok)
		}
	}
}

func TestStill(t *testing.T) {
	l := New(10)
	l.Add(7, 20, procmaps.Mapping{Start: 0x1000, End: 0x2000})
	l.Lost(40, 41)
	for _, c := range []struct {
		pid      int32
		from, to uint64
		want     bool
	}{
		{7, 20, 30, true}, {7, 19, 30, false}, {7, 21, 39, true}, {7, 21, 40, false}, {7, 5, 15, false},
		{8, 19, 30, true}, {8, 5, 30, false},
	} {
		if got := l.Still(c.pid, c.from, c.to); got != c.want {
			t.Errorf("process %d from %d to %d: %v", c.pid, c.from, c.to, got)
		}
	}
}
