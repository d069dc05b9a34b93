package record

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"symbolize/ingest/format/bundle"
	"symbolize/ingest/record/history"
	"symbolize/ingest/record/sys"
	"symbolize/ingest/record/usage"
)

// drainEvery is how often recorders are drained at most.
const drainEvery = 50 * time.Millisecond

// Record records until the command or the time ends, a signal comes or ctx is cancelled, and
// commits the bundle; none of these is an error. With an error of Record there is no file; w is
// aborted. The error wraps ErrRights if there are too few, ErrCommand if the command could not be
// started.
func Record(ctx context.Context, w *bundle.Writer, opts Options) (*Summary, error) {
	s := &session{opts: &opts, summary: &Summary{}, wakes: make(chan struct{}, 1),
		full: make(chan struct{}, 1)}
	err := s.record(ctx, w)
	if err != nil {
		w.Abort()
		return nil, err
	}
	return s.summary, nil
}

func (s *session) record(ctx context.Context, w *bundle.Writer) error {
	// The command inherits the events of the thread that starts it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := s.checkHostProc(); err != nil {
		return err
	}
	s.openGroup()
	defer func() {
		if err := s.group.close(); err != nil {
			s.warn("the control group of the command: %v", err)
		}
	}()
	list, err := s.newRecorders()
	defer func() {
		for _, r := range slices.Backward(list) {
			r.close()
		}
	}()
	if err != nil {
		return err
	}
	return s.recordBy(ctx, w, list)
}

// openGroup makes the control group of the command, if only that is to be sampled.
func (s *session) openGroup() {
	o := s.opts
	if o.Stacks == nil || !o.OfCommand || len(o.Command) == 0 {
		return
	}
	group, err := newOwnGroup()
	if err != nil {
		s.warnAhead(fmt.Sprintf("all processes are sampled, the command alone cannot be: %v", err))
		return
	}
	limited := *o.Stacks
	limited.Cgroup = group.dir
	opts := *o
	opts.Stacks = &limited
	s.opts, s.group = &opts, group
}

// recordBy has the recorders record, and writes the bundle.
func (s *session) recordBy(ctx context.Context, w *bundle.Writer, list []recorder) error {
	s.manifest.Recorder, s.manifest.Command = s.opts.Recorder, s.opts.Command
	var clockErr error
	if s.manifest.Begin, clockErr = sys.ReadClocks(); clockErr != nil {
		s.warn("perf's clock could not be read: %v", clockErr)
	}
	for i, r := range list {
		if err := r.start(); err != nil {
			stopAll(list[:i])
			return err
		}
	}
	if s.set != nil {
		s.flusher = newFlusher(s, w)
		go s.flusher.loop()
	}
	err := s.run(ctx, list)
	if s.flusher != nil {
		s.flusher.stop()
	}
	if end, clockErr := sys.ReadClocks(); clockErr == nil {
		s.manifest.End = end
	}
	stopAll(list)
	if s.flusher != nil {
		w = s.flusher.w
	}
	if err == nil {
		err = s.write(w, list)
	}
	if err != nil {
		w.Abort()
	}
	if err != nil && w.Flushed() > 0 {
		err = fmt.Errorf("%w; %s has what was recorded before", err, w.Path())
	}
	return err
}

// stopAll stops the recorders, first those whose readers send events to others.
func stopAll(list []recorder) {
	for _, r := range slices.Backward(list) {
		r.stop()
	}
}

