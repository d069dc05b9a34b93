package analyze

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"symbolize/analyze/unwind"
	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/input"
	"symbolize/ingest/sideband"
	"symbolize/ingest/texts"
	"symbolize/store"
	"symbolize/store/bpfprog"
	"symbolize/store/db"
	"symbolize/store/indexer"
	"symbolize/store/local"
)

// Session is the sources of names of one run: the newest generation of a store, if there is
// one, behind an overlay in memory with the symbols of Options.With.
type Session struct {
	kernelLists map[string]*sideband.KernelList // of Options.Kallsyms, that were read
	opts        Options
	overlay     *store.Overlay
	reader      *db.Reader // nil without a store
	stored      store.View // the store, and tables of Options.Remote that are in memory
	plain       store.View // stored behind overlay
	view        store.View
	trace       *Trace            // of view and unwinding; nil without Options.Undecided
	counted     *store.Counted    // the last layer of view
	bundles     []*input.Capture  // that serve captures, open as long as the session
	cached      *store.CachedView // of reader
	finder      *local.Finder     // nil without Options.Local
	pulling     pulling
	running     *indexer.Running // nil until it is needed
	wanted      wantedObjects    // by Local
	warned      map[string]bool  // warnings of the store that were passed on
	partial     bool
	readErr     error // see ReadError
	// rewritten has the paths of files of the capture that is being read, see warnRewritten.
	rewritten []string
	named     *namedObjects              // of Options.With
	origins   map[buildid.ID]local.Place // of the finder's objects
	placed    int                        // of these, how many are in origins
	tables    *unwind.Tables             // nil until they are needed

	jitFiles []JITLink

	unwindMu   sync.Mutex
	unwindErrs []error // of tables that could not be read, not yet passed on
}

