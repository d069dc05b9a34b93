package record

import (
	"cmp"
	"slices"
	"strings"

	"symbolize/buildid"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/procmaps"
	"symbolize/ingest/record/history"
	"symbolize/ingest/record/sampler"
)

// places locates bare addresses in user stacks: by the mappings that their processes had at
// the time, and by the build IDs of the files in them, which were read while the processes lived.
type places struct {
	p      *processes
	of     programCopies     // that was asked for last
	parent programCopies     // whose child was
	found  []*codeLine       // that records have
	unread sampler.PlaceKind // why there is no copy of the mappings
	timed  bool              // its process has a jitdump file

	lines   []*codeLine          // of the program, that Mapped places are in
	numbers map[*codeLine]int    // their places in lines
	tables  map[int32]*mapTables // by process
}

// processProgram is one of the programs that a process ran, or of the processes with its number.
type processProgram struct {
	pid     int32
	program uint64 // see sampler.ProgramFacts; 0: whichever
}

// programCopies are the copies of a program's mappings, the newest first.
type programCopies struct {
	processProgram
	copies []codeCopy
	kept   bool // mappings of its process were saved
}

func newPlaces(p *processes) *places {
	none := programCopies{processProgram: processProgram{pid: -1}}
	return &places{p: p, of: none, parent: none, tables: make(map[int32]*mapTables),
		numbers: make(map[*codeLine]int)}
}

// codeCopy is a copy of a program's mappings, as far as they are of code.
type codeCopy struct {
	first, last readTime // see mapsCopy
	lines       []codeLine
}

// codeLine is a line of /proc/PID/maps that maps code.
type codeLine struct {
	procmaps.Mapping
	id   buildid.ID // zero if there is none
	text string
}

// Locate implements sampler.Explainer.
func (x *places) Locate(of sampler.Process, at uint64) sampler.Place {
	if now := (processProgram{of.PID, of.Program}); now != x.of.processProgram {
		x.of = x.p.code(now)
		x.unread = sampler.Unread
		if len(x.of.copies) == 0 && !x.p.lives(of) {
			x.unread = sampler.Gone
		}
		x.timed = x.p.hasDump(of.PID)
		x.found, x.lines = nil, nil
		clear(x.numbers)
	}
	switch {
	case procmaps.InVsyscall(at):
		return sampler.Place{Kind: sampler.Vsyscall}
	case at < procmaps.Lowest || at>>63 != 0:
		return sampler.Place{Kind: sampler.Outside}
	case of.Program == 0 && x.of.kept && x.p.mapped == nil: // read of who knows which program
		return sampler.Place{Kind: sampler.Ambiguous}
	}
	l, kind := x.line(of, at)
	place := sampler.Place{Kind: kind}
	if len(x.of.copies) > 0 {
		place.Unproven = x.p.mapped == nil
	}
	if l == nil {
		return place
	}
	if !l.id.IsZero() {
		place.Kind, place.Offset = sampler.InFile, at-l.Start+l.Offset
		copy(place.BuildID[:], l.id.Bytes())
		return place
	}
	n, ok := x.numbers[l]
	if !ok {
		n = len(x.lines)
		x.lines, x.numbers[l] = append(x.lines, l), n
	}
	place.Mapping, place.Timed = n, x.timed
	return place
}

// line returns the mapping of an address, and the kind Mapped; else another kind.
func (x *places) line(of sampler.Process, at uint64) (*codeLine, sampler.PlaceKind) {
	l, proof := x.proven(&x.of, of.Time, at)
	switch {
	case l != nil:
		return l, sampler.Mapped
	case proof == history.Nothing:
		return nil, sampler.Outside
	case proof == history.Uncertain:
		return nil, sampler.Ambiguous
	case len(x.of.copies) == 0:
		return nil, x.unread
	case slices.ContainsFunc(x.of.copies, func(c codeCopy) bool { return c.line(at) != nil }):
		return nil, sampler.Ambiguous
	}
	return nil, sampler.Outside
}

// maxForks bounds how many processes without a copy, each the child of the next, are looked through
// for a mapping.
const maxForks = 64