// newRecorders makes the recorders, in the order in which they start and add, which is
// against that in which they stop: the modules are read before the rings report
// changes, and kallsyms before the rings add its BPF symbols.
func (s *session) newRecorders() ([]recorder, error) {
	mods := newModules(s)
	kern := &kernel{s: s, modules: mods}
	procs, err := newProcesses(s)
	list := []recorder{kern, mods, procs}
	if err != nil {
		return list[:2], err
	}
	side, err := newSideband(s, kern, mods, procs)
	if err != nil {
		return list, err
	}
	use := newUses(s, usage.Options{Proc: s.opts.HostProc, OtherPIDs: procs.otherNumbers()})
	list = append(list, use)
	s.set = &recorders{kernel: kern, modules: mods, procs: procs, side: side, uses: use}
	if len(s.opts.Maps) > 0 {
		side.series = newMapSeries(s)
		s.set.series = side.series
		list = append(list, side.series)
	}
	if s.opts.KernelCopy {
		side.copies = &copies{s: s}
		list = append(list, side.copies)
	}
	list = append(list, side)
	if s.opts.Stacks != nil {
		side.changes = history.NewCodeLog(side.ask, mods.Settle)
		mods.NoteChanges(side.changes)
		side.lookAgainAfterLoss()
		mapped := newMapLog(s, procs)
		x := &stacks{s: s, procs: procs, changes: side.changes}
		s.set.stacks = x
		list = append(list, mapped, x)
		mapped.load() // both before loads are recorded
		err = x.load()
	}
	return list, err
}

// run waits for the end of the recording: it starts the command and hands signals on.
func (s *session) run(ctx context.Context, list []recorder) error {
	c, ended, err := s.command()
	if err != nil {
		return err
	}
	var timeUp <-chan time.Time
	if s.opts.Duration > 0 {
		timer := time.NewTimer(s.opts.Duration)
		defer timer.Stop()
		timeUp = timer.C
	}
	drain, drained := time.NewTimer(drainEvery), time.Now()
	defer drain.Stop()
	cancelled := ctx.Done()
	var failed <-chan error
	var failure error // of making data durable
	if s.flusher != nil {
		failed = s.flusher.failed
	}
	for {
		var sig os.Signal
		select {
		case <-drain.C:
			drained = time.Now()
			if again := drainAll(list); again > 0 {
				drain.Reset(again)
			}
			continue
		case <-s.wakes:
			drain.Reset(max(0, drainEvery-time.Since(drained)))
			continue
		case err := <-ended:
			c.status(s, err)
			return failure
		case <-timeUp:
			sig, timeUp = unix.SIGTERM, nil
			s.summary.Command.TimeUp = true
		case <-cancelled:
			sig, cancelled = unix.SIGTERM, nil
		case sig = <-s.opts.Signals:
			s.summary.Command.Stopped = sig
		case failure = <-failed:
			sig, failed = unix.SIGTERM, nil
		}
		if c == nil {
			return failure
		}
		c.stop(sig, sig == os.Interrupt && s.opts.Interrupted != nil && s.opts.Interrupted())
	}
}

// command starts the command; c and ended, in which its end comes, are nil without one.
func (s *session) command() (c *command, ended <-chan error, err error) {
	if len(s.opts.Command) == 0 {
		return nil, nil, nil
	}
	if c, err = startCommand(s.opts, s.group); err != nil {
		return nil, nil, err
	}
	return c, c.done, nil
}

// drainAll drains the recorders, and returns when that is to be done again at the latest; 0
// if it need not be.
func drainAll(list []recorder) (again time.Duration) {
	for _, r := range list {
		if d := r.drain(); d > 0 && (again == 0 || d < again) {
			again = d
		}
	}
	return again
}

// write adds everything to the bundle and commits it.
func (s *session) write(w *bundle.Writer, list []recorder) error {
	for _, r := range list {
		if x, ok := r.(*stacks); ok {
			x.explain()
		}
	}
	for _, r := range list {
		if err := r.add(w); err != nil {
			return err
		}
	}
	if s.flusher != nil {
		return s.end(w)
	}
	s.mu.Lock()
	s.manifest.Lost, s.manifest.Warnings = s.summary.Lost, s.summary.Warnings
	s.manifest.Missing = s.summary.Missing
	s.mu.Unlock()
	return w.Commit(&s.manifest)
}

