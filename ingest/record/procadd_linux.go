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
	"symbolize/ingest/format/procmaps"
)

// add adds the mappings, and the files of run-time compilers.
func (p *processes) add(w *bundle.Writer) error {
	if err := p.addMappings(w, p.places); err != nil {
		return err
	}
	return p.addCompiled(w, func(int32, int64, int64) bool { return true })
}

// addMappings adds the mappings of processes: for those that are only sampled, the ones that
// addresses in their stacks need, by places, which may be nil.
func (p *processes) addMappings(w *bundle.Writer, x *places) error {
	p.mu.Lock()
	pids := slices.Collect(maps.Keys(p.kept))
	p.mu.Unlock()
	if x != nil {
		pids = slices.AppendSeq(pids, maps.Keys(x.tables))
	}
	slices.Sort(pids)
	for _, pid := range slices.Compact(pids) {
		b, err := p.wanted(pid, x)
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

// wanted returns the mappings of a process that are to be kept: none where addresses in its
// stacks need none.
func (p *processes) wanted(pid int32, x *places) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	versions := p.kept[pid]
	var newest spooled
	if len(versions) > 0 {
		newest = versions[len(versions)-1].spooled
		if x == nil && p.added[pid] == newest {
			return nil, nil // as they are in the bundle already
		}
		p.added[pid] = newest
	}
	switch {
	case x != nil && x.tables[pid] != nil:
		return x.tables[pid].list[0].text(), nil
	case len(versions) == 0 || x != nil && !p.whole[pid]:
		return nil, nil
	}
	return p.maps.read(newest, nil)
}

// addPrograms adds the further mappings of a process that addresses in its stacks need: of programs
// that it ran before its last one, and of code in whose place is other code since.
func (p *processes) addPrograms(w *bundle.Writer, pid int32, x *places) error {
	if x == nil || x.tables[pid] == nil {
		return nil
	}
	for i, t := range x.tables[pid].list {
		if b := t.text(); i > 0 && len(b) > 0 {
			if err := w.Add(bundle.ProgramMapsName(pid, uint32(i)), b); err != nil {
				return err
			}
		}
	}
	return nil
}

// again has all mappings and files of run-time compilers added again, to another bundle.
func (p *processes) again() {
	clear(p.compiled)
	clear(p.added)
}

// gone are processes that have ended: nothing of them is sampled any more.
type gone struct {
	pids map[int32]bool
	at   int64 // in the spool of mappings: later entries are of other processes
}

// gone returns the processes that have ended by now.
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

// forget forgets processes that have ended, once all that is wanted of them is in a bundle.
func (p *processes) forget(g gone) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for pid := range g.pids {
		left := slices.DeleteFunc(p.kept[pid], func(m mapsCopy) bool { return m.at < g.at })
		if p.kept[pid] = left; len(left) == 0 {
			delete(p.kept, pid)
		}
		if len(left) > 0 || p.dirty[pid] { // another process has its number
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

// compactBytes is from which size on the spool of mappings is written anew where half of it is
// of processes that were forgotten.
const compactBytes = 16 << 20

// compact takes the room back that mappings of forgotten processes have. p.mu is held.
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
	var room []byte
	for pid, versions := range p.kept {
		for _, m := range versions {
			if room, err = p.maps.read(m.spooled, room); err == nil {
				err = next.add(uint32(pid), room)
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

// forgetFiles forgets the build IDs of files that no mappings that are kept have, where there
// are many. p.mu is held.
func (p *processes) forgetFiles() {
	if len(p.asked) < maxFiles/2 {
		return
	}
	used := make(map[procmaps.File]bool)
	var room []byte
	for _, versions := range p.kept {
		for _, m := range versions {
			var err error
			if room, err = p.maps.read(m.spooled, room); err != nil {
				continue
			}
			for m := range procmaps.Code(room) {
				used[m.File] = true
			}
		}
	}
	maps.DeleteFunc(p.ids, func(f procmaps.File, _ buildid.ID) bool { return !used[f] })
	maps.DeleteFunc(p.asked, func(f procmaps.File, _ bool) bool { return !used[f] })
}
