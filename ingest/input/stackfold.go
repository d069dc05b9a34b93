package input

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/addrspace"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/stackmap"
	"symbolize/ingest/input/merge"
	"symbolize/ingest/intern"
	"symbolize/ingest/procmaps"
	"symbolize/ingest/sideband"
	"symbolize/ingest/texts"
)

// stackFolder makes a profile of a stack map. Each distinct part of a stack is located
// once, and each distinct frame looked up once: memory grows with both, not with samples.
type stackFolder struct {
	profileParts
	source *stackSource
	set    *stackmap.Set
	places *intern.Pairs
	lists  [numRoles]*intern.Lists // located parts; 0 is the empty list
	stacks *intern.Forest
	pairs  map[stackKey]uint32 // stacks
	rows   []merge.Row
	stats  ingest.Stats
	// event holds, by event of the set, its number in events; -1: not selected.
	event  []int
	wall   bool // the samples are of ingest.WallEvent
	wakers bool // samples have the label ingest.WakerTag
	// woken has the stacks of the wakers by number, with Selection.WakerDepth.
	woken []wakerStack
	// wokenBy and interruptBy are the places of the frames between a stack and its waker's.
	wokenBy, interruptBy uint32

	// Number + 1 in lists of located parts: by stack if the locations are the same in all
	// processes; by key for others and for lost parts.
	located [numRoles][]uint32
	keyed   [numRoles]map[partKey]uint32
	numbers [numRoles]uint32         // of parts with a number, and the empty one
	next    *foldBlock               // being filled
	found   [numRoles][2][]uint32    // place + 1 by frame, exact and return addresses
	users   [2]userPlaces            // of exact and return addresses in processes
	changed map[kernelAddress]uint32 // place of a kernel address with changing mappings
	current userSpace                // of the latest address
	scratch []uint32                 // places of the block that is located
	label   merge.Labels             // of the last sample
	labelID uint32                   // its number

	mapped  map[buildid.Key][]uint32 // raw objects of mapped files with build IDs
	validOf []uint32                 // raw object + 1 by build ID of the set
	namedOf []uint32                 // by symbol
	lostOf  [stackmap.NumCauses][numRoles]uint32

	// Raw objects of addresses without one of their own: in unknown address spaces, in processes
	// that had ended, in processes with unreadable mappings, and in several objects.
	noMap        [numRoles]uint32
	gone, unread uint32
	ambiguous    [numRoles]uint32
	// Numbers of distinct kernel addresses: in the kernel's image, in functions known only by a
	// kallsyms text, and in neither.
	inKernel, inListed, inNothing int
}

// The two roles of a part: a stack is a kernel part, then a user part.
const (
	kernelRole = iota
	userRole
	numRoles
)

// stackKey identifies a stack: by the numbers of its parts, and 1 + the number of the waker above it.
type stackKey struct {
	parts [numRoles]uint32
	waker uint32
}

// wakerStack has the parts of a waker's stack, and 1 + the place of the frame below them; 0 if the
// parts have no numbers yet.
type wakerStack struct {
	parts   [numRoles]uint32
	between uint32
}

// partKey identifies a part with addresses that depend on the address space or the time, and a lost
// part.
type partKey struct {
	part stackmap.Part
	origin
}

// userPlaces holds the places of addresses in processes.
type userPlaces struct {
	numbers *intern.Pairs // addresses by addrspace.Version
	places  []uint32      // by number
}

// userSpace is the address space of a program of a process.
type userSpace struct {
	pid     int32
	program uint32
	space   int32             // number in Spaces
	version addrspace.Version // 0 if its mappings are unknown
	known   bool              // the fields are set
}

