package addrspace

import (
	"cmp"
	"iter"
	"slices"

	"symbolize/ingest/addr"
)

// Builder builds a Map. Its methods must be called in order of time; records of one time in the
// order of the file.
type Builder struct {
	m       *Map
	now     uint64
	owned   map[int32]Version // unshared Versions made at the current time
	loaded  map[int32]bool    // processes with a completely mapped program
	changed []change
	pieces  int // visited by Fill
}

// NewBuilder returns a Builder of an empty history.
func NewBuilder() *Builder {
	return &Builder{
		m: &Map{
			forest:   newForest(),
			mappings: make([]Mapping, 1), // 0 is no mapping
			roots:    make([]tree, 1),
			before:   make([]tree, 1),
			procs:    make(map[int32]*track),
			threads:  make(map[int32]*track),
			kernels:  make([]kernelState, 1),
		},
		owned: make(map[int32]Version), loaded: make(map[int32]bool),
	}
}

// tick advances to time t. Time does not decrease: a smaller t means the current time.
func (b *Builder) tick(t uint64) {
	if t > b.now {
		b.now = t
		clear(b.owned)
		b.m.forest.seal()
	}
}

func of(tracks map[int32]*track, id int32) *track {
	tr := tracks[id]
	if tr == nil {
		tr = new(track)
		tracks[id] = tr
	}
	return tr
}

// Comm sets the name of thread tid of process pid to comm from t on. An exec removes the process's
// mappings, see Map.Before.
func (b *Builder) Comm(t uint64, pid, tid int32, comm uint32, exec bool) {
	b.tick(t)
	of(b.m.threads, tid).set(b.now, comm)
	if exec {
		b.exec(pid)
	}
}

// exec removes the mappings of a process, which become those before its new program.
func (b *Builder) exec(pid int32) {
	delete(b.loaded, pid)
	delete(b.owned, pid)
	proc := of(b.m.procs, pid)
	v := proc.now(0)
	old := b.m.roots[v]
	if old == 0 {
		old = b.m.before[v] // programs without mappings have no samples
	}
	if old == 0 {
		proc.set(b.now, 0)
		return
	}
	b.m.forest.seal()
	b.version(pid, 0, old)
}

// version makes a new Version of a process.
func (b *Builder) version(pid int32, root, before tree) {
	v := Version(len(b.m.roots))
	b.m.roots, b.m.before = append(b.m.roots, root), append(b.m.before, before)
	b.owned[pid] = v
	of(b.m.procs, pid).set(b.now, uint32(v))
}

// Loaded records that the kernel has completely mapped a new program, so that the process runs it:
// the next mapping or fork, made by the program itself, ends the state returned by Before.
func (b *Builder) Loaded(pid int32) { b.loaded[pid] = true }

// endExec ends the state returned by Before for a process that forks.
func (b *Builder) endExec(pid int32) {
	if v := b.m.procs[pid].now(0); b.m.before[v] != 0 {
		b.version(pid, b.m.roots[v], 0)
	}
}

// Fork records that thread ptid of process ppid made thread tid of process pid. A new thread
// inherits the name, a new process inherits the current mappings, replacing the state of an earlier
// process with its number. After a synthesized record, the mappings follow in records of their own,
// and nothing is inherited.
func (b *Builder) Fork(t uint64, pid, tid, ppid, ptid int32, synthesized bool) {
	b.tick(t)
	if synthesized {
		return
	}
	if tid != ptid {
		of(b.m.threads, tid).set(b.now, b.m.threads[ptid].now(NoComm))
	}
	b.endExec(ppid)
	if pid == ppid {
		return
	}
	of(b.m.procs, pid).set(b.now, b.m.procs[ppid].now(0))
	// From here on the two share their mappings.
	delete(b.owned, ppid)
	delete(b.owned, pid)
	b.m.forest.seal()
}

