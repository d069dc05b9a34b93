package record

import (
	"slices"

	"symbolize/ingest/format/procmaps"
	"symbolize/ingest/record/sampler"
)

// mapTables are the mappings of a process that a bundle keeps for addresses without a build ID, by
// their numbers: those of each program apart, and where the code at an address changed while a
// program ran as many as it takes. As /proc/PID/maps number 0 is of the program that it ran last.
type mapTables struct {
	programs []uint64 // see processes.programs
	list     []mapTable
}

// mapTable is one of the mappings, of which no two lie one over another.
type mapTable struct {
	program uint64
	whole   []byte     // all mappings of a process that is kept whole, as they were last
	copied  []codeLine // the lines of code in whole
	lines   []codeLine
}

// mapTables returns those of a process, as it was when they were asked for first: while a recording
// goes on there may come other programs.
func (x *places) mapTables(pid int32) *mapTables {
	t := x.tables[pid]
	if t != nil {
		return t
	}
	x.p.mu.Lock()
	defer x.p.mu.Unlock()
	t = &mapTables{programs: x.p.programs(pid)}
	x.tables[pid] = t
	for i, program := range t.programs {
		t.list = append(t.list, mapTable{program: program})
		if i == 0 && x.p.whole[pid] {
			m := &t.list[0]
			m.whole, m.copied = x.p.wholeOf(pid, program)
			m.lines = m.copied
		}
	}
	return t
}

// wholeOf returns the newest mappings of a program, and those of code. p.mu is held.
func (p *processes) wholeOf(pid int32, program uint64) (text []byte, lines []codeLine) {
	for _, saved := range slices.Backward(p.kept[pid]) {
		if saved.program != program {
			continue
		}
		text, err := p.maps.read(saved.spooled, nil)
		if err != nil {
			continue
		}
		for m, row := range procmaps.Code(text) {
			lines = append(lines, codeLine{Mapping: m, text: string(row)})
		}
		return text, lines
	}
	return nil, nil
}

// Number implements sampler.Explainer.
func (x *places) Number(of sampler.Process, mappings []int) uint32 {
	t := x.mapTables(of.PID)
	lines := make([]*codeLine, len(mappings))
	for i, n := range mappings {
		lines[i] = x.lines[n]
	}
	for i := range t.list {
		if m := &t.list[i]; (m.program == of.Program || of.Program == 0) && m.add(lines) {
			return uint32(i)
		}
	}
	t.list = append(t.list, mapTable{program: of.Program})
	t.list[len(t.list)-1].add(lines)
	return uint32(len(t.list) - 1)
}

// add adds mappings, unless others that lie there would be in their way.
func (t *mapTable) add(lines []*codeLine) bool {
	next := t.lines
	for _, l := range lines {
		i := slices.IndexFunc(next, l.overlaps)
		switch {
		case i < 0:
			next = append(slices.Clip(next), *l)
		case next[i].same(l) && next[i].Start <= l.Start && l.End <= next[i].End:
		case next[i].same(l):
			wide, ok := widened(next, i, l)
			if !ok {
				return false
			}
			next = slices.Clone(next)
			next[i] = wide
		default:
			return false
		}
	}
	t.lines = next
	return true
}

func (l *codeLine) overlaps(o codeLine) bool { return o.Start < l.End && l.Start < o.End }

// widened returns a line that covers lines[i] and l, which make the same of their addresses; ok is
// false if another line is in its way.
func widened(lines []codeLine, i int, l *codeLine) (w codeLine, ok bool) {
	w = lines[i]
	if l.Start < w.Start {
		w.Start, w.Offset = l.Start, l.Offset
	}
	w.End = max(w.End, l.End)
	w.text = w.Line()
	for n := range lines {
		if n != i && w.overlaps(lines[n]) {
			return w, false
		}
	}
	return w, true
}

// text returns the lines, by their addresses.
func (t *mapTable) text() []byte {
	sorted := t.further()
	slices.SortFunc(sorted, func(a, b codeLine) int { return compareStarts(&a, &b) })
	b := slices.Clip(t.whole)
	for _, l := range sorted {
		b = append(b, l.text...)
	}
	return b
}

// further returns the lines that are not in whole: of memory that a compiler at run time has mapped
// since, or had before.
func (t *mapTable) further() []codeLine {
	var list []codeLine
	for i, l := range t.lines {
		if i >= len(t.copied) || l.text != t.copied[i].text {
			list = append(list, l)
		}
	}
	return list
}

func compareStarts(a, b *codeLine) int {
	switch {
	case a.Start < b.Start:
		return -1
	case a.Start > b.Start:
		return 1
	}
	return 0
}