func newStackFolder(s *stackSource, sb *sideband.State) *stackFolder {
	col := &collector{State: sb, labelling: labelling{tags: newTexts()}}
	set := s.set
	f := &stackFolder{source: s, set: set, places: intern.NewPairs(),
		stacks: intern.NewForest(), pairs: make(map[stackKey]uint32),
		changed: make(map[kernelAddress]uint32),
		validOf: make([]uint32, len(set.IDs)), namedOf: make([]uint32, len(set.Symbols))}
	f.users[0].numbers, f.users[1].numbers = intern.NewPairs(), intern.NewPairs()
	f.profileParts = profileParts{file: s.file, collector: col, opts: &s.opts, p: &ingest.Profile{}}
	f.mapped = mappedFiles(sb.Objects)
	col.states = kernelStates
	f.chooseEvents()
	f.wakers = slices.Contains(f.opts.Keep.TagList(), ingest.WakerTag)
	for role := range f.lists {
		f.located[role] = make([]uint32, set.NumStacks())
		f.keyed[role] = make(map[partKey]uint32)
		for exact := range f.found[role] {
			f.found[role][exact] = make([]uint32, len(set.Frames()))
		}
		f.lists[role] = new(intern.Lists)
		f.numbers[role] = f.lists[role].Add(nil) + 1
	}
	noMap := func(path string, why ingest.Reason) uint32 {
		return sb.Objects.Nameless(ingest.Unmapped, path, why)
	}
	f.noMap = [numRoles]uint32{kernelRole: noMap(ingest.UnmappedKernelPath,
		ingest.MapsNotSaved),
		userRole: noMap(ingest.UnmappedPath, ingest.MapsNotSaved)}
	f.gone = noMap(ingest.UnmappedPath, ingest.ProcessGone)
	f.unread = noMap(ingest.UnmappedPath, ingest.MapsNotRead)
	if f.opts.WakerDepth > 0 {
		f.woken = make([]wakerStack, len(set.Wakers))
		f.wokenBy = f.place(f.Objects.NamedCode(wokenBy, ingest.WakersPath, false), 0)
		f.interruptBy = f.place(f.Objects.NamedCode(interruptBy, ingest.WakersPath, false), 0)
	}
	f.ambiguous = [numRoles]uint32{kernelRole: noMap(ingest.AmbiguousKernelPath,
		ingest.AddressReused),
		userRole: noMap(ingest.AmbiguousPath, ingest.AddressReused)}
	return f
}

// checkFilters refuses filters by labels that the stacks do not have.
func (f *stackFolder) checkFilters() error {
	o := f.opts
	labels, tags := o.Keep.LabelWords()
	if err := cmp.Or(o.refuseRecords(f.file.path), refuseLabels(f.file.path, labels)); err != nil {
		return err
	}
	for _, x := range []struct {
		lacks        bool
		labels, flag string
	}{
		{len(o.PIDs) > 0 && !f.set.Labels.PID, "process IDs", "--pid"},
		{len(o.TIDs) > 0 && !f.set.Labels.TID, "thread IDs", "--tid"},
		{len(o.CPUs) > 0, "CPUs", "--cpu"},
		{len(o.Comms) > 0 && !f.set.Labels.Comm, "thread names", "--comm"},
	} {
		if x.lacks {
			return fmt.Errorf("%s: samples have no %s; %s cannot select", f.file.path, x.labels, x.flag)
		}
	}
	if err := f.checkEvent(); err != nil {
		return err
	}
	if o.WakerDepth > 0 {
		tags = append(tags, ingest.WakerTag)
	}
	for _, word := range tags {
		switch {
		case ingest.DataTag(word):
		case word == ingest.WakerTag && len(f.set.Wakers) == 0:
			return texts.WithHint(fmt.Errorf("%s: it has no wakers of threads", f.file.path),
				"record them with `symbolize capture --stacks --off-cpu --wakers`")
		case word == ingest.WakerTag, word == ingest.StateTag && f.hasStates():
		default:
			return fmt.Errorf("%s: its samples have no %s", f.file.path, ingest.TagKey(word))
		}
	}
	return nil
}

