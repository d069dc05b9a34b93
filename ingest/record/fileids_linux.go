package record

import (
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"symbolize/buildid"
	"symbolize/ingest/format/procmaps"
	"symbolize/ingest/object/elf"
	"symbolize/ingest/record/sampler"
)

// maxFiles bounds the cache of files' build IDs.
const maxFiles = 1 << 14

// askID has the build ID of a file read that a process mapped as code at a time, once. p.mu is
// held.
func (p *processes) askID(pid int32, m procmaps.Mapping, since uint64) {
	if m.File.Inode == 0 || p.asked[m.File] || len(p.asked) >= maxFiles {
		return
	}
	p.asked[m.File] = true
	p.opens.run(device{m.File.Major, m.File.Minor}, func() {
		id, ok := p.readID(pid, &m, since)
		p.mu.Lock()
		defer p.mu.Unlock()
		if ok && !p.closed {
			p.ids[m.File] = id
		} else { // another process may have it, too
			delete(p.asked, m.File)
		}
	})
}

// mapping has the build ID of a file read that a process has mapped, if its stacks have bare
// addresses.
func (p *processes) mapping(pid int32, m *procmaps.Mapping, at uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ids != nil && (len(p.kept[pid]) > 0 || p.bare[pid]) {
		p.askID(pid, *m, at)
	}
}

// sampled notes that a process has stacks with bare addresses. The build IDs of files that it has
// mapped are read, and the mappings of its parent, which it has too until it runs a program: it may
// be gone when its own are to be read.
func (p *processes) sampled(pid int32) {
	for child := true; pid > 0; child = false {
		p.mu.Lock()
		known := p.bare[pid]
		p.bare[pid] = true
		copied := len(p.kept[pid]) > 0
		if p.mapped != nil && !known && !copied {
			for time, m := range p.mapped.log.Mappings(pid) {
				p.askID(pid, m, time)
			}
		}
		p.mu.Unlock()
		if known || p.mapped == nil {
			return
		}
		if !child && !copied {
			p.hurry(pid)
		}
		pid = p.mapped.log.Parent(pid)
	}
}

// fileID reads the build ID of a mapped file, zero if it has none that fits into a frame:
// through the mapping itself, which serves for a deleted file, too, or by its path where the
// process has ended or mapped another file there. ok is false if the file could not be opened.
func (p *processes) fileID(pid int32, m *procmaps.Mapping, since uint64) (id buildid.ID, ok bool) {
	name := p.path(pid, "map_files/"+strconv.FormatUint(m.Start, 16)+"-"+
		strconv.FormatUint(m.End, 16))
	if id, ok = readID(name, m, &m.File); ok {
		return id, true
	}
	if id, ok = readID(p.s.host.Path(m.File.Path), m, &m.File); ok {
		return id, true
	}
	// Of overlays the mapping has other numbers than the file.
	id, ok = readID(name, m, nil)
	return id, ok && p.stillMaps(pid, m, since)
}

// stillMaps reports whether a process has had a mapping since a time.
func (p *processes) stillMaps(pid int32, m *procmaps.Mapping, since uint64) bool {
	b, err := readSome(p.path(pid, "maps"), nil, maxMaps)
	if err != nil {
		return false
	}
	now := p.s.host.Monotonic()
	for o := range procmaps.Code(b) {
		if o == *m {
			p.mapped.sync()
			return p.mapped == nil || p.mapped.unchanged(pid, m.Start, since, now)
		}
	}
	return false
}

// readID reads the build ID of the file at a path, which is to be the one that is mapped,
// where is is not nil.
func readID(path string, m *procmaps.Mapping, is *procmaps.File) (id buildid.ID, ok bool) {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil || is != nil && !sameFile(&st, is) {
		return id, false
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG { // to open a device may set it to work
		return id, true
	}
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return id, false
	}
	defer f.Close()
	if unix.Fstat(int(f.Fd()), &st) != nil || is != nil && !sameFile(&st, is) {
		return id, false
	}
	object, err := elf.Open(m.File.Path, io.NewSectionReader(f, 0, st.Size), st.Size)
	if err != nil || object.ID.Space() != buildid.GNU || object.ID.Len() > sampler.BuildIDSize {
		return id, true
	}
	return object.ID, true
}

func sameFile(st *unix.Stat_t, f *procmaps.File) bool {
	return st.Ino == f.Inode && unix.Major(st.Dev) == f.Major && unix.Minor(st.Dev) == f.Minor
}