// end commits the data that was not flushed.
func (s *session) end(w *bundle.Writer) error {
	if err := s.flusher.end(&s.manifest); err != nil {
		return err
	}
	sortMissing(s.summary.Missing)
	for i := range s.manifest.Samples {
		m, st := &s.manifest.Samples[i], s.summary.Stacks
		if n, ok := w.Merged(m.Stacks); ok && st != nil {
			st.UserStacks = n
		}
		if n, ok := w.Merged(m.KernelStacks); ok && st != nil {
			st.KernelStacks = n
		}
	}
	return nil
}

// recorder is one kind of thing that a capture records. Record calls its methods in
// this order, from one goroutine: start, then drain periodically, stop, add, close. A
// recorder that cannot do its work reports it by session.warn, and lets the others do
// theirs: an error of start or add ends the capture.
//
// Another kind of thing to record is another implementation, in a file of its own,
// listed in newRecorders.
type recorder interface {
	// start begins to record. Existing data is included, now or in add.
	start() error
	// drain empties buffers that would fill up before the end, and reads data that will not be
	// there for long. It is called soon after session.wake, and after the time that it
	// returns; 0 if there is nothing to be done before the next wake.
	drain() (again time.Duration)
	// stop ends the recording; the data before is complete when it returns.
	stop()
	// add writes the recorded data to the bundle.
	add(w *bundle.Writer) error
	// close releases the recorder's resources. It may be called without start or stop.
	close()
}

// session is the state that the recorders of one capture share.
type session struct {
	opts     *Options
	host     sys.Host
	summary  *Summary
	manifest bundle.Manifest

	wakes chan struct{} // holds one while recorders have something to drain
	// full holds one while there is so much in memory that it is to be flushed.
	full    chan struct{}
	set     *recorders // nil in tests: nothing is flushed
	flusher *flusher   // likewise
	group   *ownGroup  // nil unless Options.OfCommand

	mu sync.Mutex // guards the counts and warnings, which any goroutine may add to
}

// wake has the recorders drained soon. Any goroutine may call it.
func (s *session) wake() {
	select {
	case s.wakes <- struct{}{}:
	default: // they will be
	}
}

// flushSoon requests a flush. Any goroutine may call it.
func (s *session) flushSoon() {
	select {
	case s.full <- struct{}{}:
	default:
	}
}

// lost counts data that could not be recorded.
func (s *session) lost(cause string, n uint64) {
	if n == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.summary.Lost == nil {
		s.summary.Lost = make(map[string]uint64)
	}
	s.summary.Lost[cause] += n
}

// maxWarnings bounds the warnings that a capture keeps.
const maxWarnings = 100

// warn keeps a warning for the summary and the manifest.
func (s *session) warn(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.summary.Warnings) < maxWarnings {
		s.summary.Warnings = append(s.summary.Warnings, fmt.Sprintf(format, args...))
	}
}

// warnAhead is warn for losses known before the recording starts.
func (s *session) warnAhead(text string) {
	s.warn("%s", text)
	if s.opts.Warn != nil {
		s.opts.Warn(text)
	}
}

func (s *session) log(format string, args ...any) {
	if s.opts.Log != nil {
		s.opts.Log(fmt.Sprintf(format, args...))
	}
}

// uses is the recorder of how BPF programs are used.
type uses struct {
	*usage.Recorder
	s *session
}

func newUses(s *session, proc usage.Options) *uses {
	return &uses{usage.NewRecorder(proc, s.opts.BPFStats,
		usage.Reports{Log: s.log, Warn: s.warn, Ahead: s.warnAhead}), s}
}

func (u *uses) start() error {
	u.Start()
	return nil
}

func (u *uses) drain() time.Duration { return 0 }

func (u *uses) stop() {
	u.Stop()
	if runs, took, ok := u.Runs(); ok {
		u.s.summary.BPFRuns = &BPFRuns{Runs: runs, Time: took}
	}
}

func (u *uses) add(w *bundle.Writer) error { return u.Add(w) }

func (u *uses) close() { u.Close() }