// place numbers a location.
func (f *stackFolder) place(object uint32, offset uint64) uint32 {
	if f.Objects.List[object&^returned].Kind.Collapsed() {
		offset = 0
	}
	return f.places.Add(intern.Pair{Object: object, Offset: offset})
}

// returnPlace is place for the byte before a return address, if ret.
func (f *stackFolder) returnPlace(object uint32, offset uint64, ret bool) uint32 {
	if ret {
		object = markReturned(f.Objects, object)
	}
	return f.place(object, offset)
}

// locate appends the locations of a part. Its first address is exact, all others are return
// addresses except kernel addresses that no call can precede, see sideband.State.KernelCode. A tail
// of addresses that cannot be code is the result of following frame pointers into code without
// them.
func (f *stackFolder) locate(role int, numbers []uint32, of origin) {
	frames, n := f.set.Frames(), len(numbers)
	rubbish := func(fr *stackmap.Frame) bool {
		return fr.Status == stackmap.IP && fr.Offset < lowestCode
	}
	for n > 1 && rubbish(&frames[numbers[n-1]]) {
		n--
	}
	if n < len(numbers) {
		f.stats.CutChains++
	}
	for i, number := range numbers[:n] {
		fr, ret, returns := &frames[number], false, 0
		if i > 0 && fr.Offset > 0 {
			ret, returns = true, 1
		}
		if fr.Status == stackmap.IP && !inKernel(role, fr.Offset) {
			f.scratch = append(f.scratch, f.userAddress(fr.Offset, ret, of))
			continue
		}
		if fr.Status == stackmap.IP && f.changes(fr.Offset, ret, of) {
			f.scratch = append(f.scratch, f.changedAddress(fr.Offset, ret, role, of))
			continue
		}
		known := &f.found[role][returns][number]
		if *known == 0 {
			*known = 1 + f.frame(role, fr, ret)
		}
		f.scratch = append(f.scratch, *known-1)
	}
}

// inKernel reports whether an address in a part is a kernel address.
func inKernel(role int, pc uint64) bool { return role == kernelRole || pc >= kernelHalf }

// frame locates a frame that has the same location in all processes.
func (f *stackFolder) frame(role int, fr *stackmap.Frame, ret bool) uint32 {
	switch fr.Status {
	case stackmap.Valid:
		return f.returnPlace(f.valid(fr.Ref), addr.Site(fr.Offset, ret), ret)
	case stackmap.Named:
		return f.place(f.named(fr.Ref), addr.Site(fr.Offset, ret))
	}
	return f.kernelAddress(fr.Offset, ret, role, origin{})
}

// mappedFiles returns the numbers of the files with build IDs.
func mappedFiles(r *sideband.Objects) map[buildid.Key][]uint32 {
	found := make(map[buildid.Key][]uint32)
	for i := range r.List {
		if o := &r.List[i]; o.Kind == ingest.ELF && !o.ID.IsZero() {
			found[o.ID.Key()] = append(found[o.ID.Key()], uint32(i))
		}
	}
	return found
}

// pathOf returns the path of the file with a build ID: where a process had mapped it, else as
// StackOptions.PathOf has it.
func (f *stackFolder) pathOf(id buildid.ID) string {
	for _, n := range f.mapped[id.Key()] {
		if o := &f.Objects.List[n]; o.ID.Matches(id) {
			return o.File.Path
		}
	}
	if f.opts.Stacks.PathOf == nil {
		return ""
	}
	return f.opts.Stacks.PathOf(id)
}

// valid returns the object with a build ID.
func (f *stackFolder) valid(ref uint32) uint32 {
	if f.validOf[ref] == 0 {
		id := f.set.IDs[ref]
		f.validOf[ref] = 1 + f.Objects.Add(sideband.ObjectKey{Kind: ingest.ELF, ID: id},
			ingest.Object{File: ingest.FileRef{Path: f.pathOf(id)}})
	}
	return f.validOf[ref] - 1
}

