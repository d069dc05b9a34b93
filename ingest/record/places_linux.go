package record

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"symbolize/buildid"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/procmaps"
	"symbolize/ingest/record/sampler"
)

// places locates bare addresses in user stacks: by the mappings of their processes
// that were saved, and by the build IDs of the files in them, which were read while the
// processes lived.
type places struct {
	p      *processes
	of     processProgram // that was asked for last
	lines  []codeLine
	known  bool                        // its mappings were saved
	kept   bool                        // mappings of its process were
	needed map[processProgram][]string // lines of code that has no build ID, which addresses need
	order  map[int32][]uint64          // programs of processes, by their numbers
}

// processProgram is one of the programs that a process ran, or of the processes with its number.
type processProgram struct {
	pid     int32
	program uint64 // see sampler.ProgramFacts
}

func newPlaces(p *processes) *places {
	return &places{p: p, of: processProgram{pid: -1}, needed: make(map[processProgram][]string),
		order: make(map[int32][]uint64)}
}

// codeLine is a line of /proc/PID/maps that maps code.
type codeLine struct {
	procmaps.Mapping
	id     buildid.ID // zero if there is none
	text   string
	needed bool
}

// Locate implements sampler.Explainer.
func (x *places) Locate(pid int32, program, at uint64) sampler.Place {
	if of := (processProgram{pid, program}); of != x.of {
		x.of = of
		x.lines, x.known, x.kept = x.p.code(of)
	}
	switch {
	case procmaps.InVsyscall(at):
		return sampler.Place{Kind: sampler.Mapped}
	case at < procmaps.Lowest || at>>63 != 0:
		return sampler.Place{Kind: sampler.Outside}
	case program == 0 && x.kept: // read of who knows which program
		return sampler.Place{Kind: sampler.Ambiguous}
	case !x.known:
		return sampler.Place{Kind: sampler.Gone}
	}
	var l *codeLine
	for i := range x.lines {
		m := &x.lines[i]
		switch {
		case at < m.Start || m.End <= at:
		case l == nil:
			l = m
		case !m.same(l):
			return sampler.Place{Kind: sampler.Ambiguous}
		}
	}
	if l == nil {
		return sampler.Place{Kind: sampler.Outside}
	}
	if l.id.IsZero() {
		if !l.needed {
			l.needed = true
			x.programs(pid) // its number is settled
			x.needed[x.of] = append(x.needed[x.of], l.text)
		}
		return sampler.Place{Kind: sampler.Mapped}
	}
	place := sampler.Place{Kind: sampler.InFile, Offset: at - l.Start + l.Offset}
	copy(place.BuildID[:], l.id.Bytes())
	return place
}

// Number implements sampler.Explainer. Of a program without mappings it returns one that no
// program has.
func (x *places) Number(pid int32, program uint64) uint32 {
	return uint32(slices.Index(x.programs(pid), program))
}

// programs is processes.programs as it was when it was called first: while a recording goes on
// there may come others.
func (x *places) programs(pid int32) []uint64 {
	list, ok := x.order[pid]
	if !ok {
		x.p.mu.Lock()
		list = x.p.programs(pid)
		x.p.mu.Unlock()
		x.order[pid] = list
	}
	return list
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

// maps returns the lines of a program's mappings that its addresses need.
func (x *places) maps(pid int32, program uint64) []byte {
	return []byte(strings.Join(x.needed[processProgram{pid, program}], ""))
}

// vdsoPath is the vdso's name in /proc/PID/maps.
const vdsoPath = "[vdso]"

// code returns the lines of a program's mappings that are of code, of those that were saved
// last first; known is false if none were, kept if none were of the process at all.
func (p *processes) code(of processProgram) (lines []codeLine, known, kept bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, saved := range slices.Backward(p.kept[of.pid]) {
		if saved.program != of.program {
			continue
		}
		text, err := p.maps.read(saved.spooled, nil)
		if err != nil {
			continue
		}
		known = true
		for row := range bytes.Lines(text) {
			m, ok := procmaps.ParseCode(string(row))
			if !ok {
				continue
			}
			l := codeLine{Mapping: m, text: string(row), id: p.ids[m.File]}
			if m.File.Path == vdsoPath && m.Start>>32 != 0 { // a 32-bit program has another
				l.id = p.vdso
			}
			lines = append(lines, l)
		}
	}
	return lines, known, len(p.kept[of.pid]) > 0
}
