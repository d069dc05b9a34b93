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

// places tells what bare addresses in users' stacks are: by the mappings of their processes
// that were saved, and by the build IDs of the files in them, which were read while the
// processes lived.
type places struct {
	p      *processes
	pid    int32 // of the process that was asked for last
	lines  []codeLine
	known  bool               // its mappings were saved
	needed map[int32][]string // lines of code that has no build ID, which addresses need
}

func newPlaces(p *processes) *places {
	return &places{p: p, pid: -1, needed: make(map[int32][]string)}
}

// codeLine is a line of /proc/PID/maps that maps code.
type codeLine struct {
	procmaps.Mapping
	id     buildid.ID // zero if there is none
	text   string
	needed bool
}

// locate tells what an address in a process is.
func (x *places) locate(pid int32, at uint64) sampler.Place {
	if pid != x.pid {
		x.pid = pid
		x.lines, x.known = x.p.code(pid)
	}
	switch {
	case procmaps.InVsyscall(at):
		return sampler.Place{Kind: sampler.Mapped}
	case at < procmaps.Lowest || at>>63 != 0:
		return sampler.Place{Kind: sampler.Outside}
	case !x.known:
		return sampler.Place{Kind: sampler.Gone}
	}
	i := slices.IndexFunc(x.lines, func(l codeLine) bool { return l.Start <= at && at < l.End })
	if i < 0 {
		return sampler.Place{Kind: sampler.Outside}
	}
	l := &x.lines[i]
	if l.id.IsZero() {
		if !l.needed {
			l.needed = true
			x.needed[pid] = append(x.needed[pid], l.text)
		}
		return sampler.Place{Kind: sampler.Mapped}
	}
	place := sampler.Place{Kind: sampler.InFile, Offset: at - l.Start + l.Offset}
	copy(place.BuildID[:], l.id.Bytes())
	return place
}

// files returns the files whose build IDs were read and that has wants, sorted by build ID:
// of those with the same the path that sorts first.
func (p *processes) files(has func(id []byte) bool) (files []bundle.File) {
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

// maps returns the lines of a process's mappings that its addresses need.
func (x *places) maps(pid int32) []byte { return []byte(strings.Join(x.needed[pid], "")) }

// vdsoPath is what /proc/PID/maps calls the vdso.
const vdsoPath = "[vdso]"

// code returns the lines of a process's mappings that are of code, of those that were saved
// last first; known is false if none were.
func (p *processes) code(pid int32) (lines []codeLine, known bool) {
	for _, saved := range slices.Backward(p.kept[pid]) {
		text, err := p.maps.read(saved, nil)
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
	return lines, known
}