// Map adds mapping m to process pid from t on, over any existing mappings. Empty and wrapping
// ranges are ignored.
func (b *Builder) Map(t uint64, pid int32, m Mapping) {
	b.tick(t)
	if m.Start >= m.End {
		return
	}
	proc := of(b.m.procs, pid)
	v := Version(proc.now(0))
	root := b.m.roots[v]
	if b.known(root, m) {
		return
	}
	root = b.m.forest.cover(root, m.Start, m.End, b.add(m))
	before := b.m.before[v]
	if b.loaded[pid] {
		before = 0
	}
	if b.owned[pid] == v && v != 0 {
		b.m.roots[v], b.m.before[v] = root, before
		return
	}
	b.version(pid, root, before)
}

// known reports whether a tree already has m. Run-time compilers often change the protection of
// their memory, and each change is a record.
func (b *Builder) known(t tree, m Mapping) bool {
	n, ok := b.m.forest.find(t, m.Start)
	if !ok || n.end < m.End {
		return false
	}
	old := &b.m.mappings[n.mapping]
	return old.Object == m.Object && old.delta() == m.delta()
}

func (b *Builder) add(m Mapping) uint32 {
	b.m.mappings = append(b.m.mappings, m)
	return uint32(len(b.m.mappings) - 1)
}

// Kernel adds mapping m to a layer of the kernel from t on, over any existing mappings in that
// layer.
func (b *Builder) Kernel(t uint64, l Layer, m Mapping) {
	b.tick(t)
	if m.Start >= m.End || l >= numLayers {
		return
	}
	root := b.m.kernels[b.m.kernel.now(0)][l]
	if b.known(root, m) {
		return
	}
	number := b.add(m)
	b.changeKernel(l, m.Start, m.End, func(t tree) tree {
		return b.m.forest.cover(t, m.Start, m.End, number)
	})
}

// KernelGone removes the mapping that was added at [start, end) of a layer of the kernel
// from t on. Later mappings over parts of it stay.
func (b *Builder) KernelGone(t uint64, l Layer, start, end addr.PC) {
	b.tick(t)
	if start >= end || l >= numLayers {
		return
	}
	root := b.m.kernels[b.m.kernel.now(0)][l]
	number := uint32(0)
	b.m.forest.within(root, start, end, func(n *node) {
		if m := &b.m.mappings[n.mapping]; m.Start == start && m.End == end {
			number = n.mapping
		}
	})
	if number == 0 {
		return
	}
	b.changeKernel(l, start, end, func(t tree) tree {
		return b.m.forest.uncover(t, start, end, number)
	})
}

// changeKernel makes a new Version of the kernel, or changes the one of the current time.
func (b *Builder) changeKernel(l Layer, start, end addr.PC, alter func(tree) tree) {
	v := Version(b.m.kernel.now(0))
	state := b.m.kernels[v]
	state[l] = alter(state[l])
	if n := len(b.m.kernel.at); n > 0 && b.m.kernel.at[n-1] == b.now {
		b.m.kernels[v] = state
	} else {
		v = Version(len(b.m.kernels))
		b.m.kernels = append(b.m.kernels, state)
		b.m.kernel.set(b.now, uint32(v))
	}
	if b.now > 0 {
		b.changed = append(b.changed, change{addrRange{start, end}, v})
	}
}

// Build returns the history. The Builder must not be used after it.
func (b *Builder) Build() *Map {
	b.m.changing, b.m.changes = groupChanges(b.changed)
	b.m.anywhere = newAnywhere(b.m.mappings)
	m := b.m
	b.m = nil
	return m
}

// change is a change of the kernel's mappings in a range from a Version on.
type change struct {
	addrRange
	version Version
}

// groupChanges returns the sorted and joined ranges with changes, and the changes in each.
func groupChanges(changed []change) (ranges []addrRange, groups [][]change) {
	if len(changed) == 0 {
		return nil, nil
	}
	all := make([]addrRange, len(changed))
	for i := range changed {
		all[i] = changed[i].addrRange
	}
	ranges = joinRanges(all)
	groups = make([][]change, len(ranges))
	for _, c := range changed {
		i, _ := findRange(ranges, c.start, c.start)
		groups[i] = append(groups[i], c)
	}
	return ranges, groups
}

