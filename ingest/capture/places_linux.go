package capture

import (
	"bytes"
	"cmp"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"symbolize/buildid"
	"symbolize/ingest/bundle"
	"symbolize/ingest/capture/sampler"
	"symbolize/ingest/elf"
	"symbolize/ingest/procmaps"
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

// code returns the lines of a process's mappings that are of code; known is false if its
// mappings were not saved.
func (p *processes) code(pid int32) (lines []codeLine, known bool) {
	saved, ok := p.last[pid]
	if !ok {
		return nil, false
	}
	text, err := p.maps.read(saved, nil)
	if err != nil {
		return nil, false
	}
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
	return lines, true
}

// maxFiles bounds the files of which the build IDs are remembered.
const maxFiles = 1 << 14

// readIDs reads the build IDs of the files that a process maps as code, each once.
func (p *processes) readIDs(pid int32, text []byte) {
	for row := range bytes.Lines(text) {
		m, ok := procmaps.ParseCode(string(row))
		if _, have := p.ids[m.File]; !ok || have || m.File.Inode == 0 || len(p.ids) >= maxFiles {
			continue
		}
		if id, ok := p.readID(pid, &m); ok {
			p.ids[m.File] = id
		}
	}
}

// readID reads the build ID of a mapped file, zero if it has none that fits into a frame:
// through the mapping itself, which serves for a deleted file, too. ok is false if the file
// could not be opened, as that of a process that has ended.
func (p *processes) readID(pid int32, m *procmaps.Mapping) (id buildid.ID, ok bool) {
	name := "map_files/" + strconv.FormatUint(m.Start, 16) + "-" + strconv.FormatUint(m.End, 16)
	path := p.path(pid, name)
	fi, err := os.Stat(path)
	if err != nil {
		return id, false
	}
	if !fi.Mode().IsRegular() { // to open a device may set it to work
		return id, true
	}
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return id, false
	}
	defer f.Close()
	object, err := elf.Open(m.File.Path, io.NewSectionReader(f, 0, fi.Size()), fi.Size())
	if err != nil || object.ID.Space() != buildid.GNU || object.ID.Len() > sampler.BuildIDSize {
		return id, true
	}
	return object.ID, true
}
