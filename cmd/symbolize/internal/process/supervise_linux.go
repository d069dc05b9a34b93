package process

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"symbolize/analyze/table"
	"symbolize/ingest/texts"
)

// Some ends of a process nothing in it can keep from the user: where its address space is
// limited, Go ends it with pages of its stacks when memory runs out; in a control group with
// little memory the kernel kills it without a word; and a fault in one of the database
// library's own goroutines ends it too, as a bus error does where the disk under a mapped file
// fails. So commands that write a store, and all commands where memory is limited so, do their
// work in another process, and the first one reports its end in one line.

// supervisedEnv marks the process that does the work.
const supervisedEnv = "SYMBOLIZE_SUPERVISED"

// supervisedStderr is the standard error of the process that does the work. Messages of
// the runtime at its end go to the usual one.
const supervisedStderr = 3

// Supervise runs the command line in another process if it writes a store, and returns its exit
// status. writes reports whether a command line, without the program's name, is of a
// command that writes a store.
func Supervise(writes func(args []string) bool) (code int, done bool) {
	if os.Getenv(supervisedEnv) != "" {
		return 0, false
	}
	limits := memoryLimits()
	if limits == "" && !writes(os.Args[1:]) {
		return 0, false
	}
	code, err := superviseChild(limits)
	if errors.Is(err, errNotStarted) {
		return 0, false
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "symbolize: error: %s\n", texts.OneLine(err.Error()))
	}
	return code, true
}

// Stderr returns where messages go.
func Stderr() *os.File {
	var st unix.Stat_t
	if os.Getenv(supervisedEnv) == "" || unix.Fstat(supervisedStderr, &st) != nil {
		return os.Stderr
	}
	supervised = true
	unix.CloseOnExec(supervisedStderr)
	os.Unsetenv(supervisedEnv) // capture runs a command, which may be this program
	return os.NewFile(supervisedStderr, "stderr")
}

// supervised is set in the process that does the work.
var supervised bool

// Exit statuses of a supervised process. Package cli, which imports this one, has the same.
const (
	statusFailed      = 1
	statusInterrupted = 130
)

// endNote ends the standard error of a process that ended by itself: a text before it is not its
// last words.
const endNote = "symbolize: end of the work\n"

// NoteEnd notes that this process ends by itself, if it has a supervisor.
func NoteEnd() {
	if supervised {
		os.Stderr.WriteString(endNote)
	}
}

// memoryLimits returns the limits that call for a supervisor, in words; "" if none does.
func memoryLimits() string {
	var words []string
	var space unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_AS, &space) == nil && space.Cur <= math.MaxInt64 {
		words = append(words, "the address space is limited to "+table.Bytes(int64(space.Cur))+
			" (ulimit -v)")
	}
	if n := cgroupMemory("/proc", "/sys"); n < tightMemory {
		words = append(words, "the control group allows "+table.Bytes(n)+" of memory")
	}
	return strings.Join(words, ", ")
}

// errNotStarted is the error where this program cannot be started once more: /proc is not mounted,
// which has the way to its file, or an emulator runs it that the kernel does not know. The work is
// done in this process then.
var errNotStarted = errors.New("cannot start the program again")

func superviseChild(limits string) (int, error) {
	exe, err := os.Executable()
	if err != nil {
		return statusFailed, errNotStarted
	}
	cmd := exec.Command(exe, os.Args[1:]...)
	cmd.Args[0] = "symbolize" // not by the other name: its subcommand is in place already
	cmd.Env = append(os.Environ(), supervisedEnv+"=1")
	cmd.Stdin, cmd.Stdout, cmd.ExtraFiles = os.Stdin, os.Stdout, []*os.File{os.Stderr}
	// Killing this process must kill the work. The kernel checks the thread that starts the
	// child.
	runtime.LockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	words := &lastWords{}
	cmd.Stderr = words
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if err := cmd.Start(); err != nil {
		signal.Stop(signals)
		runtime.UnlockOSThread()
		return statusFailed, errNotStarted
	}
	go passSignals(signals, cmd.Process)
	err = cmd.Wait()
	state := cmd.ProcessState
	reason, memory := "", false
	if !words.cutEndNote() {
		reason, memory = words.reason()
	}
	switch {
	case memory && limits != "":
		return statusFailed, fmt.Errorf("out of memory: %s: %s", limits, reason)
	case memory:
		return statusFailed, fmt.Errorf("out of memory: %s", reason)
	case reason != "":
		return statusFailed,
			fmt.Errorf("the store's database has failed: %s; what was published is "+
				"whole, and the next run goes on", reason)
	}
	os.Stderr.Write(words.text) // a fault of ours, or output that GODEBUG requests of the runtime
	switch {
	case state == nil:
		return statusFailed, err
	case state.Exited():
		return state.ExitCode(), nil
	case wasInterrupted(state):
		return statusInterrupted, errors.New("interrupted")
	}
	if limits != "" {
		limits = "; " + limits
	}
	return statusFailed, fmt.Errorf("the working process was ended: %s%s", state, limits)
}