// findRange finds the first of the sorted ranges with an address from first to last.
func findRange(ranges []addrRange, first, last addr.PC) (i int, ok bool) {
	return slices.BinarySearchFunc(ranges, first, func(r addrRange, first addr.PC) int {
		switch {
		case r.end <= first:
			return -1
		case r.start > last:
			return 1
		}
		return 0
	})
}

// Steady reports whether InKernel has the same result for pc in every Version.
func (m *Map) Steady(pc addr.PC) bool {
	_, found := findRange(m.changing, pc, pc)
	return !found
}

// KernelVersions returns, in their order, Versions of the kernel with all results of InKernel for
// the addresses from first to last.
func (m *Map) KernelVersions(first, last addr.PC) iter.Seq[Version] {
	return func(yield func(Version) bool) {
		previous := m.Kernel(0).Version()
		if !yield(previous) {
			return
		}
		i, ok := findRange(m.changing, first, last)
		if !ok {
			return
		}
		for k := range m.changes[i] {
			c := &m.changes[i][k]
			if c.version == previous || c.end <= first || c.start > last {
				continue
			}
			if previous = c.version; !yield(previous) {
				return
			}
		}
	}
}

// joinRanges sorts ranges and joins adjacent and overlapping ones.
func joinRanges(ranges []addrRange) []addrRange {
	slices.SortFunc(ranges, func(a, b addrRange) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end))
	})
	out := ranges[:0]
	for _, r := range ranges {
		if n := len(out); n > 0 && r.start <= out[n-1].end {
			out[n-1].end = max(out[n-1].end, r.end)
			continue
		}
		out = append(out, r)
	}
	return slices.Clip(out)
}

// maxPieces bounds the pieces visited by all calls of Fill. Real recordings need some million; in a
// hostile recording each of a million records could visit a million pieces.
const maxPieces = 1 << 28

// Fill adds mapping m to process pid from t on, but not over existing mappings of objects for which
// keep returns true: functions of a run-time compiler in memory with frequent changes of
// protection, each of which is a record.
func (b *Builder) Fill(t uint64, pid int32, m Mapping, keep func(object uint32) bool) {
	b.tick(t)
	if m.Start >= m.End || b.pieces > maxPieces {
		return
	}
	root := b.m.roots[of(b.m.procs, pid).now(0)]
	var gaps []addrRange
	at := m.Start
	look := func(n *node) {
		b.pieces++
		old := &b.m.mappings[n.mapping]
		if old.Object != m.Object && !keep(old.Object) {
			return
		}
		if n.start > at {
			gaps = append(gaps, addrRange{at, n.start})
		}
		at = max(at, min(n.end, m.End))
	}
	if n, ok := b.m.forest.find(root, m.Start); ok && n.start < m.Start {
		look(n)
	}
	b.m.forest.within(root, m.Start, m.End, look)
	if at < m.End {
		gaps = append(gaps, addrRange{at, m.End})
	}
	for _, g := range gaps {
		b.Map(t, pid, Mapping{Start: g.start, End: g.end, Object: m.Object,
			PgOff: m.PgOff + uint64(g.start-m.Start)})
	}
}

// Covering returns the piece of a process's current mappings that has an address; ok is false if none
// has it.
func (b *Builder) Covering(pid int32, pc addr.PC) (m Mapping, ok bool) {
	n, ok := b.m.forest.find(b.m.roots[of(b.m.procs, pid).now(0)], pc)
	if !ok || pc >= n.end {
		return m, false
	}
	m = b.m.mappings[n.mapping]
	m.PgOff += uint64(n.start - m.Start)
	m.Start, m.End = n.start, n.end
	return m, true
}

// Mappings returns the pieces of a process's current mappings, ascending.
func (b *Builder) Mappings(pid int32) (list []Mapping) {
	root := b.m.roots[of(b.m.procs, pid).now(0)]
	b.m.forest.within(root, 0, ^addr.PC(0), func(n *node) {
		m := &b.m.mappings[n.mapping]
		list = append(list, Mapping{Start: n.start, End: n.end, Object: m.Object,
			PgOff: m.PgOff + uint64(n.start-m.Start)})
	})
	return list
}
