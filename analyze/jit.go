package analyze

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"symbolize/analyze/resolve"
	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/format/jitdump"
	"symbolize/ingest/input"
	"symbolize/ingest/object/symlist"
	"symbolize/ingest/sideband"
	"symbolize/ingest/texts"
	"symbolize/store"
	"symbolize/store/indexer"
	"symbolize/store/local"
)

// jitFinder finds the code that the processes of one capture compiled at run time.
type jitFinder struct {
	ctx     context.Context
	opts    *Options
	view    store.View
	overlay *store.Overlay         // gets the names
	isHere  func(host string) bool // reports whether a host is this one
	capture string
	objects map[string]bool // paths at which an object file is known
	links   *[]JITLink      // gets the files in use
	code    sideband.JITCode
}

// jit is input.Options.JIT for a capture.
func (x *jitFinder) jit(q *sideband.JITQuery) sideband.JITCode {
	x.code = sideband.JITCode{}
	if x.ctx.Err() != nil {
		return x.code
	}
	q.Files = x.withoutNames(q)
	if !q.Compiles() && len(q.Files) == 0 {
		return x.code
	}
	x.look(&local.JITPlaces{Dirs: x.opts.PerfMaps}, q)
	x.bundled(q)
	if l := x.opts.Local; l != nil && l.Host {
		places := local.JITPlaces{Here: x.isHere(q.Host)}
		if x.capture != input.StandardInput {
			places.Dirs = []string{filepath.Dir(x.capture)}
		}
		x.look(&places, q)
	}
	if x.code.Map.IsZero() {
		x.stored(ingest.PerfMap, q)
	}
	if x.code.Dump.IsZero() && q.Dump != "" {
		x.stored(ingest.JITDump, q)
	}
	return x.code
}

// withoutNames returns the mapped files of a process that name nothing themselves: no object file is
// known at their paths.
func (x *jitFinder) withoutNames(q *sideband.JITQuery) (list []sideband.MappedFile) {
	for _, f := range q.Files {
		path := f.File.Path
		named, ok := x.objects[path]
		if !ok {
			named = !f.File.Deleted && x.isObject(path, x.isHere(q.Host))
			x.objects[path] = named
		}
		if !named {
			list = append(list, f)
		}
	}
	return list
}

// isObject reports whether the store or, if it is the recording's, this host has an object file at a
// recorded path.
func (x *jitFinder) isObject(path string, here bool) bool {
	if !resolve.PathID(x.view, path).IsZero() {
		return true
	}
	l := x.opts.Local
	if l == nil {
		return false
	}
	var places []string
	for _, root := range l.Roots {
		places = append(places, filepath.Join(root, path))
	}
	if l.Host && here {
		places = append(places, path)
	}
	return slices.ContainsFunc(places, func(place string) bool {
		_, err := indexer.FileRow(place, false)
		return err == nil
	})
}

// look reads the needed files in places.
func (x *jitFinder) look(places *local.JITPlaces, q *sideband.JITQuery) {
	if x.code.Map.IsZero() {
		if f := places.PerfMap(q); f != nil {
			x.perfMap(f, q)
			f.Close()
		}
	}
	if x.code.Dump.IsZero() {
		if f := places.Dump(q); f != nil {
			x.dump(f, q)
			f.Close() // its index is in memory
		}
	}
}

// bundled reads the needed files in bundles.
func (x *jitFinder) bundled(q *sideband.JITQuery) {
	for i := range q.PerfMaps {
		f := &q.PerfMaps[i]
		if !x.code.Map.IsZero() || x.refusedBundled(f, q) {
			continue
		}
		x.addMap(local.Bundled(f, q), q, true)
		if !x.code.Map.IsZero() {
			f.Use()
		}
	}
	for i := range q.Dumps {
		f := &q.Dumps[i]
		if !x.code.Dump.IsZero() || x.refusedBundled(f, q) {
			continue
		}
		x.addDump(local.Bundled(f, q), q)
		if !x.code.Dump.IsZero() {
			f.Use()
		}
	}
}

// refusedBundled reports whether a file in a bundle is not the process's, and warns of it.
func (x *jitFinder) refusedBundled(f *sideband.BundledFile, q *sideband.JITQuery) bool {
	why := local.RefuseBundled(f, q)
	if why != "" {
		x.warn(f.Name, q, false, "", "not used: %s", why)
	}
	return why != ""
}

