package record

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"symbolize/buildid"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/procmaps"
)

// add adds the mappings and the files of run-time compilers.
func (p *processes) add(w *bundle.Writer) error {
	if err := p.addMappings(w, p.places); err != nil {
		return err
	}
	return p.addCompiled(w, func(int32, int64, int64) bool { return true })
}

// addMappings adds the mappings of processes. Of processes that are only sampled it adds the
// mappings that addresses in their stacks need, according to places, which may be nil.
func (p *processes) addMappings(w *bundle.Writer, x *places) error {
	p.mu.Lock()
	pids := slices.Collect(maps.Keys(p.kept))
	p.mu.Unlock()
	if x != nil {
		pids = slices.AppendSeq(pids, maps.Keys(x.tables))
	}
	slices.Sort(pids)
	for _, pid := range slices.Compact(pids) {
		b, err := p.neededMappings(pid, x)
		if err == nil && len(b) > 0 {
			if !p.counted[pid] {
				p.counted[pid] = true
				p.s.summary.Processes++
			}
			err = w.Add(bundle.MapsName(pid), b)
		}
		if err == nil {
			err = p.addPrograms(w, pid, x)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// neededMappings returns the mappings of a process that must be added; none if no address in its
// stacks needs them.
func (p *processes) neededMappings(pid int32, x *places) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	versions := p.kept[pid]
	var newest spooled
	if len(versions) > 0 {
		newest = versions[len(versions)-1].spooled
		if x == nil && p.added[pid] == newest {
			return nil, nil // already in the bundle
		}
		p.added[pid] = newest
	}
	switch {
	case x != nil && x.tables[pid] != nil:
		return x.tables[pid].list[0].layout.Text(), nil
	case len(versions) == 0 || x != nil && !p.whole[pid]:
		return nil, nil
	}
	return p.maps.read(newest, nil)
}

// addPrograms adds the further mappings of a process that addresses in its stacks need: of earlier
// programs, and of code that was replaced since.
func (p *processes) addPrograms(w *bundle.Writer, pid int32, x *places) error {
	if x == nil || x.tables[pid] == nil {
		return nil
	}
	list := x.tables[pid].list
	for i := range list {
		if b := list[i].layout.Text(); i > 0 && len(b) > 0 {
			if err := w.Add(bundle.ProgramMapsName(pid, uint32(i)), b); err != nil {
				return err
			}
		}
	}
	return nil
}

// newFile makes all mappings and files of run-time compilers be added again, to another bundle.
func (p *processes) newFile() {
	clear(p.compiled)
	clear(p.added)
}

// gone are ended processes: nothing of them is sampled any more.
type gone struct {
	pids map[int32]bool
	at   int64 // offset in the spool of mappings: later entries are of other processes
}

// gone returns the processes that have ended.
func (p *processes) gone() gone {
	p.mu.Lock()
	g := gone{pids: make(map[int32]bool), at: p.maps.size}
	for pid := range p.kept {
		g.pids[pid] = false
	}
	for pid := range p.bare {
		g.pids[pid] = false
	}
	for pid := range p.seen {
		g.pids[pid] = false
	}
	for pid := range p.starts {
		g.pids[pid] = false
	}
	p.mu.Unlock()
	for pid := range g.pids {
		if _, err := os.Stat(p.path(pid, "stat")); errors.Is(err, fs.ErrNotExist) ||
			errors.Is(err, unix.ESRCH) {
			g.pids[pid] = true
		}
	}
	maps.DeleteFunc(g.pids, func(_ int32, ended bool) bool { return !ended })
	return g
}

// forget forgets ended processes, after their data was added to a bundle.
func (p *processes) forget(g gone) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for pid := range g.pids {
		left := slices.DeleteFunc(p.kept[pid], func(m mapsCopy) bool { return m.at < g.at })
		if p.kept[pid] = left; len(left) == 0 {
			delete(p.kept, pid)
		}
		if len(left) > 0 || p.dirty[pid] { // another process has its ID
			continue
		}
		for _, of := range []map[int32]bool{p.bare, p.seen, p.dirty, p.counted, p.stale} {
			delete(of, pid)
		}
		delete(p.compiled, pid)
		delete(p.dumps, pid)
		p.release(pid)
		delete(p.starts, pid)
		delete(p.added, pid)
		if !slices.Contains(p.s.opts.PIDs, int(pid)) {
			delete(p.whole, pid)
		}
	}
	if err := p.compact(); err != nil {
		p.s.warn("%v", err)
	}
	p.forgetFiles()
}

// compactBytes is the size of the spool of mappings from which on it is rewritten if half of it
// belongs to forgotten processes.
const compactBytes = 16 << 20

// compact removes the mappings of forgotten processes from the spool. p.mu is held.
func (p *processes) compact() error {
	live := int64(0)
	for _, versions := range p.kept {
		for _, m := range versions {
			live += int64(m.len)
		}
	}
	if p.maps.size < compactBytes || live > p.maps.size/2 {
		return nil
	}
	next, err := newSpool()
	if err != nil {
		return err
	}
	moved := make(map[int32][]mapsCopy, len(p.kept))
	var buf []byte
	for pid, versions := range p.kept {
		for _, m := range versions {
			if buf, err = p.maps.read(m.spooled, buf); err == nil {
				err = next.add(uint32(pid), buf)
			}
			if err != nil {
				next.close()
				return err
			}
			m.spooled = next.entries[0]
			next.entries = next.entries[:0]
			moved[pid] = append(moved[pid], m)
		}
	}
	p.maps.close()
	p.maps, p.kept = next, moved
	return nil
}

// forgetFiles forgets the build IDs of files that no kept or recorded mapping has, if there are
// many. p.mu is held.
func (p *processes) forgetFiles() {
	if len(p.requestedIDs) < maxFiles/2 {
		return
	}
	used := make(map[procmaps.File]bool)
	var buf []byte
	for _, versions := range p.kept {
		for _, m := range versions {
			var err error
			if buf, err = p.maps.read(m.spooled, buf); err != nil {
				continue
			}
			for m := range procmaps.Code(buf) {
				used[m.File] = true
			}
		}
	}
	if p.mapped != nil {
		for pid := range p.bare {
			for _, m := range p.mapped.log.Mappings(pid) {
				used[m.File] = true
			}
		}
	}
	maps.DeleteFunc(p.ids, func(f procmaps.File, _ buildid.ID) bool { return !used[f] })
	maps.DeleteFunc(p.requestedIDs, func(f procmaps.File, _ bool) bool { return !used[f] })
}