// Open opens the store for reading and indexes Options.With, BCC and Bundles in memory.
func Open(ctx context.Context, opts Options) (*Session, error) {
	s := &Session{opts: opts, overlay: store.NewOverlay(), warned: make(map[string]bool),
		wanted: make(wantedObjects)}
	s.pulling.opts = &s.opts
	if opts.Store != "" {
		if err := s.openStore(ctx); err != nil {
			return nil, err
		}
	}
	s.layer()
	captures, paths := SplitCaptures(opts.With)
	err := s.Index(ctx, paths, indexer.Options{})
	if err == nil {
		err = s.addBCC(ctx)
	}
	s.named = newNamedObjects(s.overlay, paths)
	if err == nil {
		err = s.addCaptures(ctx, slices.Concat(opts.Bundles, captures))
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// layer makes the views of the session.
func (s *Session) layer() {
	var stored []store.View
	if s.opts.Remote != nil {
		stored = append(stored, s.pulling.start(s.reader, s.cached))
	}
	if s.reader != nil {
		stored = append(stored, s.cached)
	}
	s.stored = store.Layer(stored...)
	s.plain = store.Layer(s.overlay, s.stored)
	s.view = s.plain
	if s.opts.Local != nil {
		s.finder = local.New(s.overlay, s.localOptions())
		s.view = store.Layer(s.view, s.finder.Rows())
	}
	if s.opts.Undecided {
		s.view, s.trace = s.Trace()
	}
	s.counted = store.NewCounted(s.view)
	s.view = s.counted
	if s.trace == nil {
		s.plain = s.view
	}
	s.pulling.plain = s.plain
}

// openStore opens the store, if there is one.
func (s *Session) openStore(ctx context.Context) error {
	if s.sharesStore() {
		s.reader, s.cached = s.opts.Shared.reader, s.opts.Shared.cached
		return nil
	}
	reader, err := db.OpenReader(s.opts.Store)
	if errors.Is(err, store.ErrNoStore) && s.opts.Remote != nil {
		reader, err = s.makeStore(ctx, err)
	}
	o := &s.opts
	switch {
	case err == nil:
		s.reader, s.cached = reader, store.Cached(reader)
		s.storeWarnings()
	case !errors.Is(err, store.ErrNoStore):
		return err
	case len(o.With)+len(o.Bundles)+len(o.BCC) == 0 && o.Local == nil && o.Remote == nil:
		s.warnError(err, "", false)
	}
	return nil
}

// sharesStore reports whether the store belongs to another session.
func (s *Session) sharesStore() bool { return s.opts.Shared != nil && s.opts.Remote == nil }

// storeWarnings passes on the store's warnings since it was opened: damage that it got around.
func (s *Session) storeWarnings() {
	for _, text := range s.reader.Warnings() {
		if !s.warned[text] {
			s.warned[text] = true
			s.warn(Warning{Warning: ingest.Warning{Text: "store: " + text,
				Hint: "`symbolize store verify` checks all of it"}})
		}
	}
}

// ReadError returns the first error of reading captures and their bundles that this machine caused,
// not the files: what was read of them must not be kept.
func (s *Session) ReadError() error { return s.readErr }

// Close closes the store and the bundles.
func (s *Session) Close() error {
	var errs []error
	for _, c := range s.bundles {
		errs = append(errs, c.Close())
	}
	if s.reader != nil && !s.sharesStore() {
		if s.opts.MarkUses {
			if err := s.reader.MarkUsed(); err != nil {
				s.warnError(err, MarkHint, false)
			}
		}
		errs = append(errs, s.reader.Close())
		s.storeWarnings()
	}
	return errors.Join(errs...)
}

// MarkHint is the hint for an error of db.Reader.MarkUsed.
const MarkHint = "`symbolize store gc --keep` takes the objects for unused today"

// View returns the symbols and programs that the session knows.
func (s *Session) View() store.View { return s.view }

// sink is where indexing for the session puts its tables.
func (s *Session) sink() (store.Sink, error) { return s.overlay, nil }

// Index adds the symbols of files and directories to the session, with the session's limits and
// columns.
func (s *Session) Index(ctx context.Context, paths []string, opts indexer.Options) error {
	if len(paths) == 0 {
		return nil
	}
	opts.Workers, opts.MaxMemory, opts.Columns = s.opts.Workers, s.opts.MaxMemory, s.opts.Columns
	opts.NamesOnly = s.opts.Unnamed
	sum, err := indexer.Index(ctx, paths, nil, s.sink, opts)
	if err != nil {
		return err
	}
	for _, p := range sum.Problems {
		if p.Named && !p.Kept {
			return texts.WithHint(p, "%s", p.Hint)
		}
	}
	s.problems(sum.Problems)
	if sum.Objects == 0 {
		s.warn(Warning{Warning: ingest.Warning{Text: "no object in " + strings.Join(paths, ", "),
			Hint: "symbols come from ELF files and kallsyms texts"}})
	}
	return nil
}

// addBCC adds the BPF programs with sources left by bcc.
func (s *Session) addBCC(ctx context.Context) error {
	for _, dir := range s.opts.BCC {
		stats, err := bpfprog.AddBCC(ctx, s.overlay, dir)
		if err != nil {
			return err
		}
		for _, w := range BCCWarnings(dir, stats) {
			s.warn(w)
		}
	}
	return nil
}

// BCCWarnings returns the warnings about a directory of bcc's programs.
func BCCWarnings(dir string, stats *bpfprog.BCCStats) (list []Warning) {
	for _, err := range stats.Problems {
		list = append(list, Warning{ingest.Warning{Text: err.Error()}, err})
	}
	if stats.Programs == 0 {
		list = append(list, Warning{Warning: ingest.Warning{Text: "no BPF program in " + dir,
			Hint: "programs that use bcc's C++ interface leave theirs in " +
				"/var/tmp/bcc/bpf_prog_TAG, on kernels before 6.18, whose tags bcc can compute"}})
	}
	return list
}

// addCaptures adds the contents of captures: BPF programs, and from bundles the kernel, its
// modules and vdso. Bundles stay open, because captures read more of them.
func (s *Session) addCaptures(ctx context.Context, paths []string) error {
	for _, path := range paths {
		c, err := s.opts.Inputs.Take(ctx, path)
		if err != nil {
			return err
		}
		kept := c.Bundle() != nil
		if kept {
			s.bundles = append(s.bundles, c)
		}
		err = s.addPrograms(ctx, c)
		if _, damage := c.Programs(); err == nil && damage != nil &&
			!slices.Contains(s.opts.Bundles, path) { // else it is in the warnings of a profile
			s.warnError(damage, "", true)
		}
		if !kept {
			err = errors.Join(err, c.Close())
		}
		if err != nil {
			return err
		}
	}
	hosts, problems := indexer.HostsOf(s.bundles)
	if len(hosts) == 0 {
		return nil
	}
	sum, err := indexer.Index(ctx, nil, nil, s.sink, indexer.Options{Workers: s.opts.Workers,
		MaxMemory: s.opts.MaxMemory, Hosts: hosts, Columns: s.opts.Columns})
	if err != nil {
		return err
	}
	s.problems(append(problems, sum.Problems...))
	return nil
}

// addPrograms adds the BPF programs of a capture, so that its own images name it whatever the
// store has. Damage among them is in the warnings of its profile.
func (s *Session) addPrograms(ctx context.Context, c *input.Capture) error {
	programs, _ := c.Programs()
	if len(programs) == 0 {
		return nil
	}
	info := bpfprog.CaptureInfoOf(c.Path(), c)
	if s.opts.Keep.Accesses() {
		info.Maps = bpfprog.MapsOf(c)
	}
	_, err := bpfprog.Add(ctx, s.overlay, info, programs)
	return err
}
