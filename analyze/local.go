package analyze

import (
	"context"
	"fmt"
	"slices"

	"symbolize/analyze/resolve"
	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/input"
	"symbolize/ingest/sideband"
	"symbolize/ingest/texts"
	"symbolize/store"
	"symbolize/store/indexer"
	"symbolize/store/local"
)

// localOptions are Options.Local with the rest of the session's options.
func (s *Session) localOptions() local.Options {
	o := *s.opts.Local
	o.Fits = resolve.Fits
	o.Index = indexer.Options{Workers: s.opts.Workers, MaxMemory: s.opts.MaxMemory,
		Columns: s.opts.Columns, NoUnwind: true, // see localUnwind
		NamesOnly: s.opts.Unnamed}
	o.NoKernel = s.opts.Unnamed
	return o
}

// Search is the View of a session for requests without a capture: for a requested build ID it
// fetches the parts in Options.Remote, and with Options.Local looks for the file on this host.
type Search struct {
	store.View
	session *Session
}

// Search returns the View that looks for what it is asked.
func (s *Session) Search(ctx context.Context) Search {
	view := s.view
	if s.opts.Remote != nil {
		view = &needing{View: view, ctx: ctx, session: s}
	}
	if s.finder != nil {
		view = s.finder.Searching(ctx, view, func(err error) { s.warnError(err, "", false) })
	}
	return Search{View: view, session: s}
}

// findLocal indexes the objects of a capture that are to be found by Options.Local: of each the
// functions at its locations, or all if a capture before had other ones.
func (s *Session) findLocal(ctx context.Context, seen *input.Seen) error {
	if s.finder == nil {
		return nil
	}
	s.finder.Find(seen.Objects, s.view, s.isHere(seen.Host))
	for i := range seen.Objects {
		if o := &seen.Objects[i]; s.wanted.add(o, seen.Offsets[i]) {
			s.finder.Again(o.ID)
		}
	}
	if err := s.finder.KernelErr(); err != nil && !s.warned[err.Error()] {
		s.warned[err.Error()] = true
		s.warnError(fmt.Errorf("the kernel is the one that runs here, and its symbols are hidden: %w",
			err), "run it as root, or allow it with: sysctl kernel.kptr_restrict=0", false)
	}
	sum, err := s.finder.Index(ctx, s.wantedAddrs)
	if err != nil {
		return err
	}
	for _, p := range sum.Problems { // the rest has its names: the result is complete
		s.warnError(p, p.Hint, false)
	}
	return nil
}

// seenIn are the objects and locations of a profile.
func seenIn(p *ingest.Profile) *input.Seen {
	seen := &input.Seen{Host: p.Meta.Host, Objects: p.Objects,
		Offsets: make([][]addr.Offset, len(p.Objects))}
	for _, l := range p.Locations {
		seen.Offsets[l.Object] = append(seen.Offsets[l.Object], l.Offset)
	}
	return seen
}

// wantedObjects are the objects that are indexed for this run.
type wantedObjects map[buildid.Key]*wanted

// wanted are the locations of an object that is indexed for this run.
type wanted struct {
	object  ingest.Object
	offsets []addr.Offset // ascending
	all     bool          // a second capture has had others
}

// add adds the locations of an object in samples of a capture, and reports whether they differ from
// those of a capture before.
func (l wantedObjects) add(o *ingest.Object, offsets []addr.Offset) (differ bool) {
	if o.ID.IsZero() {
		return false
	}
	offsets = slices.Clone(offsets)
	slices.Sort(offsets)
	offsets = slices.Compact(offsets)
	switch w := l[o.ID.Key()]; {
	case w == nil:
		l[o.ID.Key()] = &wanted{object: *o, offsets: offsets}
	case !w.all && (w.object.ID != o.ID || !containsAll(w.offsets, offsets)):
		w.all = true
		return true
	}
	return false
}

// containsAll reports whether a list, ascending, has all elements of another.
func containsAll(have, want []addr.Offset) bool {
	return !slices.ContainsFunc(want, func(off addr.Offset) bool {
		_, ok := slices.BinarySearch(have, off)
		return !ok
	})
}

// addrs is indexer.Options.Only, with the view of the session. The layout of an object of which only the debug file was
// found is the manifest of the store, or of the file that was indexed before.
func (l wantedObjects) addrs(m *store.Manifest, view store.View) (list []addr.Addr, all bool) {
	w := l[m.ID.Key()]
	if w == nil { // as of a module that is loaded
		return nil, false
	}
	if w.all {
		return nil, true
	}
	layout := m.Layout
	if len(layout) == 0 {
		if known, _, _ := store.FindCode(view, m.ID); known != nil {
			layout = known.Layout
		}
	}
	rule, reason := resolve.NewFileAddresses(&w.object, m, layout)
	if reason != ingest.ReasonNone {
		return nil, true
	}
	list = make([]addr.Addr, 0, len(w.offsets))
	for _, off := range w.offsets {
		if at, ok := rule.Of(off); ok {
			list = append(list, at)
		}
	}
	slices.Sort(list)
	return list, false
}

