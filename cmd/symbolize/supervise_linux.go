package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// Where the address space of a process is limited, Go ends it with pages of its stacks and
// status 2 when memory runs out, and nothing in that process can keep it from that. So there
// the work is done in a process of its own, whose end the first one reports in one line. The
// address space is limited by few (ulimit -v); all others have one process.

// supervisedEnv marks the process that does the work.
const supervisedEnv = "SYMBOLIZE_SUPERVISED"

// supervise runs the command line in another process if the address space is limited, and
// returns its exit status. The recorder is left alone: its memory does not grow, and it would
// record its supervisor.
func supervise() (code int, done bool) {
	var limit unix.Rlimit
	if os.Getenv(supervisedEnv) != "" || slices.Contains(os.Args[1:], "capture") ||
		unix.Getrlimit(unix.RLIMIT_AS, &limit) != nil || limit.Cur > math.MaxInt64 {
		return 0, false
	}
	code, err := superviseChild(limit.Cur)
	if err != nil {
		fmt.Fprintf(os.Stderr, "symbolize: error: %s\n", oneLine(err.Error()))
	}
	return code, true
}

func superviseChild(limit uint64) (int, error) {
	exe, err := os.Executable()
	if err != nil {
		return exitFailed, err
	}
	cmd := exec.Command(exe, os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), supervisedEnv+"=1")
	cmd.Stdin, cmd.Stdout = os.Stdin, os.Stdout
	// Whoever kills this process means the work. The kernel looks at the thread that starts
	// the child.
	runtime.LockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	errs, err := cmd.StderrPipe()
	if err != nil {
		return exitFailed, err
	}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if err := cmd.Start(); err != nil {
		return exitFailed, err
	}
	go passSignals(signals, cmd.Process)
	reason := passErrors(errs, os.Stderr)
	err = cmd.Wait()
	state := cmd.ProcessState
	switch {
	case reason != "":
		return exitFailed, fmt.Errorf("out of memory: the address space is limited to %s "+
			"(ulimit -v): %s", humanBytes(int64(limit)), reason)
	case state == nil:
		return exitFailed, err
	case state.Exited():
		return state.ExitCode(), nil
	}
	return exitFailed, fmt.Errorf("the process that did the work was ended: %s", state)
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

// memoryDeaths are how the last words of a process begin that ran out of memory: those of
// Go, and of the C library where threads are made by it.
var memoryDeaths = []string{
	"fatal error: runtime: cannot allocate memory", "fatal error: runtime: out of memory",
	"fatal error: out of memory", "runtime: out of memory", "fatal error: failed to reserve",
	"fatal error: newosproc", "runtime: failed to create new OS thread",
	"runtime/cgo: pthread_create failed", "runtime: cannot allocate memory",
	"runtime/cgo: out of memory", "fatal error: out of memory allocating",
}

// passErrors copies lines up to those of a process that ran out of memory, and returns the
// first of these.
func passErrors(from io.Reader, to io.Writer) (reason string) {
	r := bufio.NewReader(from)
	for {
		line, err := r.ReadString('\n')
		if reason == "" && slices.ContainsFunc(memoryDeaths, func(s string) bool {
			return strings.HasPrefix(line, s)
		}) {
			reason = strings.TrimSpace(line)
		}
		if reason == "" {
			io.WriteString(to, line)
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				fmt.Fprintf(to, "symbolize: error: %v\n", err)
			}
			return reason
		}
	}
}
