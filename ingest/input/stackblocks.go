package input

import (
	"slices"
	"sync"

	"symbolize/ingest/format/stackmap"
	"symbolize/ingest/input/merge"
)

// foldBlock is a block of samples on its way through the goroutines that fold it: the first numbers
// parts and labels, the second locates the new parts, the third makes stacks.
type foldBlock struct {
	parts   []newPart
	places  []uint32    // of the frames of all new parts
	samples []merge.Row // without stacks
	stacks  []stackKey  // by sample
}

// newPart is a part that no block before has.
type newPart struct {
	role int
	partKey
	end int // of its places in the block
}

// blockSamples is the number of samples in a block.
const blockSamples = 1 << 10

func (f *stackFolder) selected(sm *stackmap.Sample) bool {
	o := f.opts
	return (len(o.PIDs) == 0 || slices.Contains(o.PIDs, sm.PID)) &&
		(len(o.TIDs) == 0 || slices.Contains(o.TIDs, sm.TID)) &&
		(len(o.Comms) == 0 || slices.Contains(o.Comms, sm.Comm)) &&
		f.event[sm.Event] >= 0
}

// samples folds the samples of the set.
func (f *stackFolder) samples() {
	blocks, located := make(chan *foldBlock, 2), make(chan *foldBlock, 2)
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(located)
		for b := range blocks {
			f.locateParts(b)
			located <- b
		}
	})
	wg.Go(func() {
		for b := range located {
			f.makeStacks(b)
		}
	})
	for list := range slices.Chunk(f.set.Samples, blockSamples) {
		f.next = &foldBlock{}
		for i := range list {
			f.sample(&list[i])
		}
		blocks <- f.next
	}
	close(blocks)
	wg.Wait()
}

// sample numbers the parts and labels of a sample.
func (f *stackFolder) sample(sm *stackmap.Sample) {
	if !f.selected(sm) {
		f.stats.FilteredOut += sm.Count
		return
	}
	l := merge.Labels{Comm: f.Threads.Comm(sm.Comm), PID: -1, TID: -1, CPU: -1,
		Event: uint16(f.event[sm.Event]), Tags: f.tagsOf(sm)}
	if f.opts.Keep.PID {
		l.PID = sm.PID
	}
	if f.opts.Keep.TID {
		l.TID = sm.TID
	}
	b := f.next
	b.samples = append(b.samples, merge.Row{Label: f.labelled(l), Count: sm.Count, Weight: sm.Weight})
	key := stackKey{parts: [numRoles]uint32{
		kernelRole: f.part(kernelRole, sm.Kernel,
			origin{sm.PID, sm.Program, sm.KernelTime, sm.Timed}),
		userRole: f.part(userRole, sm.User,
			origin{pid: sm.PID, program: sm.Program, time: sm.UserTime}),
	}}
	if len(f.woken) > 0 && sm.Waker > 0 {
		key.waker = sm.Waker
		f.addWaker(sm.Waker - 1)
	}
	b.stacks = append(b.stacks, key)
	f.stats.Samples += sm.Count
	f.stats.Weight += sm.Weight
}

// addWaker numbers the parts of a waker's stack.
func (f *stackFolder) addWaker(n uint32) {
	to, w := &f.woken[n], &f.set.Wakers[n]
	if to.between > 0 {
		return
	}
	to.parts = [numRoles]uint32{
		kernelRole: f.part(kernelRole, w.Kernel, origin{w.PID, w.Program, w.KernelTime, true}),
		userRole:   f.part(userRole, w.User, origin{pid: w.PID, program: w.Program, time: w.UserTime}),
	}
	to.between = 1 + f.wokenBy
	if w.Interrupt {
		to.between = 1 + f.interruptBy
	}
}

// makeStacks makes the rows of the samples in a block.
func (f *stackFolder) makeStacks(b *foldBlock) {
	from := 0
	for i := range b.parts {
		f.lists[b.parts[i].role].Add(b.places[from:b.parts[i].end])
		from = b.parts[i].end
	}
	var list []uint32
	add := func(parts [numRoles]uint32) {
		for role, n := range parts {
			list = append(list, f.lists[role].At(n)...)
		}
	}
	for i, key := range b.stacks {
		n, ok := f.pairs[key]
		frames := f.lengthOf(key.parts)
		if key.waker > 0 {
			frames += f.lengthOf(f.woken[key.waker-1].parts) + 1
		}
		if !ok {
			if list = list[:0]; key.waker > 0 {
				add(f.woken[key.waker-1].parts)
				slices.Reverse(list)
				list = append(list, f.woken[key.waker-1].between-1)
			}
			add(key.parts)
			n = f.stacks.Add(list)
			f.pairs[key] = n
		}
		b.samples[i].Stack = n
		f.stats.Frames += b.samples[i].Count * uint64(frames)
	}
	f.rows = append(f.rows, b.samples...)
}

// lengthOf returns the number of frames in parts.
func (f *stackFolder) lengthOf(parts [numRoles]uint32) (n int) {
	for role := range parts {
		n += len(f.lists[role].At(parts[role]))
	}
	return n
}

// labelled numbers the labels of a sample, which often equal the labels of the previous sample.
func (f *stackFolder) labelled(l merge.Labels) uint32 {
	if f.stats.Samples == 0 || l != f.label {
		f.label, f.labelID = l, f.labels.Number(l)
	}
	return f.labelID
}

// part returns the number of a part of a stack.
func (f *stackFolder) part(role int, p stackmap.Part, of origin) uint32 {
	present := p.Cause == stackmap.Present
	switch {
	case p.Cause == stackmap.Absent:
		return 0
	case present && f.always(role, p.Stack, of):
		n := &f.located[role][p.Stack]
		if *n == 0 {
			*n = f.add(role, partKey{p, of}) + 1
		}
		return *n - 1
	case !present:
		p.Stack, of = 0, origin{}
	case role == kernelRole:
		of.pid, of.program = 0, 0
	}
	key := partKey{part: p, origin: of}
	n, ok := f.keyed[role][key]
	if !ok {
		n = f.add(role, key)
		f.keyed[role][key] = n
	}
	return n
}

// add numbers a part that is new.
func (f *stackFolder) add(role int, key partKey) uint32 {
	f.next.parts = append(f.next.parts, newPart{role: role, partKey: key})
	f.numbers[role]++
	return f.numbers[role] - 1
}

// locateParts locates the new parts of a block.
func (f *stackFolder) locateParts(b *foldBlock) {
	f.scratch = nil
	for i := range b.parts {
		p := &b.parts[i]
		if p.part.Cause == stackmap.Present {
			f.locate(p.role, f.set.Numbers(p.part.Stack), p.origin)
		} else {
			f.scratch = append(f.scratch, f.place(f.lost(p.role, p.part.Cause), 0))
		}
		p.end = len(f.scratch)
	}
	b.places = f.scratch
}
