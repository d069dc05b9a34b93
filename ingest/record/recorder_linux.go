package record

import (
	"fmt"
	"sync"
	"time"

	"symbolize/ingest/format/bundle"
	"symbolize/ingest/record/sys"
)

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
