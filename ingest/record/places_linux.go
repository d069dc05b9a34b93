package record

import (
	"cmp"
	"slices"
	"strings"

	"symbolize/buildid"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/procmaps"
	"symbolize/ingest/record/sampler"
)

// places locates bare addresses in user stacks: by the mappings that their processes had at
// the time, and by the build IDs of the files in them, which were read while the processes lived.
type places struct {
	p      *processes
	of     processProgram // that was asked for last
	copies []codeCopy     // its mappings
	kept   bool           // mappings of its process were saved
	found  []*codeLine    // that records have

	lines  []*codeLine          // of the program, that Mapped places are in, by their number
	tables map[int32]*mapTables // by process
}

// processProgram is one of the programs that a process ran, or of the processes with its number.
type processProgram struct {
	pid     int32
	program uint64 // see sampler.ProgramFacts
}

func newPlaces(p *processes) *places {
	return &places{p: p, of: processProgram{pid: -1}, tables: make(map[int32]*mapTables)}
}

// codeCopy is a copy of a program's mappings, as far as they are of code.
type codeCopy struct {
	first, last readTime // see mapsCopy
	lines       []codeLine
}

// codeLine is a line of /proc/PID/maps that maps code.
type codeLine struct {
	procmaps.Mapping
	id     buildid.ID // zero if there is none
	text   string
	number int // of Mapped places in it, from 1 on
}

// Locate implements sampler.Explainer.
func (x *places) Locate(of sampler.Process, at uint64) sampler.Place {
	if now := (processProgram{of.PID, of.Program}); now != x.of {
		x.of = now
		x.copies, x.kept = x.p.code(now)
		x.found, x.lines = nil, nil
	}
	switch {
	case procmaps.InVsyscall(at):
		return sampler.Place{Kind: sampler.Vsyscall}
	case at < procmaps.Lowest || at>>63 != 0:
		return sampler.Place{Kind: sampler.Outside}
	case of.Program == 0 && x.kept && x.p.mapped == nil: // read of who knows which program
		return sampler.Place{Kind: sampler.Ambiguous}
	case len(x.copies) == 0:
		return sampler.Place{Kind: sampler.Gone}
	}
	l, place := x.line(of, at)
	if place.Kind != sampler.Mapped {
		return place
	}
	if !l.id.IsZero() {
		place.Kind, place.Offset = sampler.InFile, at-l.Start+l.Offset
		copy(place.BuildID[:], l.id.Bytes())
		return place
	}
	if l.number == 0 {
		x.lines = append(x.lines, l)
		l.number = len(x.lines)
	}
	place.Mapping = l.number - 1
	return place
}

// line returns the mapping of an address, and a place of kind Mapped; else another place. Where no
// copy is certain the records are.
func (x *places) line(of sampler.Process, at uint64) (l *codeLine, place sampler.Place) {
	near := x.near(of, at)
	for _, c := range near {
		m := c.line(at)
		switch {
		case m == nil: // it may be unmapped since, of which there is no record
		case l == nil:
			l = m
		case !m.same(l): // moved, likewise
			return nil, sampler.Place{Kind: sampler.Ambiguous}
		}
	}
	certain := len(near) > 0
	if !certain {
		l, certain = x.recorded(of, at)
	}
	place.Unproven = x.p.mapped == nil
	switch {
	case l != nil:
		place.Kind = sampler.Mapped
	case !certain && slices.ContainsFunc(x.copies, func(c codeCopy) bool { return c.line(at) != nil }):
		place.Kind = sampler.Ambiguous
	default:
		place.Kind = sampler.Outside
	}
	return l, place
}

