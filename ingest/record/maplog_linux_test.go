package record

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"symbolize/buildid"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/procmaps"
	"symbolize/ingest/record/history"
	"symbolize/ingest/record/sampler"
	"symbolize/ingest/record/sys"
)

// remapped is process 50 with records since time 100; only the test reads its mappings.
func remapped(t *testing.T) *processes {
	t.Helper()
	r := newTestRoot(t)
	r.now.Monotonic = 1000
	return r.remapped()
}

func (r testRoot) remapped() *processes {
	r.t.Helper()
	s := r.recording(&Options{})
	p := r.processes(s)
	p.identify(buildid.ID{})
	p.readID = func(int32, *procmaps.Mapping, uint64) (buildid.ID, bool) { return buildid.ID{}, true }
	p.mapped = newMapLog(s, p)
	p.mapped.log = history.New(100)
	return p
}

// copyOf keeps a copy of the mappings: of a file at 0x1000, "" for none, and one at 0x9000.
func (p *processes) copyOf(program uint64, file string, begin, end uint64) {
	text := "9000-a000 r-xp 00000000 08:01 9  /always\n"
	if file != "" {
		text = fmt.Sprintf("1000-2000 r-xp 00000000 08:01 %d  /%s\n", file[0], file) + text
	}
	p.keep(50, program, []byte(text), readTime{begin, end})
}

// mapLogRecord is a record as a ring has it.
func mapLogRecord(kind perfdata.Type, misc uint16, time uint64, body []byte) []byte {
	o := binary.NativeEndian
	b := o.AppendUint32(nil, uint32(kind))
	b = o.AppendUint16(b, misc)
	b = o.AppendUint16(b, uint16(sys.RecordHeader+len(body)+32))
	b = append(append(b, body...), make([]byte, 32)...)
	o.PutUint64(b[len(b)-24:], time)
	return b
}

// words are the native bytes of numbers of 32 and 64 bits.
func words(list ...any) (b []byte) {
	for _, x := range list {
		b, _ = binary.Append(b, binary.NativeEndian, x)
	}
	return b
}

func mmapRecord(pid uint32, time, start, length uint64, inode uint64, path string) []byte {
	name := append([]byte(path), make([]byte, 8-len(path)%8)...)
	return mapLogRecord(perfdata.TypeMmap2, 2, time, append(words(pid, pid, start, length, uint64(0),
		uint32(8), uint32(1), inode, uint64(0), uint32(5), uint32(2)), name...))
}

// moveRecord reports that a process has moved so many bytes.
func moveRecord(pid uint32, time, from, to, length uint64) []byte {
	body := words(uint64(9), pid, pid, time, uint64(0), uint32(28), from, to, length, uint32(0))
	o := binary.NativeEndian
	header := o.AppendUint16(words(uint32(perfdata.TypeSample)), 0)
	return append(o.AppendUint16(header, uint16(sys.RecordHeader+len(body))), body...)
}

func (p *processes) maps50(time uint64, file string) {
	p.mapped.record(&sys.Ring{}, mmapRecord(50, time, 0x1000, 0x1000, uint64(file[0]), "/"+file))
}