// proven returns the mapping of an address at a time, by copies or else by the records; of a child
// by those of its parent, unless that has mapped other code since, in memory that it may share.
func (x *places) proven(of *programCopies, time, at uint64) (*codeLine, history.Proof) {
	till := time
	for range maxForks {
		l, proof, unmapped := x.copied(of, time, at)
		if x.p.mapped == nil || proof != history.Unknown && !unmapped {
			return l, proof
		}
		c := x.p.mapped.log.At(of.pid, at, time)
		switch {
		case c.Proof == history.Mapped:
			return x.recorded(c.Mapping), history.Mapped
		case unmapped:
			return nil, history.Nothing
		case c.Proof != history.Inherited:
			return nil, c.Proof
		}
		if !x.p.mapped.unchanged(c.Parent, at, c.Forked, till) {
			return nil, history.Uncertain
		}
		if parent := (processProgram{pid: c.Parent}); parent != x.parent.processProgram {
			x.parent = x.p.code(parent)
		}
		of, time = &x.parent, c.Forked
	}
	return nil, history.Unknown
}

// copied returns the mapping of an address at a time by copies that are certain: of kind Mapped or
// Nothing, or Uncertain where they differ; Unknown if there are no such copies. unmapped: there is
// a later one alone, which has none, and a mapping may have been unmapped before it.
func (x *places) copied(of *programCopies, time, at uint64) (l *codeLine, proof history.Proof,
	unmapped bool) {
	list, later := x.near(of, time, at)
	for _, c := range list {
		m := c.line(at)
		switch {
		case m == nil: // it may be unmapped since, of which there is no record
			if l == nil {
				proof = history.Nothing
			}
		case l == nil:
			l, proof = m, history.Mapped
		case !m.same(l):
			return nil, history.Uncertain, false
		}
	}
	return l, proof, later && l == nil
}

// near returns the last copy before a time and the first one after it, as far as it is certain that
// nothing was mapped at an address in between. Without records they are all copies. later: it is the
// one after it alone.
func (x *places) near(of *programCopies, time, at uint64) (list []*codeCopy, later bool) {
	var before, after struct {
		*codeCopy
		read readTime
	}
	for i := range of.copies {
		c := &of.copies[i]
		if x.p.mapped == nil {
			list = append(list, c)
			continue
		}
		for _, read := range [...]readTime{c.first, c.last} {
			switch {
			case read.begin <= time && (before.codeCopy == nil || read.begin > before.read.begin):
				before.codeCopy, before.read = c, read
			case read.begin > time && (after.codeCopy == nil || read.begin < after.read.begin):
				after.codeCopy, after.read = c, read
			}
		}
	}
	log := x.p.mapped
	if c := before.codeCopy; c != nil &&
		log.unchanged(of.pid, at, before.read.begin, max(time, before.read.end)) {
		list = append(list, c)
	}
	if c := after.codeCopy; c != nil && log.unchanged(of.pid, at, time, after.read.end) {
		later = len(list) == 0
		list = append(list, c)
	}
	return list, later
}

// recorded returns the mapping of a record, the same one each time.
func (x *places) recorded(m procmaps.Mapping) *codeLine {
	for _, l := range x.found {
		if l.Mapping == m {
			return l
		}
	}
	x.p.mu.Lock()
	l := x.p.codeLine(m, m.Line())
	x.p.mu.Unlock()
	x.found = append(x.found, l)
	return l
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

// code returns the copies of a program's mappings, as far as they are of code.
func (p *processes) code(of processProgram) programCopies {
	p.mu.Lock()
	defer p.mu.Unlock()
	x := programCopies{processProgram: of, kept: len(p.kept[of.pid]) > 0}
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
		x.copies = append(x.copies, c)
	}
	return x
}

// lives reports whether a process is there still, as far as that is known.
func (p *processes) lives(of sampler.Process) bool {
	if sampler.IsOutside(of.PID) {
		return true // nothing can be read of those
	}
	if !p.exists(int(of.PID)) {
		return false
	}
	now := p.program(of.PID)
	return now == of.Program || p.mapped == nil || !p.mapped.log.ForkedSince(of.PID, of.Time)
}

// codeLine returns a line with the build ID of its file. p.mu is held.
func (p *processes) codeLine(m procmaps.Mapping, text string) *codeLine {
	l := &codeLine{Mapping: m, text: text, id: p.ids[m.File]}
	if m.File.Path == procmaps.VDSO && m.Start>>32 != 0 { // a 32-bit program has another
		l.id = p.vdso
	}
	return l
}
