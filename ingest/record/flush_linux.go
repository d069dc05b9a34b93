package record

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"symbolize/ingest/format/bundle"
	"symbolize/ingest/record/sampler"
	"symbolize/ingest/record/sys"
)

const (
	// flushEvery is the most that is lost if the recorder is killed. The first parts are shorter:
	// firstFlush, and each twice as long as the one before it, so that half of a short recording
	// remains.
	flushEvery = 10 * time.Second
	firstFlush = time.Second
	// settle is how long a flush waits for pending reads of mappings.
	settle = 500 * time.Millisecond
)

// recorders are the recorders of a capture. series and stacks may be nil.
type recorders struct {
	kernel  *kernel
	modules *moduleRecorder
	procs   *processes
	side    *sideband
	uses    *uses
	series  *mapSeries
	stacks  *stacks
}

// flusher makes the recording durable part by part, and starts new files.
type flusher struct {
	s     *recording
	set   *recorders
	path  string            // base of the names of Options.Rotate's files
	w     *bundle.Writer    // current file
	begun time.Time         // start of the current file
	first bool              // nothing was flushed to the current file
	next  time.Duration     // length of the current part, if it is less than flushEvery
	last  bundle.Clocks     // start of the current part
	lost  map[string]uint64 // the part of Summary.Lost that is already in a file
	// Number of Summary.Warnings and Missing that are already in a file.
	warned, missing int

	quit, done chan struct{}
	failed     chan error // holds the error after which nothing can be flushed
}

func newFlusher(s *recording, set *recorders, w *bundle.Writer) *flusher {
	return &flusher{s: s, set: set, path: w.Path(), w: w, begun: time.Now(), first: true, next: firstFlush,
		last: s.manifest.Begin, lost: make(map[string]uint64), quit: make(chan struct{}),
		done: make(chan struct{}), failed: make(chan error, 1)}
}

// loop flushes at intervals, until stop.
func (f *flusher) loop() {
	defer close(f.done)
	for {
		timer := time.NewTimer(f.pause())
		select {
		case <-f.quit:
			timer.Stop()
			return
		case <-f.s.full:
			timer.Stop()
		case <-timer.C:
		}
		if err := f.flush(); err != nil {
			f.failed <- err
			return
		}
	}
}

// stop ends the loop. It returns the error of a flush that ended it at the same time.
func (f *flusher) stop() error {
	close(f.quit)
	<-f.done
	select {
	case err := <-f.failed:
		return err
	default:
		return nil
	}
}

// pause returns the time to the next flush.
func (f *flusher) pause() time.Duration {
	every := min(f.next, flushEvery)
	f.next = 2 * every
	if f.s.opts.flushEvery > 0 {
		every = f.s.opts.flushEvery
	}
	if r := f.s.opts.Rotate.Every; r > 0 {
		every = max(0, min(every, r-time.Since(f.begun)))
	}
	return every
}

// part is the data since the last flush, as far as recording continues during the flush.
type part struct {
	side   *sidePart
	stacks []*sampler.Part // by event; nil: not sampled
	gone   gone            // processes without data in later parts
	turned uint64          // start of the next part, or earlier: clock of records
	end    bundle.Clocks   // start of the next part: clock of samples, if any
}

func (p *part) close() {
	if p.side != nil {
		p.side.close()
	}
	for _, of := range p.stacks {
		of.Close()
	}
}

// flush makes the data since the last flush durable, and starts a new file if it is due.
func (f *flusher) flush() error {
	r := f.s.opts.Rotate
	newFile := r.Every > 0 && time.Since(f.begun) >= r.Every ||
		r.Size > 0 && f.w.Flushed() >= r.Size
	p, err := f.nextPart(newFile)
	defer p.close()
	if err != nil {
		return err
	}
	samples, err := f.add(p, newFile)
	if err != nil {
		return err
	}
	m := f.manifest(samples, p.end)
	if err := f.w.Flush(m); err != nil {
		return err
	}
	f.first = false
	f.set.procs.forget(p.gone)
	if err := f.set.side.copies.turn(); err != nil {
		return err
	}
	if f.set.side.changes != nil {
		f.set.side.changes.Forget(p.turned)
	}
	if newFile {
		err = f.rotate(p, m)
	}
	if f.s.opts.Flushed != nil {
		f.s.opts.Flushed()
	}
	return err
}

// nextPart ends the current part and returns it. newFile: the next part starts a new file.
func (f *flusher) nextPart(newFile bool) (p *part, err error) {
	p = &part{gone: f.set.procs.gone()}
	now, _ := sys.ReadClocks()
	if p.turned = now.Perf; f.set.stacks != nil {
		p.turned = now.Monotonic
		var at uint64
		p.stacks, at = f.set.stacks.cut()
		p.end = atMonotonic(now, at)
	}
	f.set.procs.drain()
	f.set.procs.reads.wait(settle)
	f.set.procs.opens.wait(settle)
	p.side, err = f.set.side.cutPart(newFile) // after the samples, which its records explain
	if p.end == (bundle.Clocks{}) {
		p.end, _ = sys.ReadClocks()
	}
	return p, err
}