// named returns the object of a function with a name in the dump.
func (f *stackFolder) named(ref uint32) uint32 {
	if f.namedOf[ref] == 0 {
		sym := f.set.Symbols[ref]
		f.namedOf[ref] = 1 + f.Objects.NamedCode(sym.Name, sym.Object, sym.Kernel)
	}
	return f.namedOf[ref] - 1
}

// lost returns the object of parts lost for a cause.
func (f *stackFolder) lost(role int, cause stackmap.Cause) uint32 {
	if f.lostOf[cause][role] == 0 {
		path := "[lost: " + cause.String() + "]"
		if role == kernelRole {
			path = "[lost kernel stack: " + cause.String() + "]"
		}
		f.lostOf[cause][role] = 1 + f.Objects.Nameless(ingest.NoStack, path, ingest.StackLost)
	}
	return f.lostOf[cause][role] - 1
}

// userAddress looks up an address in a process.
func (f *stackFolder) userAddress(pc uint64, ret bool, of origin) uint32 {
	switch {
	case pc < lowestCode: // bundle.OutsideAddress among them
		return f.place(sideband.Unmapped, 0)
	case pc == bundle.GoneAddress:
		return f.place(f.gone, 0)
	case pc == bundle.UnreadAddress:
		return f.place(f.unread, 0)
	case pc == bundle.AmbiguousAddress:
		return f.place(f.ambiguous[userRole], 0)
	}
	u, site := f.userSpace(of), addr.Site(addr.PC(pc), ret)
	if reused, timed := f.Compiled.Reused(u.space, site); reused {
		return f.compiledAddress(u.space, site, ret, of.time, timed)
	}
	if u.version == 0 {
		return f.place(f.noMap[userRole], 0)
	}
	known := &f.users[0]
	if ret {
		known = &f.users[1]
	}
	n := known.numbers.Add(intern.Pair{Object: uint32(u.version), Offset: pc})
	if int(n) == len(known.places) {
		var at uint32
		if m := f.Spaces.User(u.version, site); m != nil {
			at = f.returnPlace(m.Object, uint64(m.Offset(site)), ret)
		} else {
			at = f.place(sideband.Unmapped, 0)
		}
		known.places = append(known.places, at)
	}
	return known.places[n]
}

// userSpace returns the address space in which the user addresses of a stack are looked up.
func (f *stackFolder) userSpace(of origin) *userSpace {
	u := &f.current
	if u.known && u.pid == of.pid && u.program == of.program {
		return u
	}
	*u = userSpace{pid: of.pid, program: of.program, known: true}
	u.space = f.SpaceOf(of.pid, of.program)
	u.version = f.Spaces.Process(u.space, addrspace.Forever).Version()
	if of.program == 0 && (of.pid < 0 || u.version == 0) {
		u.version = f.Spaces.Process(AnyProcess, addrspace.Forever).Version()
	}
	return u
}

// compileLag is how long before the time of its record a function may have been written, ns.
const compileLag = 1_000_000

// compiledAddress looks up an address of several successive functions: it finds the function that
// was there during all of the time in which the stack was recorded.
func (f *stackFolder) compiledAddress(space int32, site addr.PC, ret bool, time uint64, timed bool) uint32 {
	if timed && time > compileLag {
		first := f.Spaces.Process(space, time-compileLag).Version()
		last := f.Spaces.Process(space, time+bundle.UserTimeSpan+compileLag).Version()
		a, b := f.Spaces.User(first, site), f.Spaces.User(last, site)
		if a != nil && b != nil && *a == *b {
			return f.returnPlace(a.Object, uint64(a.Offset(site)), ret)
		}
	}
	return f.place(f.Compiled.Ambiguous(), 0)
}

