package record

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"symbolize/fixtures/must"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/record/sampler"
)

// fakeRecorder records its calls, and fails where it should.
type fakeRecorder struct {
	name             string
	calls            *[]string
	startErr, addErr error
	drained          func()
	again            time.Duration
}

func (r *fakeRecorder) note(call string) { *r.calls = append(*r.calls, r.name+" "+call) }
func (r *fakeRecorder) start() error     { r.note("start"); return r.startErr }
func (r *fakeRecorder) stop()            { r.note("stop") }
func (r *fakeRecorder) close()           { r.note("close") }

func (r *fakeRecorder) drain() time.Duration {
	if r.drained != nil {
		r.drained()
	}
	return r.again
}

func (r *fakeRecorder) add(w *bundle.Writer) error {
	r.note("add")
	if r.addErr != nil {
		return r.addErr
	}
	return w.Add("kernel/"+r.name, []byte(r.name))
}

// recordFake makes a bundle with two recorders.
func recordFake(t *testing.T, opts *Options, change func(a, b *fakeRecorder)) (*session, []string,
	string, error) {
	t.Helper()
	var calls []string
	a, b := &fakeRecorder{name: "a", calls: &calls}, &fakeRecorder{name: "b", calls: &calls}
	if change != nil {
		change(a, b)
	}
	path := filepath.Join(t.TempDir(), "capture.data")
	w, err := bundle.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	s := &session{recording: newRecording(opts)}
	if err = s.recordBy(t.Context(), w, []recorder{a, b}); err != nil {
		w.Abort()
	}
	return s, calls, path, err
}

// TestRecordBy: recorders start in order and stop in reverse order; a bundle contains their data
// and the losses.
func TestRecordBy(t *testing.T) {
	opts := &Options{Duration: time.Millisecond, Recorder: "me"}
	s, calls, path, err := recordFake(t, opts, func(a, b *fakeRecorder) {})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"a start", "b start", "b stop", "a stop", "a add", "b add"}
	if !slices.Equal(calls, want) || !s.summary.Command.TimeUp || s.summary.Command.Run {
		t.Errorf("calls %q, want %q; %+v", calls, want, s.summary.Command)
	}
	b, err := bundle.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if b.Manifest.Recorder != "me" || !b.Has("kernel/a") || !b.Has("kernel/b") ||
		b.Manifest.End.Monotonic <= b.Manifest.Begin.Monotonic {
		t.Errorf("%+v", b.Manifest)
	}
}

// TestManifestLosses: the manifest lists a recorder's losses, with the programs.
func TestManifestLosses(t *testing.T) {
	opts := &Options{Duration: time.Millisecond}
	path := filepath.Join(t.TempDir(), "capture.data")
	w, err := bundle.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	s := &session{recording: newRecording(opts)}
	s.summary.Missing = []MissingProgram{{ID: 7, Symbol: "bpf_prog_01", Reason: "gone"}}
	s.lost("things", 2)
	s.lost("things", 1)
	s.lost("nothing", 0)
	for range maxWarnings + 5 {
		s.warn("warning %d", 1)
	}
	if err := s.recordBy(t.Context(), w, nil); err != nil {
		t.Fatal(err)
	}
	b, err := bundle.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	m := &b.Manifest
	if len(m.Lost) != 1 || m.Lost["things"] != 3 || !slices.Equal(m.Missing, s.summary.Missing) ||
		len(m.Warnings) != maxWarnings {
		t.Errorf("lost %v, missing %v, %d warnings", m.Lost, m.Missing, len(m.Warnings))
	}
}