// atMonotonic returns the clocks at a time of CLOCK_MONOTONIC; zero for time 0.
func atMonotonic(c bundle.Clocks, monotonic uint64) bundle.Clocks {
	if monotonic == 0 {
		return bundle.Clocks{}
	}
	d := monotonic - c.Monotonic
	return bundle.Clocks{Perf: c.Perf + d, Monotonic: monotonic, Boottime: c.Boottime + d,
		Realtime: c.Realtime + d}
}

// add adds a part, the last one of its file if last is set, and returns the manifest's entry for
// its samples.
func (f *flusher) add(p *part, last bool) (samples []bundle.Samples, err error) {
	x := f.set
	if f.first || last {
		err = x.kernel.add(f.w)
	}
	if err == nil {
		err = x.modules.add(f.w)
	}
	var by *places
	if err == nil && p.stacks != nil {
		samples, by, err = x.stacks.addParts(f.w, p.stacks)
	}
	if err == nil {
		err = x.procs.addMappings(f.w, by)
	}
	if err == nil {
		err = x.procs.addCompiled(f.w, func(pid int32, was, size int64) bool {
			return last || p.gone.pids[pid] || size >= 2*was
		})
	}
	if err == nil && x.series != nil {
		err = x.series.flush(f.w)
	}
	if err == nil {
		err = x.uses.add(f.w)
	}
	if err == nil {
		err = x.side.addPart(f.w, p.side)
	}
	return samples, err
}

// manifest returns the manifest of the current part.
func (f *flusher) manifest(samples []bundle.Samples, end bundle.Clocks) *bundle.Manifest {
	m := f.s.manifest
	m.Samples, m.Begin, m.End = samples, f.last, end
	f.last = m.End
	f.since(&m)
	return &m
}

// since adds the losses and warnings since the last call to a manifest.
func (f *flusher) since(m *bundle.Manifest) {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	sum := f.s.summary
	m.Lost = nil
	for cause, n := range sum.Lost {
		if n == f.lost[cause] {
			continue
		}
		if m.Lost == nil {
			m.Lost = make(map[string]uint64)
		}
		m.Lost[cause] = n - f.lost[cause]
		f.lost[cause] = n
	}
	m.Warnings, f.warned = sum.Warnings[f.warned:len(sum.Warnings):len(sum.Warnings)], len(sum.Warnings)
	m.Missing, f.missing = sum.Missing[f.missing:len(sum.Missing):len(sum.Missing)], len(sum.Missing)
}

// rotate completes the current file, and starts a new one with the side band of the part, because
// its programs may still be loaded. m is the manifest of that part.
func (f *flusher) rotate(p *part, m *bundle.Manifest) error {
	if err := f.name(); err != nil {
		return err
	}
	done := f.w
	next, err := bundle.Create(f.path)
	if err != nil {
		return err
	}
	f.w, f.first, f.begun = next, true, time.Now()
	f.set.procs.newFile()
	f.set.kernel.newFile()
	f.set.uses.NewFile()
	f.set.modules.Forget(p.turned)
	if f.set.series != nil {
		f.set.series.newFile()
	}
	begin := *m
	begin.Begin, begin.Samples, begin.Lost, begin.Warnings, begin.Missing = m.End, nil, nil, nil, nil
	if err := p.side.out.addTo(next); err != nil {
		return err // the old file stays unfinished
	}
	if err := next.Flush(&begin); err != nil {
		return err
	}
	if _, err := done.Finish(); err != nil {
		return err
	}
	f.written(done)
	return nil
}

func (f *flusher) written(w *bundle.Writer) {
	if f.s.opts.Written != nil {
		f.s.opts.Written(w.Path())
	}
}

// name gives the current file its final name: as perf record --switch-output does, with the time in
// UTC appended, and a number if that name exists.
func (f *flusher) name() error {
	now := time.Unix(0, int64(f.s.host.Now().Realtime)).UTC()
	const hundredth = 10 * time.Millisecond
	name := fmt.Sprintf("%s.%s%02d", f.path, now.Format("20060102150405"), now.Nanosecond()/int(hundredth))
	err := f.w.Rename(name)
	for i := 1; errors.Is(err, fs.ErrExist) && i < maxSameNames; i++ {
		err = f.w.Rename(fmt.Sprintf("%s-%d", name, i))
	}
	return err
}

// maxSameNames limits the files of one hundredth of a second.
const maxSameNames = 1000

// end completes the last file, to which the recorders have added the remaining data.
func (f *flusher) end(m *bundle.Manifest) error {
	m.Begin = f.last
	f.since(m)
	if f.s.opts.Rotate == (Rotation{}) {
		return f.w.Commit(m)
	}
	if err := f.name(); err != nil {
		return err
	}
	if err := f.w.Commit(m); err != nil {
		return err
	}
	f.written(f.w)
	return nil
}
