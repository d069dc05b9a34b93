package analyze

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"syscall"
	"time"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/sideband"
	"symbolize/store"
	"symbolize/store/db"
	"symbolize/store/remote"
)

// pulling is the state of Options.Remote in a session.
type pulling struct {
	opts   *Options
	reader *db.Reader        // nil without a store
	cached *store.CachedView // of reader
	plain  store.View        // of the session
	mu     sync.Mutex        // Need may be called by unwinders
	asked  map[buildid.ID]bool
	sum    remote.PullResult
	away   bool // the bucket does not answer, or is not one of ours: no more requests
	known  bool // the bucket has this version
	failed bool // something did not come
	// kept has the tables that came where the store cannot be written, which inMemory reports.
	kept     *store.Overlay
	inMemory bool
	// left are warnings that are not yet passed on.
	left []Warning
	ctx  context.Context // of the capture that is read, for unwinders
}

// start returns where tables that come are kept in memory. reader and cached read the session's
// store.
func (p *pulling) start(reader *db.Reader, cached *store.CachedView) store.View {
	p.reader, p.cached = reader, cached
	p.kept, p.inMemory = store.NewOverlay(), reader == nil
	return p.kept
}

// remoteLockWait is how long a run waits for another writer of the store before it keeps tables
// in memory.
const remoteLockWait = time.Minute

// writerOptions are for writing tables that come to the store.
func (p *pulling) writerOptions() db.WriterOptions {
	return db.WriterOptions{LockTimeout: remoteLockWait, Waiting: p.opts.RemoteWait}
}

// makeStore makes an empty store for tables that come. Where there can be none, absent is the
// error.
func (s *Session) makeStore(ctx context.Context, absent error) (*db.Reader, error) {
	w, err := db.OpenWriter(ctx, s.opts.Store, s.pulling.writerOptions())
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		if cannotKeep(err) {
			s.pulling.keepInMemory(err)
			return nil, absent
		}
		return nil, err
	}
	return db.OpenReader(s.opts.Store)
}

// cannotKeep reports whether an error keeps a run from writing to the store, and not from reading.
func cannotKeep(err error) bool {
	for _, is := range []error{store.ErrUnsafe, store.ErrLocked, store.ErrNoSpace, fs.ErrPermission,
		syscall.EROFS, syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG} {
		if errors.Is(err, is) {
			return true
		}
	}
	return false
}

// ErrInMemory is wrapped by the warning that tables of Options.Remote are kept only for this run.
var ErrInMemory = errors.New("kept in memory")

// keepInMemory notes that the store cannot be written.
func (p *pulling) keepInMemory(err error) {
	p.left = append(p.left, Warning{Warning: ingest.Warning{
		Text: "tables of " + p.opts.Remote.URL("") + " are kept in memory, for this run: " + err.Error(),
		Hint: "name a store that may be written with --store"}, Err: fmt.Errorf("%w: %w", ErrInMemory, err)})
}

// Need fetches the parts that Options.Remote has of objects, once in a session. complete is false
// if something did not come, which is passed on as a warning, now or by the next call of Each.
func (s *Session) Need(ctx context.Context, objects []ingest.Object) (complete bool, err error) {
	if s.opts.Remote == nil {
		return true, nil
	}
	p := &s.pulling
	p.mu.Lock()
	defer p.mu.Unlock()
	complete, err = p.need(ctx, remote.ObjectsOf(objects))
	for _, w := range p.left {
		s.warn(w)
	}
	p.left = nil
	return complete, err
}

// needing is a View of a session that fetches the parts of requested objects from Options.Remote.
type needing struct {
	store.View
	ctx     context.Context
	session *Session
}

// Find implements store.View.
func (v *needing) Find(id buildid.ID) ([]*store.Manifest, error) {
	if _, err := v.session.Need(v.ctx, []ingest.Object{{ID: id}}); err != nil {
		return nil, err
	}
	return v.View.Find(id)
}

