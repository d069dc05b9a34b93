package record

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
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

// drainEvery is the shortest interval between two drains.
const drainEvery = 50 * time.Millisecond

// Record records until the command or the duration ends, a signal arrives or ctx is cancelled, and
// commits the bundle; none of these is an error. After an error there is no file and w is aborted.
// The error wraps ErrRights if rights are missing, and ErrCommand if the command could not be
// started.
func Record(ctx context.Context, w *bundle.Writer, opts Options) (*Summary, error) {
	s := &session{recording: newRecording(&opts)}
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

// openGroup makes the control group of the command, if only the command is sampled.
func (s *session) openGroup() {
	o := s.opts
	if o.Stacks == nil || !o.OfCommand || len(o.Command) == 0 {
		return
	}
	group, err := newOwnGroup()
	if err != nil {
		s.warnAhead(fmt.Sprintf("sampling all processes, cannot sample only the command: %v", err))
		return
	}
	limited := *o.Stacks
	limited.Cgroup = group.dir
	opts := *o
	opts.Stacks = &limited
	s.opts, s.group = &opts, group
}

// recordBy runs the recorders and writes the bundle.
func (s *session) recordBy(ctx context.Context, w *bundle.Writer, list []recorder) error {
	s.manifest.Recorder, s.manifest.Command = s.opts.Recorder, s.opts.Command
	if s.opts.NoCommand && len(s.opts.Command) > 0 {
		s.manifest.Command = []string{filepath.Base(s.opts.Command[0])}
	}
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
		s.flusher = newFlusher(s.recording, s.set, w)
		go s.flusher.loop()
	}
	err := s.run(ctx, list)
	if s.flusher != nil {
		err = cmp.Or(err, s.flusher.stop())
	}
	if end, clockErr := sys.ReadClocks(); clockErr == nil {
		s.manifest.End = end
	}
	stopAll(list)
	if dir, err := os.Getwd(); err == nil && len(s.opts.Command) > 0 {
		s.manifest.Recordings = recordings(s.opts.Command, dir, time.Unix(0, int64(s.manifest.Begin.Realtime)))
	}
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
		err = fmt.Errorf("%w; %s contains the data recorded before", err, w.Path())
	}
	return err
}

// stopAll stops the recorders in reverse order: first the recorders that send events to others.
func stopAll(list []recorder) {
	for _, r := range slices.Backward(list) {
		r.stop()
	}
}

// newRecorders makes the recorders, in the order of start and add; stop has the reverse order.
// Modules are read before the rings report changes, and kallsyms before the rings add its BPF
// symbols.
func (s *session) newRecorders() ([]recorder, error) {
	mods := newModules(s.recording)
	kern := &kernel{s: s.recording, modules: mods}
	procs, err := newProcesses(s.recording)
	list := []recorder{kern, mods, procs}
	if err != nil {
		return list[:2], err
	}
	side, err := newSideband(s.recording, kern, mods, procs)
	if err != nil {
		return list, err
	}
	use := newUses(s.recording)
	list = append(list, use)
	s.set = &recorders{kernel: kern, modules: mods, procs: procs, side: side, uses: use}
	if len(s.opts.Maps) > 0 {
		side.series = newMapSeries(s.recording)
		s.set.series = side.series
		list = append(list, side.series)
	}
	if s.opts.KernelCopy {
		side.copies = &copies{s: s.recording}
		list = append(list, side.copies)
	}
	list = append(list, side)
	if s.opts.Stacks != nil {
		side.changes = history.NewCodeLog(side.requestDrain, mods.Update)
		mods.SetChanges(side.changes)
		kern.changes = side.changes
		side.relistAfterLoss()
		mapped := newMapLog(s.recording, procs)
		x := &stacks{s: s.recording, procs: procs, changes: side.changes}
		s.set.stacks = x
		list = append(list, mapped, x)
		mapped.load() // both loads before the loads of programs are recorded
		err = x.load()
	}
	return list, err
}

// run starts the command, forwards signals, and returns at the end of the recording.
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
	var failure error // of flushing
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
			c.status(s.recording, err)
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

