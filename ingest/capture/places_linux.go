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
)

// lowestCode is the lowest address at which anything can be mapped (vm.mmap_min_addr).
const lowestCode = 4096

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
	start, end, offset uint64
	id                 buildid.ID // zero if there is none
	text, path         string
	needed             bool
}

// locate tells what an address in a process is.
func (x *places) locate(pid int32, at uint64) sampler.Place {
	if pid != x.pid {
		x.pid = pid
		x.lines, x.known = x.p.code(pid)
	}
	switch {
	case inVsyscall(at): // it lies there in all processes
		return sampler.Place{Kind: sampler.Mapped}
	case at < lowestCode || at>>63 != 0:
		return sampler.Place{Kind: sampler.Outside}
	case !x.known:
		return sampler.Place{Kind: sampler.Gone}
	}
	i := slices.IndexFunc(x.lines, func(l codeLine) bool { return l.start <= at && at < l.end })
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
	place := sampler.Place{Kind: sampler.InFile, Offset: at - l.start + l.offset}
	copy(place.BuildID[:], l.id.Bytes())
	return place
}

// vsyscallPage is where x86-64 has the one page of vsyscalls.
const vsyscallPage = 0xffffffffff600000

func inVsyscall(at uint64) bool { return at >= vsyscallPage && at-vsyscallPage < 4096 }

// files returns the files whose build IDs were read and that has wants, sorted by build ID:
// of those with the same the path that sorts first.
func (p *processes) files(has func(id []byte) bool) (files []bundle.File) {
	for file, id := range p.ids {
		if _, rest, _ := strings.Cut(file, " "); has(id.Bytes()) {
			_, path, _ := strings.Cut(rest, " ")
			files = append(files, bundle.File{BuildID: id.Hex(), Path: path})
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
		l, file, ok := parseCode(string(row))
		if !ok {
			continue
		}
		if l.id = p.ids[file]; l.path == vdsoPath && l.start>>32 != 0 { // a 32-bit program has another
			l.id = p.vdso
		}
		lines = append(lines, l)
	}
	return lines, true
}

// parseCode reads a line of /proc/PID/maps, "start-end perms offset dev inode path". file
// is what tells the mapped file from others, from dev on; "" if there is none. ok is false
// for what is not mapped as code.
func parseCode(line string) (l codeLine, file string, ok bool) {
	const fields = 6
	f := strings.SplitN(strings.TrimRight(line, "\n"), " ", fields)
	if len(f) < fields-1 || len(f[1]) < 3 || f[1][2] != 'x' {
		return l, "", false
	}
	from, to, _ := strings.Cut(f[0], "-")
	ok = true
	for _, n := range []struct {
		text string
		to   *uint64
	}{{from, &l.start}, {to, &l.end}, {f[2], &l.offset}} {
		v, err := strconv.ParseUint(n.text, 16, 64)
		*n.to, ok = v, ok && err == nil
	}
	if len(f) == fields {
		l.path = strings.TrimLeft(f[fields-1], " ")
	}
	if f[4] != "0" {
		file = f[3] + " " + f[4] + " " + l.path
	}
	l.text = line
	return l, file, ok && l.start < l.end
}

// maxFiles bounds the files of which the build IDs are remembered.
const maxFiles = 1 << 14

// readIDs reads the build IDs of the files that a process maps as code, each once.
func (p *processes) readIDs(pid int32, text []byte) {
	for row := range bytes.Lines(text) {
		l, file, ok := parseCode(string(row))
		if _, have := p.ids[file]; !ok || have || file == "" || len(p.ids) >= maxFiles {
			continue
		}
		if id, ok := p.readID(pid, &l); ok {
			p.ids[file] = id
		}
	}
}

// readID reads the build ID of a mapped file, zero if it has none that fits into a frame:
// through the mapping itself, which serves for a deleted file, too. ok is false if the file
// could not be opened, as that of a process that has ended.
func (p *processes) readID(pid int32, l *codeLine) (id buildid.ID, ok bool) {
	name := "map_files/" + strconv.FormatUint(l.start, 16) + "-" + strconv.FormatUint(l.end, 16)
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
	object, err := elf.Open(l.path, io.NewSectionReader(f, 0, fi.Size()), fi.Size())
	if err != nil || object.ID.Space() != buildid.GNU || object.ID.Len() > sampler.BuildIDSize {
		return id, true
	}
	return object.ID, true
}