// TestPlacesAtTimes: an address is resolved by the file mapped at the time of the sample: from a
// copy before or after it if nothing was mapped there in between, or else from the records;
// otherwise it is ambiguous.
func TestPlacesAtTimes(t *testing.T) {
	const gone, outside, ambiguous = "gone", "outside", "ambiguous"
	exec := func(p *processes, time uint64) {
		p.mapped.record(&sys.Ring{}, mapLogRecord(perfdata.TypeComm, perfdata.MiscCommExec, time,
			words(uint32(50), uint32(50), uint64(0))))
	}
	fork := func(p *processes, pid, parent uint32, time uint64) {
		p.mapped.record(&sys.Ring{}, mapLogRecord(perfdata.TypeFork, 0, time, words(pid, parent,
			pid, parent, uint64(0))))
	}
	maps := func(p *processes, pid uint32, time uint64, file string) {
		p.mapped.record(&sys.Ring{}, mmapRecord(pid, time, 0x1000, 0x1000, uint64(file[0]), "/"+file))
	}
	for _, c := range []struct {
		name  string
		does  func(p *processes)
		times map[uint64]string
	}{
		{name: "no copy", does: func(p *processes) { p.maps50(200, "a") },
			times: map[uint64]string{199: gone, 200: "a", 300: "a"}},
		{name: "no copy of a program", does: func(p *processes) {
			p.maps50(200, "a")
			exec(p, 300)
			p.maps50(310, "b")
			exec(p, 400)
			p.copyOf(2, "c", 500, 510)
		}, times: map[uint64]string{199: gone, 250: "a", 305: outside, 350: "b", 400: outside}},
		{name: "no copy, and lost records", does: func(p *processes) {
			exec(p, 200)
			p.maps50(210, "a")
			p.mapped.record(&sys.Ring{Latest: 300}, mapLogRecord(perfdata.TypeLost, 0, 400, words(uint64(1), uint64(3))))
		}, times: map[uint64]string{205: outside, 299: "a", 300: ambiguous, 450: ambiguous}},
		{name: "child of a process with records", does: func(p *processes) {
			maps(p, 60, 150, "a")
			fork(p, 50, 60, 200)
			maps(p, 60, 300, "b")
		}, times: map[uint64]string{199: gone, 200: "a", 299: "a", 300: ambiguous}},
		{name: "child that maps", does: func(p *processes) {
			maps(p, 60, 150, "a")
			fork(p, 50, 60, 200)
			p.maps50(250, "b")
		}, times: map[uint64]string{249: "a", 250: "b"}},
		{name: "child of a child of a program", does: func(p *processes) {
			p.mapped.log.Exec(61, 120)
			maps(p, 61, 130, "a")
			fork(p, 60, 61, 150)
			fork(p, 50, 60, 200)
		}, times: map[uint64]string{200: "a", 900: "a"}},
		{name: "child of a process with a copy", does: func(p *processes) {
			p.keep(60, 9, []byte("1000-2000 r-xp 00000000 08:01 97  /a\n"), readTime{300, 310})
			fork(p, 50, 60, 200)
		}, times: map[uint64]string{200: "a", 900: "a"}},
		{name: "child of a process whose copy is of another program", does: func(p *processes) {
			p.keep(60, 9, []byte("1000-2000 r-xp 00000000 08:01 97  /a\n"), readTime{300, 310})
			fork(p, 50, 60, 200)
			p.mapped.log.Exec(60, 250)
		}, times: map[uint64]string{200: gone, 251: ambiguous}},
		{name: "child of its own child's number", does: func(p *processes) {
			fork(p, 60, 50, 150)
			fork(p, 50, 60, 200)
		}, times: map[uint64]string{200: ambiguous}},
		{name: "moved there, it is known what", does: func(p *processes) {
			p.maps50(200, "a")
			p.mapped.record(&sys.Ring{}, mmapRecord(50, 210, 0x5000, 0x2000, 'b', "/b"))
			p.mapped.record(&sys.Ring{}, moveRecord(50, 300, 0x6000, 0x1000, 0x1000))
			p.mapped.record(&sys.Ring{}, moveRecord(50, 400, 0x1000, 0x8000, 0x1000))
			p.mapped.record(&sys.Ring{}, moveRecord(50, 500, 0x8000, 0x1000, 0x1000))
		}, times: map[uint64]string{250: "a", 300: "b", 500: "b"}},
		{name: "moved there, it is not known what", does: func(p *processes) {
			p.copyOf(1, "a", 200, 210)
			p.mapped.record(&sys.Ring{}, moveRecord(50, 300, 0x6000, 0x1000, 0x1000))
			p.copyOf(1, "b", 400, 410)
			p.mapped.record(&sys.Ring{}, moveRecord(50, 500, 0x6000, 0x1000, 0x1000))
		}, times: map[uint64]string{250: "a", 299: "a", 300: "b", 499: "b", 500: ambiguous, 900: ambiguous}},
		{name: "moved there, with more than is known", does: func(p *processes) {
			p.maps50(200, "a")
			p.mapped.record(&sys.Ring{}, mmapRecord(50, 210, 0x5000, 0x1000, 'b', "/b"))
			p.mapped.record(&sys.Ring{}, moveRecord(50, 300, 0x5000, 0x1000, 0x2000))
		}, times: map[uint64]string{250: "a", 300: ambiguous}},
		{name: "data moved there", does: func(p *processes) {
			exec(p, 150)
			p.maps50(200, "a")
			p.mapped.record(&sys.Ring{}, moveRecord(50, 300, 0x70000, 0x1000, 0x1000))
		}, times: map[uint64]string{300: "a"}},
		{name: "moved in another process", does: func(p *processes) {
			p.maps50(200, "a")
			p.mapped.record(&sys.Ring{}, moveRecord(51, 300, 0x6000, 0x1000, 0x1000))
			p.mapped.record(&sys.Ring{}, moveRecord(0, 300, 0x6000, 0x1000, 0x1000))
		}, times: map[uint64]string{300: "a"}},
		{name: "a report that is cut", does: func(p *processes) {
			p.maps50(200, "a")
			p.mapped.record(&sys.Ring{Latest: 300}, moveRecord(51, 300, 0x6000, 0x1000, 0x1000)[:40])
		}, times: map[uint64]string{299: "a", 300: ambiguous}},
		{name: "unmapped between copies", does: func(p *processes) {
			p.copyOf(1, "", 200, 210)
			p.maps50(300, "a")
			p.copyOf(1, "", 400, 410)
		}, times: map[uint64]string{250: outside, 350: "a", 500: outside}},
		{name: "one copy", does: func(p *processes) { p.copyOf(1, "a", 300, 310) },
			times: map[uint64]string{99: ambiguous, 100: "a", 305: "a", 900: "a"}},
		{name: "mapped between sample and copy", does: func(p *processes) {
			p.maps50(250, "b")
			p.copyOf(1, "b", 300, 310)
		}, times: map[uint64]string{249: ambiguous, 250: "b", 300: "b", 900: "b"}},
		{name: "mapped between copy and sample", does: func(p *processes) {
			p.copyOf(1, "a", 300, 310)
			p.maps50(400, "b")
		}, times: map[uint64]string{200: "a", 399: "a", 400: "b", 900: "b"}},
		{name: "mapped while it was copied", does: func(p *processes) {
			p.copyOf(1, "a", 300, 310)
			p.maps50(305, "b")
		}, times: map[uint64]string{200: ambiguous, 304: ambiguous, 305: "b", 309: "b", 900: "b"}},
		{name: "in turns between copies", does: func(p *processes) {
			p.maps50(200, "a")
			p.maps50(250, "b")
			p.copyOf(1, "b", 300, 310)
			p.maps50(350, "a")
			p.maps50(400, "b")
			p.copyOf(1, "b", 500, 510)
			p.maps50(550, "a")
		},
			times: map[uint64]string{150: ambiguous, 220: "a", 260: "b", 360: "a", 410: "b", 600: "a"}},
		{name: "unmapped before the copy", does: func(p *processes) {
			p.maps50(200, "a")
			p.copyOf(1, "", 300, 310)
		}, times: map[uint64]string{150: outside, 250: "a"}},
		{name: "moved without a record", does: func(p *processes) {
			p.copyOf(1, "a", 200, 210)
			p.copyOf(1, "b", 300, 310)
		}, times: map[uint64]string{150: "a", 250: ambiguous, 350: "b"}},
		{name: "lost records", does: func(p *processes) {
			p.copyOf(1, "a", 200, 210)
			p.mapped.record(&sys.Ring{Latest: 300}, mapLogRecord(perfdata.TypeLost, 0, 400, words(uint64(1), uint64(3))))
			p.copyOf(1, "a", 500, 510)
		}, times: map[uint64]string{250: "a", 350: ambiguous, 450: "a"}},
		{name: "exec", does: func(p *processes) {
			p.maps50(200, "a")
			exec(p, 250)
			p.copyOf(1, "b", 300, 310)
		}, times: map[uint64]string{220: "a", 249: "a", 250: "b", 290: "b"}},
		{name: "a thread, and a process of the same number", does: func(p *processes) {
			p.maps50(200, "a")
			p.mapped.record(&sys.Ring{}, mapLogRecord(perfdata.TypeFork, 0, 230, words(uint32(50), uint32(50),
				uint32(51), uint32(50), uint64(0))))
			fork(p, 50, 1, 250)
			p.copyOf(1, "b", 300, 310)
		}, times: map[uint64]string{240: "a", 249: "a", 250: "b"}},
		{name: "copies of another program", does: func(p *processes) {
			p.copyOf(2, "b", 300, 310)
			p.copyOf(1, "a", 400, 410)
		}, times: map[uint64]string{200: "a", 350: "a"}},
	} {
		p := remapped(t)
		c.does(p)
		x := newPlaces(p)
		for time, want := range c.times {
			got := locatedIn(x, sampler.Process{PID: 50, Program: 1, Time: time})
			if got != want {
				t.Errorf("%s: at %d %s, want %s", c.name, time, got, want)
			}
		}
	}
}

