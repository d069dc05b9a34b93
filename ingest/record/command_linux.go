package record

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// command is the program that a capture runs.
type command struct {
	cmd   *exec.Cmd
	start time.Time
	done  chan error // of Wait
	asked bool       // to end
}

// startCommand starts the command, from the calling thread, whose events it inherits.
func startCommand(o *Options, group *ownGroup) (*command, error) {
	c := &command{cmd: exec.Command(o.Command[0], o.Command[1:]...), start: time.Now(),
		done: make(chan error, 1)}
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = o.Stdin, o.Stdout, o.Stderr
	// A command that leaves a child behind with its output open has ended all the same.
	c.cmd.SysProcAttr = group.attributes()
	c.cmd.WaitDelay = time.Second
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCommand, err)
	}
	go func() { c.done <- c.cmd.Wait() }()
	return c, nil
}

// signal sends a signal to the command. That it has just ended is no error.
func (c *command) signal(sig os.Signal) { _ = c.cmd.Process.Signal(sig) }

// stop asks the command to end, unless it has been signalled; at a second call it is
// killed.
func (c *command) stop(sig os.Signal, signalled bool) {
	switch {
	case c.asked:
		c.signal(unix.SIGKILL)
	case !signalled:
		c.signal(sig)
	}
	c.asked = true
}

// SharesTerminal reports whether this process is in the foreground of its terminal: an
// interrupt from the keyboard then reaches the processes that it has started, too.
func SharesTerminal() bool {
	f, err := os.Open("/dev/tty")
	if err != nil {
		return false // it has none
	}
	defer f.Close()
	group, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// status describes how the command ended, after Wait gave err.
func (c *command) status(s *session, err error) {
	st := &s.summary.Command
	st.Run, st.Elapsed = true, time.Since(c.start)
	state := c.cmd.ProcessState
	if state == nil {
		st.Status = -1
		s.warn("the command's end: %v", err)
		return
	}
	st.Status = state.ExitCode()
	if w, ok := state.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		st.Signal = w.Signal()
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) {
		s.warn("the command's output: %v", err)
	}
}