// profile makes the profile of the samples, and returns the shard with the locations of its places.
func (f *stackFolder) profile() (*ingest.Profile, *merge.Shard) {
	p := f.p
	places := f.places.List()
	number := f.objects(f.query(0, 0), places)
	number = f.separateUndecided(number, places)
	f.exact = f.correctReturns(number, places)
	for i := range p.Objects {
		switch o := &p.Objects[i]; {
		case o.Reason != ingest.NoBuildID:
		case o.Symbol != "":
			o.Reason = ingest.ReasonNone // named by the dump
		case o.Kind == ingest.ELF:
			o.Unseen = true
		}
	}
	comms, tags := f.strings()
	f.set.Discard()
	f.located, f.keyed, f.found, f.users = [numRoles][]uint32{},
		[numRoles]map[partKey]uint32{}, [numRoles][2][]uint32{}, [2]userPlaces{}
	f.places, f.lists, f.pairs = nil, [numRoles]*intern.Lists{}, nil
	s := &merge.Shard{Places: places, Rows: slices.Values(f.rows), Labels: f.labels.List,
		Stacks: f.stacks.Trees(), Objects: number, Events: f.eventsUsed(),
		Comms: func(code uint32) ingest.StringID { return comms[code] }}
	if len(tags) > 0 {
		s.Tags = func(code uint32) ingest.StringID { return tags[code] }
	}
	merge.Assemble(p, []*merge.Shard{s})
	p.Stats = f.stats
	p.Stats.Lost = f.set.LostSamples
	p.Stats.RecordTypes = make(map[string]uint64)
	f.mainProgram()
	f.stackWarnings(p)
	p.Meta.Captures = []string{f.file.path}
	return p, s
}

// origin is the process and the time for which the addresses of a stack are looked up.
type origin struct {
	pid     int32
	program uint32
	time    uint64 // kernel stacks: if timed; user stacks: 0 if unknown
	timed   bool
}

// always reports whether a stack has the same locations in all processes and at all times, as
// kernel stacks without a time or of time 0.
func (f *stackFolder) always(role int, stack uint32, of origin) bool {
	if role == kernelRole {
		return !of.timed || of.time == 0
	}
	return !f.set.HasAddresses(stack)
}

// changes reports whether the location of a kernel address depends on the time.
func (f *stackFolder) changes(pc uint64, ret bool, of origin) bool {
	return of.timed && of.time == bundle.UnknownTime || !f.Spaces.Steady(addr.PC(pc)) ||
		!f.Spaces.Steady(addr.Site(addr.PC(pc), ret))
}

// kernelAddress is an address of the kernel at a time.
type kernelAddress struct {
	pc   uint64
	ret  bool
	role int
	time uint64
}

// changedAddress looks up an address for which changes is true.
func (f *stackFolder) changedAddress(pc uint64, ret bool, role int, of origin) uint32 {
	key := kernelAddress{pc, ret, role, of.time}
	n, ok := f.changed[key]
	if !ok {
		n = f.kernelAddress(pc, ret, role, of)
		f.changed[key] = n
	}
	return n
}

// kernelAddress looks up an address of the kernel, at the time of its stack if that is known.
func (f *stackFolder) kernelAddress(pc uint64, ret bool, role int, of origin) uint32 {
	if procmaps.InVsyscall(pc) && role == userRole {
		return f.place(sideband.Vsyscall, addr.Site(pc, ret)-procmaps.Vsyscall)
	}
	list := f.kernelPlaces(addr.PC(pc), ret, of)
	switch {
	case len(list) > 1,
		len(list) == 1 && of.timed && of.time == bundle.UnknownTime &&
			f.Objects.List[list[0].object].Kind != ingest.Kernel: // only the kernel stays mapped
		return f.place(f.ambiguous[kernelRole], 0)
	case len(list) == 1:
		if f.Objects.List[list[0].object].Kind == ingest.Kernel {
			f.inKernel++
		}
		return f.returnPlace(list[0].object, list[0].offset, list[0].ret)
	}
	if n, off, ok := f.Kernel.InKallsyms(pc, ret); ok {
		f.inListed++
		return f.place(n, off)
	}
	f.inNothing++
	if !f.State.Kernel.Mapped {
		return f.place(f.noMap[kernelRole], 0)
	}
	return f.place(sideband.UnmappedKernel, 0)
}

