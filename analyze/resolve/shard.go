package resolve

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"symbolize/ingest"
	"symbolize/ingest/addr"
)

// shard is a run of locations of one object, and the frames found for them.
type shard struct {
	object   *object
	from, to int
	by       *shardNamer    // the worker that joined it: frames refer to its functions
	frames   []ingest.Frame // of each location together, innermost first
	warnings []ingest.Warning
}

// shards cuts the objects into pieces, in the order of locations.
func (j *join) shards() []*shard {
	var list []*shard
	for i := range j.objects {
		o := &j.objects[i]
		for from := o.from; from < o.to; from += shardSize {
			list = append(list, &shard{object: o, from: from, to: min(from+shardSize, o.to)})
		}
	}
	return list
}

// shardNamer holds the functions that one goroutine has met, and its buffers.
type shardNamer struct {
	base  uint32 // number of its first function among all
	funcs []ingest.Function

	object *object         // of finder and index
	home   ingest.ObjectID // of its functions
	symbol string          // the name of its one function, if the capture has it
	finder *Finder
	index  map[funcKey]uint32 // in funcs

	todo  []todo
	addrs []addr.Addr
}

// funcKey is the identity of a function of one object, in texts of its finder.
type funcKey struct {
	name, file Text
	line       uint32
}

// todo is a location that has no name yet.
type todo struct {
	addr addr.Addr
	loc  uint32
}

// join names the locations of one shard.
func (w *shardNamer) join(j *join, s *shard) {
	s.by = w
	src := &j.p.Objects[s.object.id]
	if src.Symbol != "" && s.object.manifest == nil {
		w.nameAll(j, s, src)
		return
	}
	w.gather(j, s)
	if len(w.todo) == 0 {
		return
	}
	if w.object != s.object {
		w.object, w.finder = s.object, NewFinder(j.view, s.object.manifest)
		w.symbol, w.home = s.object.symbolOf(src), j.p.Home(s.object.id)
		clear(w.index)
	}
	w.addrs = w.addrs[:0]
	for _, t := range w.todo {
		w.addrs = append(w.addrs, t.addr)
	}
	w.finder.Join(w.addrs)
	reason := ingest.Stripped
	for _, err := range w.finder.Errors() {
		reason = ingest.TableDamaged
		s.warnings = append(s.warnings, damageWarning("%s: %v", ingest.ShortName(src), err))
	}
	w.conflict(j, s)
	s.frames = make([]ingest.Frame, 0, len(w.todo))
	for i, t := range w.todo {
		named := w.name(j, s, i, t)
		if !named && src.Symbol != "" { // the table has nothing: the name is the object's
			named = true
			j.depth[t.loc], j.first[t.loc] = 1, uint32(len(s.frames))
			j.symOff[t.loc] = uint64(t.addr)
			s.frames = append(s.frames, w.frame(&Frame{}, 0, false))
		}
		switch {
		case !named:
			j.reasons[t.loc] = reason
		case s.object.noImage:
			j.reasons[t.loc] = ingest.ImageNotCaptured
		}
	}
}

// name adds the frames that were found for a location. It reports false if its
// physical function has no name.
func (w *shardNamer) name(j *join, s *shard, i int, t todo) bool {
	f := w.finder
	p := f.Place(i)
	name, start := f.Function(p, j.opts.Names)
	if name == 0 {
		return false
	}
	j.symOff[t.loc] = uint64(t.addr - start)
	j.first[t.loc] = uint32(len(s.frames))
	frames := f.Frames(p)
	last := len(frames) - 1
	entry := j.p.Objects[s.object.id].Entry
	if (j.opts.NoInlines || entry) && last > 0 {
		frames = frames[last:]
		last = 0
	}
	for k := range max(last, 0) {
		if fr := &frames[k]; fr.Name != 0 {
			s.frames = append(s.frames, w.frame(fr, fr.Name, true))
		}
	}
	physical := &Frame{}
	if last >= 0 {
		physical = &frames[last]
	}
	if entry { // a function that was called somewhere in it
		physical = &Frame{Name: physical.Name, DeclFile: physical.DeclFile, DeclLine: physical.DeclLine}
	}
	s.frames = append(s.frames, w.frame(physical, name, false))
	j.depth[t.loc] = uint16(uint32(len(s.frames)) - j.first[t.loc])
	if p.SymbolKind.Nameless() && last < 0 {
		j.reasons[t.loc] = ingest.Stripped // a function, and no name for it
	}
	return true
}