// extend adds locations to those of an object that is not indexed as a whole, and reports whether it
// lacked some.
func (l wantedObjects) extend(o *ingest.Object, offsets []addr.Offset) bool {
	w := l[o.ID.Key()]
	if o.ID.IsZero() || w == nil || w.all || containsAll(w.offsets, offsets) {
		return false
	}
	w.offsets = append(slices.Clone(w.offsets), offsets...)
	slices.Sort(w.offsets)
	w.offsets = slices.Compact(w.offsets)
	return true
}

// wantedAddrs is indexer.Options.Only.
func (s *Session) wantedAddrs(m *store.Manifest) (list []addr.Addr, all bool) {
	return s.wanted.addrs(m, s.view)
}

// isHere reports whether a recording comes from this host.
func (s *Session) isHere(host string) bool { return host != "" && host == s.hostname() }

// clocks is input.Options.Now.
func (s *Session) clocks(k sideband.RecordedKernel) (now bundle.Clocks, ok bool) {
	if s.opts.Clocks == nil || !s.isHere(k.Host) {
		return now, false
	}
	if s.running == nil {
		s.running = indexer.OpenRunning()
	}
	if !s.running.SameBoot(k) {
		return now, false
	}
	now, err := s.opts.Clocks()
	return now, err == nil
}

// warnRewritten adds a warning about the files that were written to while they were recorded.
func (s *Session) warnRewritten(p *ingest.Profile) {
	paths := s.rewritten
	s.rewritten = nil
	slices.Sort(paths)
	var inside ingest.FrameSum
	innermost, all := p.WeighInnermost(false)
	for l, sum := range innermost {
		o := &p.Objects[p.Locations[l].Object]
		if _, ok := slices.BinarySearch(paths, o.File.Path); ok && o.IDSource == ingest.IDByPath {
			inside.Add(sum)
		}
	}
	if paths = slices.Compact(paths); len(paths) == 0 || inside.Frames == 0 {
		return
	}
	what := texts.Printable(paths[0]) + " was"
	if len(paths) > 1 {
		what = fmt.Sprintf("%s and %d more files were", texts.Printable(paths[0]), len(paths)-1)
	}
	p.Stats.Warnings = append(p.Stats.Warnings, ingest.Warning{
		Text: fmt.Sprintf("%s written to during the recording: %.2f%% of the samples end in the file, "+
			"and those before that have the names of the new content", what,
			100*float64(inside.Weight)/float64(max(all.Weight, 1))),
		Hint:   "perf record --buildid-mmap notes the build ID of each mapping",
		Result: true})
}

// identify is resolve.Identify, which uses the files now at recorded paths where the
// store proves nothing.
func (s *Session) identify() identification {
	opts := resolve.IdentifyOptions{TrustPaths: s.opts.TrustPaths, Hostname: s.hostname(),
		Rewritten: func(path string) { s.rewritten = append(s.rewritten, path) },
		Newer: func(path string) {
			s.warn(Warning{Warning: ingest.Warning{
				Text: path + " changed after the recording: its names come from another build, unless it " +
					"was only copied",
				Hint: "record with --buildid-mmap, or index the file that ran"}})
		}}
	known := s.pulling.findVDSO(resolve.Identify(s.plain, opts))
	if s.trace != nil {
		return s.trace.noteFiles(known)
	}
	if s.finder != nil {
		known = s.identifyHere(known, opts)
	}
	return s.named.identify(known)
}

// identifyHere adds the files of this host to an identification.
func (s *Session) identifyHere(known identification, opts resolve.IdentifyOptions) identification {
	now := resolve.Identify(s.finder.Rows(), opts)
	return func(q sideband.ObjectQuery) (buildid.ID, ingest.IDSource) {
		id, source := known(q)
		switch {
		case source == ingest.IDProven:
			return id, source
		case q.Kind == ingest.VDSO && source == ingest.IDNone:
			s.finder.AddVDSO(context.Background(), q.Kernel) // without it there is no ID
			return known(q)
		case q.Kind == ingest.Kernel && source == ingest.IDNone && s.isHere(q.Host):
			rec := indexer.Recorded{Release: q.Release, Symbol: q.Symbol, Address: q.Address}
			if q.EndKnown {
				rec.End = q.EndNanos
			}
			id = s.finder.Kernel(rec)
			if !id.IsZero() {
				source = ingest.IDProven
			}
			return id, source
		case q.Kind != ingest.ELF:
			return id, source
		}
		s.finder.AddRow(&q.File, opts.TrustPaths || s.isHere(q.Host))
		live, proof := now(q)
		refuted := live.IsZero() && !q.ByPath.IsZero()
		if proof == ingest.IDProven || source == ingest.IDNone || refuted {
			return live, proof
		}
		return id, source
	}
}