// wasInterrupted reports whether a process was ended by a signal that means an interrupt: it
// came before the process had its handlers.
func wasInterrupted(state *os.ProcessState) bool {
	status, ok := state.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() &&
		(status.Signal() == syscall.SIGINT || status.Signal() == syscall.SIGTERM)
}

// passSignals passes signals on. An interrupt of a terminal has reached the child already.
func passSignals(signals <-chan os.Signal, p *os.Process) {
	for s := range signals {
		if s == os.Interrupt && term.IsTerminal(int(os.Stdin.Fd())) {
			continue
		}
		p.Signal(s)
	}
}

// memoryDeaths are the beginnings of the last messages of a process without memory: of Go, and of
// the C library if it makes the threads.
var memoryDeaths = []string{
	"fatal error: runtime: cannot allocate memory", "fatal error: runtime: out of memory",
	"fatal error: out of memory", "runtime: out of memory", "fatal error: failed to reserve",
	"fatal error: newosproc", "runtime: failed to create new OS thread",
	"runtime/cgo: pthread_create failed", "runtime: cannot allocate memory",
	"runtime/cgo: out of memory", "fatal error: out of memory allocating",
}

// maxLastWords bounds the kept part of a process's last output.
const maxLastWords = 256 << 10

// lastWords keeps the standard error of a process besides its messages.
type lastWords struct {
	text []byte // its beginning
	tail []byte // its end, as long as endNote
}

// Write implements io.Writer.
func (l *lastWords) Write(b []byte) (int, error) {
	l.text = append(l.text, b[:min(len(b), maxLastWords-len(l.text))]...)
	l.tail = append(l.tail, b...)
	l.tail = l.tail[max(0, len(l.tail)-len(endNote)):]
	return len(b), nil
}

// cutEndNote removes the note of an end by itself, and reports whether there was one.
func (l *lastWords) cutEndNote() bool {
	l.text = bytes.TrimSuffix(l.text, []byte(endNote))
	return string(l.tail) == endNote
}

// reason returns why the process ended, in a line: because memory ran out, or by a fault in
// the database library, with its functions on one of the stacks. It is "" for others, faults
// of ours among them.
func (l *lastWords) reason() (text string, memory bool) {
	first := ""
	for line := range strings.Lines(string(l.text)) {
		line = strings.TrimSpace(line)
		if first == "" {
			first = line
		}
		if slices.ContainsFunc(memoryDeaths, func(s string) bool {
			return strings.HasPrefix(line, s)
		}) {
			return line, true
		}
	}
	if text, ok := fatalLog(string(l.text)); ok {
		return text, strings.Contains(text, unix.ENOMEM.Error())
	}
	if !bytes.Contains(l.text, []byte("/dgraph-io/")) {
		return "", false
	}
	return first, false
}

// fatalLog returns the message of a process that package log has ended, in a line. Only the
// database library ends it so; the HTTP client's lines are left out by WithoutHTTP.
func fatalLog(text string) (line string, ok bool) {
	const stamp = "2006/01/02 15:04:05"
	if len(text) < len(stamp) {
		return "", false
	}
	if _, err := time.Parse(stamp, text[:len(stamp)]); err != nil {
		return "", false
	}
	return strings.Join(strings.Fields(text[len(stamp):]), " "), true
}