// warn adds a warning about a file of a process.
func (x *jitFinder) warn(path string, q *sideband.JITQuery, partial bool, hint, format string, args ...any) {
	x.code.Warnings = append(x.code.Warnings, ingest.Warning{Partial: partial, Hint: hint, Result: true,
		Text: fmt.Sprintf("%s, for process %d: ", path, q.PID) + fmt.Sprintf(format, args...)})
}

// refused warns about a file that is not the process's, unless nothing else says that it compiles.
func (x *jitFinder) refused(path, why string, q *sideband.JITQuery) {
	if !q.Compiles() {
		return
	}
	x.warn(path, q, false, fmt.Sprintf("if it is the right one all the same: touch %s",
		texts.ShellWord(path)), "not used: %s", why)
}

// perfMap adds the names of a perf map.
func (x *jitFinder) perfMap(f *local.JITFile, q *sideband.JITQuery) {
	if why := f.Refuse(q); why != "" {
		x.refused(f.Path, why, q)
		return
	}
	x.addMap(&f.JITFile, q, false)
	if !x.code.Map.IsZero() {
		*x.links = append(*x.links, JITLink{f.Path, q.Process(), q.PID, q.Host})
	}
}

// addMap adds the names of a perf map that may be of the process. timed: its time was compared with
// the start of the process.
func (x *jitFinder) addMap(f *indexer.JITFile, q *sideband.JITQuery, timed bool) {
	id, m, err := indexer.AddPerfMap(x.ctx, x.overlay, f)
	if err != nil {
		x.warn(f.Path, q, true, "", "%v", err)
	}
	if id.IsZero() || x.ctx.Err() != nil {
		return
	}
	doubt := ""
	if !timed {
		doubt = local.DoubtTime(f, q)
	}
	x.acceptMap(f.Path, id, m, doubt, q)
}

// acceptMap accepts a perf map that may be of the process, with the doubt if any.
func (x *jitFinder) acceptMap(path string, id buildid.ID, m *symlist.PerfMap, doubt string,
	q *sideband.JITQuery) {
	if why := local.RefuseMap(m, q); why != "" {
		if q.Compiles() {
			x.warn(path, q, false, "", "not used: %s", why)
		}
		return
	}
	if doubt != "" {
		x.warn(path, q, false, "", "used, but %s", doubt)
	}
	if m.Bad > 0 {
		x.warn(path, q, false, "", "%d of %d lines are left out, the first: %v", m.Bad, m.Lines, m.FirstBad)
	}
	x.code.Map = id
	x.code.Reused = reusedRanges(m)
	var files []addr.Range
	for i := range q.Files {
		files = append(files, q.Files[i].Range)
	}
	x.code.InFiles = joined(local.InRanges(m, files))
}

// dump adds the functions of a jitdump file.
func (x *jitFinder) dump(f *local.JITFile, q *sideband.JITQuery) {
	if why := f.Refuse(q); why != "" {
		x.refused(f.Path, why, q)
		return
	}
	x.addDump(&f.JITFile, q)
	if !x.code.Dump.IsZero() {
		*x.links = append(*x.links, JITLink{f.Path, q.Process(), q.PID, q.Host})
	}
}

// addDump adds the functions of a jitdump file that may be of the process.
func (x *jitFinder) addDump(f *indexer.JITFile, q *sideband.JITQuery) {
	id, d, err := indexer.AddJITDump(x.ctx, x.overlay, f)
	if err != nil {
		x.warn(f.Path, q, true, "", "%v", err)
	}
	if id.IsZero() || x.ctx.Err() != nil {
		return
	}
	x.acceptDump(f.Path, id, d, q)
}

// acceptDump accepts a jitdump file that may be of the process.
func (x *jitFinder) acceptDump(path string, id buildid.ID, d *jitdump.File, q *sideband.JITQuery) {
	if why := local.RefuseDump(d, q); why != "" && len(q.Memory) > 0 {
		x.warn(path, q, false, "", "not used: %s", why)
		return
	}
	if d.Bad > 0 {
		x.warn(path, q, true, "", "%d records are left out, the first: %v", d.Bad, d.FirstBad)
	}
	if d.BadLines > 0 {
		x.warn(path, q, false, "", "the lines of %d functions are left out, the first: %v", d.BadLines,
			d.FirstBadLines)
	}
	if d.BadRules > 0 {
		x.warn(path, q, false, "", "the unwinding information of %d functions is left out, the first: %v",
			d.BadRules, d.FirstBadRules)
	}
	x.code.Dump, x.code.File = id, d
}