// need is Session.Need for IDs; the caller holds mu.
func (p *pulling) need(ctx context.Context, ids []buildid.ID) (complete bool, err error) {
	if p.asked == nil {
		p.asked = make(map[buildid.ID]bool)
	}
	var ask []buildid.ID
	for _, id := range ids {
		if !p.asked[id] {
			p.asked[id] = true
			ask = append(ask, id)
		}
	}
	if len(ask) == 0 || p.away {
		return !p.failed, nil
	}
	res, err := &remote.PullResult{Asked: len(ask)}, error(nil)
	if !p.known {
		err = remote.Check(ctx, p.opts.Remote)
		p.known = err == nil
	}
	if p.known {
		res, err = p.pull(ctx, ask)
	}
	p.sum.Add(res)
	for _, problem := range res.Problems {
		p.warn(problem)
	}
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case errors.Is(err, remote.ErrUnavailable):
		p.away = true
		p.warn(err)
	case err != nil:
		return false, err
	}
	return !p.failed, nil
}

// warn notes that something did not come.
func (p *pulling) warn(err error) {
	p.failed = true
	hint := "the rest was done; run it again when that is there"
	if errors.Is(err, store.ErrVersion) {
		hint = "the rest was done; use the newer symbolize that wrote the bucket, or name another"
	}
	p.left = append(p.left, Warning{ingest.Warning{Text: err.Error(), Partial: true, Hint: hint}, err})
}

// pull fetches objects into the store, or into memory.
func (p *pulling) pull(ctx context.Context, ids []buildid.ID) (*remote.PullResult, error) {
	if !p.inMemory {
		// Another process may have kept the tables since the store was opened.
		if err := p.refresh(); err != nil {
			return &remote.PullResult{}, err
		}
		res, wrote, err := remote.PullTo(ctx, p.opts.Remote, ids, remote.Here(p.reader, p.cached),
			p.opts.Store, remote.PullOptions{}, p.writerOptions())
		if wrote { // nothing may have come, as another process was faster
			err = errors.Join(err, p.refresh())
		}
		if err == nil || errors.Is(err, remote.ErrUnavailable) || !cannotKeep(err) {
			return res, err
		}
		p.keepInMemory(err)
		p.inMemory = true
	}
	to := remote.Target{Sink: p.kept, View: p.plain}
	return remote.Pull(ctx, p.opts.Remote, ids, remote.PullOptions{Here: to, Checked: true,
		Open: func(context.Context) (remote.Target, error) { return to, nil }})
}

// refresh opens the newest generation of the store.
func (p *pulling) refresh() error {
	changed, err := p.reader.Refresh()
	if changed {
		p.cached.Forget()
	}
	return err
}

// remoteUnwind is the view with the unwind table of an object, fetched from Options.Remote;
// nil if there is none there.
func (s *Session) remoteUnwind(o *ingest.Object) store.View {
	p := &s.pulling
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, err := p.need(p.ctx, remote.ObjectsOf([]ingest.Object{*o})); err != nil {
		p.warn(err)
	}
	v := s.unwinding()
	m, _, _ := store.FindOne(v, o.ID)
	if m == nil || !slices.ContainsFunc(m.Sources, func(src store.SourceInfo) bool {
		return src.Kind.Format() == store.FormatUnwind
	}) {
		return nil
	}
	return v
}

// findVDSO adds the vdsos of Options.Remote to an identification: the kernel's manifest lists the
// build IDs of its images, and their manifests distinguish them.
func (p *pulling) findVDSO(known identification) identification {
	if p.opts.Remote == nil {
		return known
	}
	return func(q sideband.ObjectQuery) (buildid.ID, ingest.IDSource) {
		id, source := known(q)
		if q.Kind != ingest.VDSO || source != ingest.IDNone || q.Kernel.IsZero() {
			return id, source
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		ask := []buildid.ID{q.Kernel}
		for range 2 { // the kernel, then its images
			if _, err := p.need(p.ctx, ask); err != nil {
				p.warn(err)
				return id, source
			}
			k, _, _ := store.FindOne(p.plain, q.Kernel)
			if k == nil {
				return id, source
			}
			ask = k.VDSO
		}
		return known(q)
	}
}