// TestRecordFails: started recorders are stopped, and no file is left.
func TestRecordFails(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(a, b *fakeRecorder)
		opts   Options
		want   error
		calls  []string
	}{
		"start": {change: func(_, b *fakeRecorder) { b.startErr = ErrRights }, opts: Options{},
			want:  ErrRights,
			calls: []string{"a start", "b start", "a stop"}},
		"add": {change: func(a, _ *fakeRecorder) { a.addErr = unix.ENOSPC },
			opts: Options{Duration: time.Millisecond}, want: unix.ENOSPC,
			calls: []string{"a start", "b start", "b stop", "a stop", "a add"}},
		"command": {opts: Options{Command: []string{"/nonexistent/program"}}, want: ErrCommand,
			calls: []string{"a start", "b start", "b stop", "a stop"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, calls, path, err := recordFake(t, &tt.opts, tt.change)
			if !errors.Is(err, tt.want) || !slices.Equal(calls, tt.calls) {
				t.Errorf("%v, want %v; calls %q, want %q", err, tt.want, calls, tt.calls)
			}
			left, _ := os.ReadDir(filepath.Dir(path))
			if len(left) != 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
	if _, err := os.Stat("/nonexistent/program"); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the program is there")
	}
}

// TestRunEnds: a recording ends with its command, its duration, its context or a signal, which is
// forwarded to the command; a second signal kills it.
func TestRunEnds(t *testing.T) {
	// As in the program: otherwise a shell's background commands ignore SIGINT.
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, os.Interrupt)
	defer signal.Stop(caught)
	sleep := []string{"sh", "-c", "exec sleep 60"}
	stubborn := []string{"sh", "-c", "trap '' TERM INT; echo ready; while :; do sleep 0.01; done"}
	for name, tt := range map[string]struct {
		command  []string
		duration time.Duration
		signals  []os.Signal
		terminal bool // that the command shares
		want     CommandStatus
	}{
		"status": {command: []string{"sh", "-c", "exit 7"}, want: CommandStatus{Run: true, Status: 7}},
		"done":   {command: []string{"true"}, want: CommandStatus{Run: true}},
		"time":   {duration: time.Millisecond, want: CommandStatus{TimeUp: true}},
		"signal": {signals: []os.Signal{unix.SIGINT}, want: CommandStatus{Stopped: unix.SIGINT}},
		"own signal": {command: []string{"sh", "-c", "kill -9 $$"},
			want: CommandStatus{Run: true, Status: -1, Signal: unix.SIGKILL}},
		"command time": {command: sleep, duration: 50 * time.Millisecond,
			want: CommandStatus{Run: true, Status: -1, Signal: unix.SIGTERM, TimeUp: true}},
		"handed on": {command: sleep, signals: []os.Signal{unix.SIGINT},
			want: CommandStatus{Run: true, Status: -1, Signal: unix.SIGINT, Stopped: unix.SIGINT}},
		"from terminal": {command: []string{"cat"}, signals: []os.Signal{unix.SIGINT},
			terminal: true, want: CommandStatus{Run: true, Stopped: unix.SIGINT}},
		"not from there": {command: sleep, signals: []os.Signal{unix.SIGTERM}, terminal: true,
			want: CommandStatus{Run: true, Status: -1, Signal: unix.SIGTERM, Stopped: unix.SIGTERM}},
		"second signal": {command: stubborn, signals: []os.Signal{unix.SIGTERM, unix.SIGTERM},
			want: CommandStatus{Run: true, Status: -1, Signal: unix.SIGKILL, Stopped: unix.SIGTERM}},
	} {
		t.Run(name, func(t *testing.T) {
			signals := make(chan os.Signal, len(tt.signals))
			stdin, end, err := os.Pipe() // what is from the terminal ends the command
			if err != nil {
				t.Fatal(err)
			}
			defer func() { stdin.Close(); end.Close() }()
			opts := &Options{Command: tt.command, Duration: tt.duration, Signals: signals, Stdin: stdin,
				Interrupted: func() bool { return tt.terminal && end.Close() == nil }}
			ready := make(chan struct{})
			if name == "second signal" {
				opts.Stdout = &once{c: ready}
			} else {
				close(ready)
			}
			go func() {
				<-ready
				for _, sig := range tt.signals {
					signals <- sig
				}
			}()
			s := &session{recording: newRecording(opts)}
			if err := s.run(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			got := s.summary.Command
			if got.Run != (got.Elapsed > 0) {
				t.Errorf("elapsed %v", got.Elapsed)
			}
			if got.Elapsed = 0; got != tt.want {
				t.Errorf("%+v, want %+v", got, tt.want)
			}
		})
	}
}

// once closes a channel at the first output.
type once struct {
	c    chan struct{}
	done bool
}

func (o *once) Write(b []byte) (int, error) {
	if !o.done {
		o.done = true
		close(o.c)
	}
	return len(b), nil
}

// TestRunCancelled ends with the context, and drains meanwhile.
func TestRunCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := &session{recording: newRecording(&Options{})}
	r := &fakeRecorder{calls: new([]string), drained: cancel}
	if err := s.run(ctx, []recorder{r}); err != nil || s.summary.Command != (CommandStatus{}) {
		t.Errorf("%v, %+v", err, s.summary.Command)
	}
}