// stored adds the lists that the store has for a process: by its identity, else by its number.
func (x *jitFinder) stored(kind ingest.ObjectKind, q *sideband.JITQuery) {
	m, proven := x.candidates(kind, q.Process(), q), true
	if m == nil {
		m, proven = x.candidates(kind, buildid.ID{}, q), false
	}
	if m == nil {
		return
	}
	f, err := indexer.StoredJITFile(m, x.view.Blob)
	if err != nil {
		x.code.Warnings = append(x.code.Warnings, ingest.Warning{Text: err.Error(), Partial: true})
		return
	}
	path := fmt.Sprintf("%s (in the store)", f.Path)
	if kind == ingest.JITDump {
		d, err := jitdump.Open(f.Path, f.R, f.Size)
		if d == nil {
			x.warn(path, q, true, "", "%v", err)
			return
		}
		x.acceptDump(path, m.ID, d, q)
		return
	}
	pm, err := readStoredMap(f)
	if err != nil {
		x.warn(path, q, true, "", "%v", err)
	}
	x.acceptMap(path, m.ID, pm, local.DoubtTime(f, q), q)
	if !proven && !x.code.Map.IsZero() {
		x.warn(path, q, false, "index --for CAPTURE keeps maps with their processes",
			"used because of the process's number and its addresses alone")
	}
}

// candidates returns the object that the store has under an alias: of several the first that was
// written when the recording had ended, else the one written last.
func (x *jitFinder) candidates(kind ingest.ObjectKind, process buildid.ID,
	q *sideband.JITQuery) (best *store.Manifest) {
	alias, _, err := store.FindOne(x.view, indexer.JITAlias(kind, process, q.PID))
	if err != nil || alias == nil {
		return nil
	}
	var at int64
	for _, id := range alias.Probable {
		m, _, err := store.FindOne(x.view, id)
		if err != nil || m == nil || len(m.Variants) == 0 {
			continue
		}
		v := &m.Variants[0]
		f := indexer.JITFile{Written: int64(v.Load)}
		if local.RefuseTime(&f, q) != "" || v.BootID != "" && v.BootID != q.Host {
			continue
		}
		late, bestLate := f.Written >= q.EndNanos, at >= q.EndNanos
		if best == nil || late && (!bestLate || f.Written < at) || !late && !bestLate && f.Written > at {
			best, at = m, f.Written
		}
	}
	return best
}

// readStoredMap reads a kept perf map.
func readStoredMap(f *indexer.JITFile) (*symlist.PerfMap, error) {
	return symlist.ReadPerfMap(f.Path, io.NewSectionReader(f.R, 0, f.Size))
}

// JITLink is a file of code that a process compiled at run time, and that process.
type JITLink struct {
	Path    string
	Process buildid.ID // sideband.ProcessIdentity; zero if it is not known
	PID     int32
	Host    string
}

// reusedRanges returns the addresses at which a perf map has several functions, ascending.
func reusedRanges(m *symlist.PerfMap) (list []addr.Range) {
	for i := range m.Symbols {
		if m.Symbols[i].Reused {
			list = append(list, m.Symbols[i].Range)
		}
	}
	return list
}

// joined returns ranges in ascending order, those that touch as one.
func joined(ranges []addr.Range) (list []addr.Range) {
	slices.SortFunc(ranges, func(a, b addr.Range) int { return cmp.Compare(a.Start, b.Start) })
	for _, r := range ranges {
		if n := len(list); n > 0 && r.Start <= list[n-1].End {
			list[n-1].End = max(list[n-1].End, r.End)
			continue
		}
		list = append(list, r)
	}
	return list
}

// warnReused adds a warning about addresses that had several functions of a run-time compiler.
func warnReused(p *ingest.Profile) {
	if !slices.ContainsFunc(p.Objects, func(o ingest.Object) bool {
		return o.File.Path == ingest.AmbiguousJITPath
	}) {
		return
	}
	frames := uint64(0)
	for l, sum := range p.WeighFrames(true) {
		if o := &p.Objects[p.Locations[l].Object]; o.File.Path == ingest.AmbiguousJITPath {
			frames += sum.Frames
		}
	}
	if frames > 0 {
		p.Stats.Warnings = append(p.Stats.Warnings, ingest.Warning{
			Text: fmt.Sprintf("%d frames lie where a run-time compiler had several functions, one after "+
				"another, at times that are not known: they are %s", frames, ingest.AmbiguousJITPath),
			Hint:   "a jitdump file has times: node --perf-prof, during perf record -k mono",
			Result: true})
	}
}