// kernelPlace is a possible place of an address of the kernel.
type kernelPlace struct {
	object uint32
	offset uint64
	ret    bool // the byte before a return address
}

// kernelPlaces returns the places of an address: at most one at the time of its stack; if the time
// is unknown, all places that it ever had, or the first two.
func (f *stackFolder) kernelPlaces(pc addr.PC, ret bool, of origin) (list []kernelPlace) {
	if of.timed && of.time != bundle.UnknownTime {
		return f.kernelPlace(nil, f.Spaces.Kernel(of.time).Version(), pc, ret)
	}
	looked := 0
	for v := range f.Spaces.KernelVersions(addr.Site(pc, ret), pc) {
		if list = f.kernelPlace(list, v, pc, ret); len(list) > 1 {
			break // two make it ambiguous
		}
		if looked++; looked == maxKernelStates {
			return append(list, kernelPlace{}, kernelPlace{}) // ambiguous: too many to look at
		}
	}
	return list
}

// maxKernelStates bounds the states of the kernel in which an address of unknown time is looked up.
const maxKernelStates = 1 << 12

// kernelPlace appends the place of an address in a version of the kernel's address space, if
// it is not in the list.
func (f *stackFolder) kernelPlace(list []kernelPlace, v addrspace.Version, pc addr.PC,
	ret bool) []kernelPlace {
	m, site := f.State.KernelCode(v, pc, ret)
	if m == nil {
		return list
	}
	x := kernelPlace{m.Object, uint64(m.Offset(site)), site != pc}
	if slices.Contains(list, x) {
		return list
	}
	return append(list, x)
}

// Addresses makes a Profile of addresses in the kernel, its modules and BPF programs, and returns
// the location of each. The mappings come from Options.Bundles and from the kallsyms in
// Options.Stacks; name is for messages. No address is treated as a return address.
func Addresses(ctx context.Context, name string, list []uint64, opts Options) (
	*ingest.Profile, []ingest.LocationID, error) {
	set, err := stackmap.Addresses(list)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	f, warnings, err := foldAlone(ctx, name, set, opts)
	if err != nil {
		return nil, nil, err
	}
	local := make([]uint32, len(list))
	for i := range list {
		sm := &set.Samples[i]
		part := f.part(kernelRole, sm.Kernel, origin{sm.PID, sm.Program, sm.KernelTime, sm.Timed})
		local[i] = f.lists[kernelRole].At(part)[0]
	}
	p, shard := f.profile()
	addWarnings(p, warnings)
	at := make([]ingest.LocationID, len(list))
	for i, n := range local {
		at[i] = shard.Location[n]
	}
	return p, at, nil
}

// foldAlone folds all samples of a set that is no capture; it returns the warnings about the bundles.
func foldAlone(ctx context.Context, name string, set *stackmap.Set, opts Options) (
	*stackFolder, []sideband.Warning, error) {
	opts.Event, opts.Comms, opts.Keep = "", nil, ingest.Keep{}
	opts.PIDs, opts.TIDs, opts.CPUs = nil, nil, nil
	opts.Time, opts.Branches, opts.Weight = TimeRange{}, NoBranches, ""
	s := &stackSource{file: &file{path: name}, set: set, opts: opts,
		kallsyms: opts.Stacks.Kallsyms}
	sb, err := s.newState(ctx)
	if err != nil {
		return nil, nil, err
	}
	sb.Build()
	f := newStackFolder(s, sb)
	f.samples()
	return f, sb.Records.Warnings, nil
}