// locatedIn returns the file at 0x1234 in a process, or the kind of place.
func locatedIn(x *places, of sampler.Process) string {
	place := x.Locate(of, 0x1234)
	if place.Kind == sampler.Mapped {
		return strings.TrimPrefix(x.lines[place.Mapping].File.Path, "/")
	}
	return map[sampler.PlaceKind]string{sampler.Gone: "gone", sampler.Outside: "outside",
		sampler.Ambiguous: "ambiguous", sampler.Unread: "unread"}[place.Kind]
}

// TestPlacesUnread: a process is gone if it is not there, or another one has its number.
func TestPlacesUnread(t *testing.T) {
	const program = 5
	for _, c := range []struct {
		name string
		does func(p *processes, r testRoot)
		pid  int32 // 0: 50
		want string
	}{
		{name: "ended", does: func(*processes, testRoot) {}, want: "gone"},
		{name: "lives", does: func(_ *processes, r testRoot) { r.run(50, program) }, want: "unread"},
		{name: "another program", does: func(p *processes, r testRoot) {
			r.run(50, program+1)
			p.mapped.log.Exec(50, 300)
		}, want: "unread"},
		{name: "another process", does: func(p *processes, r testRoot) {
			r.run(50, program+1)
			p.mapped.log.Fork(50, 1, 300)
		}, want: "gone"},
		{name: "forked before", does: func(p *processes, r testRoot) {
			r.run(50, program)
			p.mapped.log.Fork(50, 1, 150)
		}, want: "unread"},
		{name: "no records", does: func(p *processes, r testRoot) {
			r.run(50, program+1)
			p.mapped = nil
		}, want: "unread"},
		{name: "of another container", does: func(*processes, testRoot) {}, pid: 1<<30 + 50, want: "unread"},
	} {
		r := newTestRoot(t)
		p := r.remapped()
		c.does(p, r)
		of := sampler.Process{PID: cmp.Or(c.pid, 50), Program: p.program(50), Time: 200}
		if c.name == "another process" {
			of.Program++
		}
		if got := locatedIn(newPlaces(p), of); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestSampled: of a process with bare addresses the files that records have are looked into, and
// the mappings of its parent are read, once; of both no record is forgotten.
func TestSampled(t *testing.T) {
	r := newTestRoot(t)
	p := r.remapped()
	r.run(60, 1)
	r.write("proc/60/maps", "1000-2000 r-xp 00000000 08:01 97  /parent\n")
	p.mapped.log.Fork(60, 61, 110)
	p.mapped.log.Fork(61, 60, 105) // of a number that was used again
	p.mapped.log.Fork(50, 60, 200)
	p.maps50(250, "b")
	p.sampled(50)
	p.maps50(260, "c")
	readAll(t, p)
	for file, want := range map[string]bool{"/parent": true, "/b": true, "/c": true, "/d": false} {
		asked := false
		for f := range p.ids {
			asked = asked || f.Path == file
		}
		if asked != want {
			t.Errorf("%s was looked into: %v", file, asked)
		}
	}
	p.mapped.log.Add(70, 300, procmaps.Mapping{Start: 0x1000, End: 0x2000})
	p.forgetMapped(1000)
	if got := locatedIn(newPlaces(p), sampler.Process{PID: 50, Program: 7, Time: 240}); got != "parent" {
		t.Errorf("at 240: %s", got)
	}
	for pid, want := range map[int32]history.Proof{50: history.Mapped, 70: history.Unknown} {
		if c := p.mapped.log.At(pid, 0x1000, 2000); c.Proof != want {
			t.Errorf("of process %d the records prove %d", pid, c.Proof)
		}
	}
	p.forget(p.gone())
	if len(p.bare) != 1 || !p.bare[60] {
		t.Errorf("%v are remembered, 60 alone is there", p.bare)
	}
}

// TestRecorded: the mappings of a process are read if the records since its start lack some of them
// or have code of a run-time compiler, or if it mapped code since they were read.
func TestRecorded(t *testing.T) {
	anonymous := procmaps.Mapping{Start: 0x5000, End: 0x6000}
	compiled := func(path string, inode uint64) func(p *processes) {
		return func(p *processes) {
			m := anonymous
			m.File = procmaps.File{Path: path, Inode: inode}
			p.mapped.log.Exec(50, 110)
			p.mapped.log.Add(50, 120, m)
		}
	}
	for name, c := range map[string]struct {
		fill func(p *processes)
		want bool
	}{
		"nothing known":          {func(*processes) {}, false},
		"since its start":        {func(p *processes) { p.mapped.log.Exec(50, 110); p.maps50(120, "b") }, true},
		"started before":         {func(p *processes) { p.maps50(120, "b") }, false},
		"the vdso":               {compiled(procmaps.VDSO, 0), true},
		"anonymous code":         {compiled("", 0), false},
		"code of a deleted file": {compiled("/memfd:jit (deleted)", 9), false},
		"a jitdump file":         {compiled("/tmp/jit-50.dump", 9), false},
		"read, the same since":   {func(p *processes) { p.copyOf(7, "b", 200, 210) }, true},
		"read, more since":       {func(p *processes) { p.copyOf(7, "b", 200, 210); p.maps50(220, "c") }, false},
		"kept whole":             {func(p *processes) { p.mapped.log.Exec(50, 110); p.whole[50] = true }, false},
		"no records":             {func(p *processes) { p.copyOf(7, "b", 200, 210); p.mapped = nil }, false},
	} {
		p := remapped(t)
		c.fill(p)
		if got := p.recorded(50); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestTablesOfRecords: mappings by records are kept of a process without a copy.
func TestTablesOfRecords(t *testing.T) {
	p := remapped(t)
	p.maps50(200, "a")
	x := newPlaces(p)
	of := sampler.Process{PID: 50, Program: 1, Time: 300}
	if n := x.Number(of, []int{x.Locate(of, 0x1000).Mapping}); n != 0 {
		t.Errorf("number %d", n)
	}
	entries := entriesOf(t, bundleOf(t, func(w *bundle.Writer) error { return p.addMappings(w, x) }))
	if text := entries["proc/50/maps"]; !strings.HasSuffix(text, " /a\n") || len(entries) != 1 {
		t.Errorf("%q", entries)
	}
}

// TestPlacesWithoutProgram: where the kernel cannot compute which program a process runs the
// records decide, of all copies.
func TestPlacesWithoutProgram(t *testing.T) {
	p := remapped(t)
	p.copyOf(7, "a", 200, 210)
	p.mapped.log.Exec(50, 250)
	p.copyOf(8, "b", 300, 310)
	x := newPlaces(p)
	for time, want := range map[uint64]string{220: "a", 249: "a", 250: "b", 400: "b"} {
		if got := locatedIn(x, sampler.Process{PID: 50, Time: time}); got != want {
			t.Errorf("at %d: %s, want %s", time, got, want)
		}
	}
}

// TestTables: stacks of a program share mappings unless these overlap.
func TestTables(t *testing.T) {
	p := remapped(t)
	p.copyOf(1, "a", 200, 210)
	p.maps50(300, "b")
	p.maps50(400, "a")
	x := newPlaces(p)
	number := func(time uint64, addresses ...uint64) uint32 {
		of := sampler.Process{PID: 50, Program: 1, Time: time}
		var in []int
		for _, at := range addresses {
			in = append(in, x.Locate(of, at).Mapping)
		}
		return x.Number(of, in)
	}
	got := []uint32{number(250, 0x1000), number(350, 0x1000, 0x9000), number(450, 0x9000, 0x1fff),
		number(250, 0x9000), number(350, 0x1000)}
	if want := []uint32{0, 1, 0, 0, 1}; !slices.Equal(got, want) {
		t.Errorf("numbers %v, want %v", got, want)
	}
	entries := entriesOf(t, bundleOf(t, func(w *bundle.Writer) error { return p.addMappings(w, x) }))
	for name, want := range map[string][]string{"proc/50/maps": {"/a", "/always"},
		"proc/50/program/1/maps": {"/b", "/always"}} {
		var paths []string
		for row := range strings.Lines(entries[name]) {
			m, ok := procmaps.ParseCode(row)
			if !ok {
				t.Errorf("%s: %q", name, row)
			}
			paths = append(paths, m.File.Path)
		}
		if !slices.Equal(paths, want) {
			t.Errorf("%s: %q, want %q", name, paths, want)
		}
	}
}

// TestMapRecords: records that are cut or of no process are passed over.
func TestMapRecords(t *testing.T) {
	p := remapped(t)
	whole := mmapRecord(50, 200, 0x1000, 0x1000, 7, "/a")
	for n := sys.RecordHeader; n < len(whole); n++ {
		p.mapped.record(&sys.Ring{}, whole[:n:n])
	}
	p.mapped.record(&sys.Ring{}, mmapRecord(0, 200, 0x1000, 0x1000, 7, "/a"))
	p.mapped.record(&sys.Ring{}, mmapRecord(51, 200, 0x1000, 0, 7, "/a"))
	p.mapped.record(&sys.Ring{}, mmapRecord(51, 200, 0x1000, 1<<63, 7, "/a"))
	p.mapped.record(&sys.Ring{}, mmapRecord(51, 200, 1<<63, 1<<63, 7, "/a")) // it goes round
	p.mapped.record(&sys.Ring{}, mmapRecord(52, 200, 0x1000, 0x1000, 0, anonymous))
	c := p.mapped.log.At(52, 0x1000, 200)
	if c.Proof != history.Mapped || c.Mapping.File != (procmaps.File{Major: 8, Minor: 1}) {
		t.Errorf("%+v", c)
	}
	if c := p.mapped.log.At(51, 0x1000, 200); c.Proof != history.Mapped || c.Mapping.End != 1<<63+0x1000 {
		t.Errorf("%+v", c)
	}
	if c := p.mapped.log.At(51, 1<<63+0x5000, 200); c.Proof != history.Unknown {
		t.Errorf("a mapping that ends before it begins: %+v", c)
	}
}

// TestMapLogForgets: records of processes without bare addresses do not add up; on a machine of
// any age.
func TestMapLogForgets(t *testing.T) {
	for _, tt := range []struct {
		up, ago time.Duration
		forgets bool
	}{
		{up: 2 * time.Second, ago: time.Second},
		{up: time.Minute, ago: 59 * time.Second, forgets: true},
		{up: 10 * 365 * 24 * time.Hour, ago: time.Hour, forgets: true},
	} {
		r := newTestRoot(t)
		r.now.Monotonic = uint64(tt.up)
		p, at := r.remapped(), uint64(tt.up-tt.ago)
		p.copyOf(1, "a", at, at)
		for _, pid := range []uint32{50, 51} {
			p.mapped.record(&sys.Ring{}, mmapRecord(pid, at+9, 0x1000, 0x1000, 7, "/b"))
		}
		p.mapped.sync()
		for pid, want := range map[int32]bool{50: true, 51: !tt.forgets} {
			if ok := p.mapped.log.At(pid, 0x1000, uint64(tt.up)).Proof == history.Mapped; ok != want {
				t.Errorf("up %v: the record of process %d is there: %v", tt.up, pid, ok)
			}
		}
	}
}

// TestStillMaps: the current file's build ID applies to the copied mapping if that still exists and
// nothing replaced it in between.
func TestStillMaps(t *testing.T) {
	r := newTestRoot(t)
	r.now.Monotonic = 1000
	p := r.remapped()
	text := "00001000-00002000 r-xp 00000000 08:01 97  /a\n"
	m, _ := procmaps.ParseCode(text)
	if p.stillMaps(50, &m, 200) {
		t.Error("there are no mappings")
	}
	r.write("proc/50/maps", "00001000-00002000 r-xp 00000000 08:01 98  /b\n")
	if p.stillMaps(50, &m, 200) {
		t.Error("another file is mapped")
	}
	r.write("proc/50/maps", text)
	if !p.stillMaps(50, &m, 200) || p.stillMaps(50, &m, 99) {
		t.Error("the file is mapped since 200, which is not known for 99")
	}
	p.maps50(300, "a")
	if p.stillMaps(50, &m, 200) || !p.stillMaps(50, &m, 300) {
		t.Error("it was mapped again at 300")
	}
	p.mapped = nil
	if !p.stillMaps(50, &m, 99) {
		t.Error("without records the mappings decide")
	}
}