// near returns the last copy before the time of a process and the first one after it, as far as it
// is certain that nothing was mapped at an address in between. Without records they are all copies.
func (x *places) near(of sampler.Process, at uint64) (list []*codeCopy) {
	var before, after struct {
		*codeCopy
		read readTime
	}
	for i := range x.copies {
		c := &x.copies[i]
		if x.p.mapped == nil {
			list = append(list, c)
			continue
		}
		for _, read := range [...]readTime{c.first, c.last} {
			switch {
			case read.begin <= of.Time && (before.codeCopy == nil || read.begin > before.read.begin):
				before.codeCopy, before.read = c, read
			case read.begin > of.Time && (after.codeCopy == nil || read.begin < after.read.begin):
				after.codeCopy, after.read = c, read
			}
		}
	}
	log := x.p.mapped
	if c := before.codeCopy; c != nil &&
		log.unchanged(of.PID, at, before.read.begin, max(of.Time, before.read.end)) {
		list = append(list, c)
	}
	if c := after.codeCopy; c != nil && log.unchanged(of.PID, at, of.Time, after.read.end) {
		list = append(list, c)
	}
	return list
}

// recorded returns the mapping of an address by the records.
func (x *places) recorded(of sampler.Process, at uint64) (l *codeLine, certain bool) {
	if x.p.mapped == nil {
		return nil, false
	}
	m, ok := x.p.mapped.log.At(of.PID, at, of.Time)
	if !ok {
		return nil, false
	}
	for i := range x.found {
		if x.found[i].Mapping == m {
			return x.found[i], true
		}
	}
	x.p.mu.Lock()
	l = x.p.codeLine(m, m.Line())
	x.p.mu.Unlock()
	x.found = append(x.found, l)
	return l, true
}

// line returns the line that maps an address; nil if none does.
func (c *codeCopy) line(at uint64) *codeLine {
	for i := range c.lines {
		if l := &c.lines[i]; l.Start <= at && at < l.End {
			return l
		}
	}
	return nil
}

// same reports whether two lines that map an address make the same of it.
func (l *codeLine) same(o *codeLine) bool {
	a, b := l.File, o.File
	if a.Inode == 0 || b.Inode == 0 {
		return a.Path == b.Path && a.Inode == b.Inode
	}
	a.Path, b.Path = "", "" // it may be deleted since, or renamed
	return a == b && l.Start-l.Offset == o.Start-o.Offset
}

// files returns the files whose build IDs were read and that has wants, sorted by build ID:
// of those with the same the path that sorts first.
func (p *processes) files(has func(id []byte) bool) (files []bundle.File) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for file, id := range p.ids {
		if has(id.Bytes()) {
			files = append(files, bundle.File{BuildID: id.Hex(), Path: file.Path})
		}
	}
	slices.SortFunc(files, func(a, b bundle.File) int {
		return cmp.Or(strings.Compare(a.BuildID, b.BuildID), strings.Compare(a.Path, b.Path))
	})
	return slices.CompactFunc(files, func(a, b bundle.File) bool { return a.BuildID == b.BuildID })
}

// code returns the copies of a program's mappings, the newest first, as far as they are of
// code; those of all programs if it is 0. kept is false if there are none of the process at all.
func (p *processes) code(of processProgram) (list []codeCopy, kept bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, saved := range slices.Backward(p.kept[of.pid]) {
		if saved.program != of.program && of.program != 0 {
			continue
		}
		text, err := p.maps.read(saved.spooled, nil)
		if err != nil {
			continue
		}
		c := codeCopy{first: saved.first, last: saved.last}
		for m, row := range procmaps.Code(text) {
			c.lines = append(c.lines, *p.codeLine(m, string(row)))
		}
		list = append(list, c)
	}
	return list, len(p.kept[of.pid]) > 0
}

// codeLine returns a line with the build ID of its file. p.mu is held.
func (p *processes) codeLine(m procmaps.Mapping, text string) *codeLine {
	l := &codeLine{Mapping: m, text: text, id: p.ids[m.File]}
	if m.File.Path == procmaps.VDSO && m.Start>>32 != 0 { // a 32-bit program has another
		l.id = p.vdso
	}
	return l
}