// command starts the command. ended receives its end; both are nil without a command.
func (s *session) command() (c *command, ended <-chan error, err error) {
	if len(s.opts.Command) == 0 {
		return nil, nil, nil
	}
	if c, err = startCommand(s.opts, s.group); err != nil {
		return nil, nil, err
	}
	return c, c.done, nil
}

// drainAll drains the recorders. It returns the time until the next drain; 0 if none is needed.
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
	st := s.summary.Stacks
	if st == nil {
		return nil
	}
	users, kernel := 0, 0
	for i := range s.manifest.Samples {
		m := &s.manifest.Samples[i]
		n, ok := w.Merged(m.Stacks)
		k, both := w.Merged(m.KernelStacks)
		if !ok || !both {
			return nil // one part: the counts are complete
		}
		users, kernel = users+n, kernel+k
	}
	if users+kernel > 0 {
		st.UserStacks, st.KernelStacks = users, kernel
	}
	return nil
}

// recorder records one kind of data. Record calls its methods in this order, from one goroutine:
// start, then drain periodically, stop, add, close. A recorder that cannot record warns by
// recording.warn; an error of start or add ends the capture.
//
// To record another kind of data, implement recorder in a file of its own and list it in
// newRecorders.
type recorder interface {
	// start starts recording. Existing data is included, now or in add.
	start() error
	// drain empties buffers that would otherwise fill up, and reads short-lived data. It is called
	// soon after recording.wake, and after the time that it returns; 0: not before the next wake.
	drain() (again time.Duration)
	// stop ends the recording; all data is complete when it returns.
	stop()
	// add writes the recorded data to the bundle.
	add(w *bundle.Writer) error
	// close releases the recorder's resources. It can be called without start or stop.
	close()
}

// session runs the recorders of a capture.
type session struct {
	*recording
	set     *recorders // nil in tests: nothing is flushed
	flusher *flusher   // nil in tests
	group   *ownGroup  // nil unless Options.OfCommand
}

// recording is what the recorders of a capture know of it.
type recording struct {
	opts     *Options
	host     sys.Host
	manifest bundle.Manifest
	maps     typedMaps // that programs use
	tally

	wakes chan struct{} // holds one element while recorders have something to drain
	// full holds one element when memory use requires a flush.
	full chan struct{}
}

func newRecording(opts *Options) *recording {
	return &recording{opts: opts, tally: tally{summary: &Summary{}}, wakes: make(chan struct{}, 1),
		full: make(chan struct{}, 1)}
}

// tally counts the losses of a capture, and has its warnings. Any goroutine may add to them.
type tally struct {
	mu      sync.Mutex // guards losses and warnings
	summary *Summary
}

// wake makes the recorders drain soon. Safe for concurrent use.
func (s *recording) wake() {
	select {
	case s.wakes <- struct{}{}:
	default: // already pending
	}
}

// flushSoon requests a flush. Safe for concurrent use.
func (s *recording) flushSoon() {
	select {
	case s.full <- struct{}{}:
	default:
	}
}

// lost counts data that could not be recorded.
func (t *tally) lost(cause string, n uint64) {
	if n == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.summary.Lost == nil {
		t.summary.Lost = make(map[string]uint64)
	}
	t.summary.Lost[cause] += n
}

// maxWarnings limits the warnings of a capture.
const maxWarnings = 100

// warn adds a warning to the summary and the manifest.
func (t *tally) warn(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.summary.Warnings) < maxWarnings {
		t.summary.Warnings = append(t.summary.Warnings, fmt.Sprintf(format, args...))
	}
}

// warnAhead is warn for losses known before the recording starts.
func (s *recording) warnAhead(text string) {
	s.warn("%s", text)
	if s.opts.Warn != nil {
		s.opts.Warn(text)
	}
}

func (s *recording) log(format string, args ...any) {
	if s.opts.Log != nil {
		s.opts.Log(fmt.Sprintf(format, args...))
	}
}

// uses records what BPF programs cost.
type uses struct {
	*usage.Recorder
	s *recording
}

func newUses(s *recording) *uses {
	return &uses{usage.NewRecorder(s.opts.BPFStats,
		usage.Reports{Log: s.log, Ahead: s.warnAhead, Maps: s.maps.list}), s}
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