// frame makes a frame, and its function if it is new. pprof has one file for a function, and
// assumes that all lines are in it: code from another file, for example from an #include inside the
// function, becomes a function of that file with an unknown start.
func (w *shardNamer) frame(fr *Frame, name Text, inlined bool) ingest.Frame {
	key := funcKey{name: name, file: fr.File, line: fr.DeclLine}
	if fr.File == 0 {
		key.file = fr.DeclFile
	} else if fr.File != fr.DeclFile {
		key.line = 0
	}
	n, ok := w.index[key]
	if !ok {
		n = uint32(len(w.funcs))
		w.index[key] = n
		fn := ingest.Function{
			Object: w.home, SystemName: cmp.Or(w.symbol, wholeFunction(w.finder.Text(name))),
			File:      w.finder.Text(key.file),
			StartLine: clampLine(key.line),
		}
		if d := &w.object.declared; key.file == 0 && d.File != "" {
			fn.File, fn.StartLine = d.File, clampLine(d.Line)
		}
		w.funcs = append(w.funcs, fn)
	}
	return ingest.Frame{
		Func: ingest.FuncID(n), Line: clampLine(fr.Line), Column: clampLine(fr.Column),
		Inlined: inlined,
	}
}

// partInfix and a number end the symbol of a part of a function that LLVM laid out by basic blocks,
// as for Propeller (getSymbol in lib/CodeGen/MachineBasicBlock.cpp).
const partInfix = ".__part."

// wholeFunction returns the name of the function of which a symbol names a part of the hot code:
// "f" of "f.__part.2". All parts add up to the function. Its cold part, "f.cold", has its own name,
// as those of other compilers have.
func wholeFunction(symbol string) string {
	at := strings.LastIndex(symbol, partInfix)
	if at <= 0 {
		return symbol
	}
	number := symbol[at+len(partInfix):]
	if number == "" || strings.Trim(number, "0123456789") != "" {
		return symbol
	}
	return symbol[:at]
}

func clampLine(n uint32) int32 { return int32(min(n, math.MaxInt32)) }

// nameAll names all locations as the capture itself names the whole object.
func (w *shardNamer) nameAll(j *join, s *shard, src *ingest.Object) {
	for l := s.from; l < s.to; l++ {
		if j.kept(l) {
			continue
		}
		if s.frames == nil {
			s.frames = []ingest.Frame{{Func: ingest.FuncID(len(w.funcs))}}
			d := &s.object.declared
			w.funcs = append(w.funcs, ingest.Function{Object: s.object.id,
				SystemName: s.object.symbolOf(src), File: d.File, StartLine: clampLine(d.Line)})
		}
		j.depth[l] = 1
		j.symOff[l] = uint64(j.p.Locations[l].Offset)
		if s.object.noImage {
			j.reasons[l] = ingest.ImageNotCaptured
		}
	}
}

// kept reports whether a location has a name from before, with nothing missing.
func (j *join) kept(l int) bool {
	return j.old != nil && j.old.Named(ingest.LocationID(l)) &&
		j.old.Reasons[l] == ingest.ReasonNone
}

// gather lists the locations of a shard that the tables shall name, by table address, and sets
// the reason of all others.
func (w *shardNamer) gather(j *join, s *shard) {
	w.todo = w.todo[:0]
	o := s.object
	sorted := true
	for l := s.from; l < s.to; l++ {
		if j.kept(l) {
			continue
		}
		if o.reason != ingest.ReasonNone {
			j.reasons[l] = o.reason
			continue
		}
		at, ok := o.addrs.Of(j.p.Locations[l].Offset)
		if !ok {
			j.reasons[l] = o.addrs.Reason()
			continue
		}
		n := len(w.todo)
		sorted = sorted && (n == 0 || w.todo[n-1].addr <= at)
		w.todo = append(w.todo, todo{addr: at, loc: uint32(l)})
	}
	if !sorted {
		slices.SortFunc(w.todo, func(a, b todo) int {
			return cmp.Or(cmp.Compare(a.addr, b.addr), cmp.Compare(a.loc, b.loc))
		})
	}
}