// TestRunDrains drains after the shortest time returned by a recorder, and after a wake; it does
// not drain if recorders return 0.
func TestRunDrains(t *testing.T) { synctest.Test(t, runDrains) }

func runDrains(t *testing.T) {
	count := func(again time.Duration, wake bool) (n int) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*drainEvery)
		defer cancel()
		s := &session{recording: newRecording(&Options{})}
		r := &fakeRecorder{calls: new([]string), again: again}
		r.drained = func() {
			if n++; n == 3 {
				cancel()
			}
			if wake {
				s.wake()
				s.wake() // is one
			}
		}
		if err := s.run(ctx, []recorder{r, &fakeRecorder{calls: new([]string)}}); err != nil {
			t.Error(err)
		}
		return n
	}
	for _, c := range []struct {
		again time.Duration
		wake  bool
		want  int
	}{{again: 0, want: 1}, {again: time.Millisecond, want: 3}, {again: 0, wake: true, want: 3}, {again: time.Hour,
		wake: true, want: 3}, {again: time.Hour, want: 1}} {
		if got := count(c.again, c.wake); got != c.want {
			t.Errorf("again after %v, woken %v: drained %d times, want %d", c.again, c.wake, got, c.want)
		}
	}
}

// TestPauses: pauses between drains grow while there are no new processes, within the size of the
// ring.
func TestPauses(t *testing.T) {
	pause := time.Duration(0)
	for i, want := range []time.Duration{1, 2, 4, 8, 10, 10} {
		if pause = nextPause(pause, 10*drainEvery, false); pause != want*drainEvery {
			t.Errorf("pause %d is %v, want %v", i, pause, want*drainEvery)
		}
	}
	if got := nextPause(pause, 10*drainEvery, true); got != drainEvery {
		t.Errorf("pause %v where a process was met", got)
	}
	for rate, want := range map[int]time.Duration{1: time.Second, 198: time.Second, 1998: 206 * time.Millisecond,
		128 * 999: drainEvery, 1 << 40: drainEvery} {
		if got := pauseAt(rate).Truncate(time.Millisecond); got != want {
			t.Errorf("%d samples a second: %v, want %v", rate, got, want)
		}
	}
	for kind, want := range map[sampler.EventKind]time.Duration{sampler.Tracepoint: drainEvery,
		sampler.OffCPU: drainEvery, sampler.Uprobe: drainEvery} {
		if got := longestPause(&sampler.Options{Event: sampler.Event{Kind: kind}}); got != want {
			t.Errorf("kind %d: %v", kind, got)
		}
	}
}

// TestCommandOutput: the command uses the caller's output and input. A child that it leaves running
// delays nothing for long.
func TestCommandOutput(t *testing.T) {
	var out, errs bytes.Buffer
	child := filepath.Join(t.TempDir(), "pid")
	s := &session{recording: newRecording(&Options{
		Command: []string{"sh", "-c", "cat; echo e >&2; sleep 600 & echo $! >$0", child},
		Stdin:   strings.NewReader("in"), Stdout: &out, Stderr: &errs})}
	if err := s.run(t.Context(), nil); err != nil || out.String() != "in" || errs.String() != "e\n" {
		t.Errorf("%v: %q, %q", err, &out, &errs)
	}
	if s.summary.Command.Status != 0 || len(s.summary.Warnings) != 0 {
		t.Errorf("%+v", s.summary)
	}
	text := must.Read(t, child)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid <= 1 {
		t.Fatalf("child %q: %v", text, err)
	}
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		t.Errorf("the child was waited for: %v", err)
	}
}

// TestCommandOutputFails: a broken output is reported, and is not the command's failure.
func TestCommandOutputFails(t *testing.T) {
	s := &session{recording: newRecording(&Options{Command: []string{"echo", "x"},
		Stdout: brokenWriter{}})}
	if err := s.run(t.Context(), nil); err != nil || s.summary.Command.Status != 0 ||
		len(s.summary.Warnings) != 1 || !strings.Contains(s.summary.Warnings[0], "broken") {
		t.Errorf("%v: %+v", err, s.summary)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("broken") }
