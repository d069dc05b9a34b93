package record

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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

// ownGroup is a control group that the command is started in, so that the sampler knows it and its
// children from their first instruction on. It enables no controller: nothing is limited. Its file is
// locked while the recorder lives: a group that nobody locks was left by one that was killed.
type ownGroup struct {
	dir  string
	file *os.File
}

// groupPrefix begins the names of such groups.
const groupPrefix = "symbolize-"

// groupTries is how often a group is made anew that another recorder took for an abandoned one.
const groupTries = 10

// newOwnGroup makes a control group below that of this process, in the hierarchy of version 2.
func newOwnGroup() (g *ownGroup, err error) {
	parent, err := groupOf("/proc/self")
	if err != nil {
		return nil, err
	}
	removeAbandoned(parent)
	if g, err = makeGroup(parent); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.close())
		}
	}()
	kind, err := os.ReadFile(filepath.Join(g.dir, "cgroup.type"))
	if err != nil {
		return g, err
	}
	if s := strings.TrimSpace(string(kind)); s != "domain" {
		return g, fmt.Errorf("%s: a control group of type %q", g.dir, s)
	}
	return g, nil
}

// makeGroup makes a directory and locks it.
func makeGroup(parent string) (g *ownGroup, err error) {
	for range groupTries {
		g = &ownGroup{}
		if g.dir, err = os.MkdirTemp(parent, groupPrefix); err != nil {
			return nil, err
		}
		if g.file, err = lockGroup(g.dir); err == nil {
			return g, nil
		}
		if err = errors.Join(err, os.Remove(g.dir)); !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return nil, err
}

// lockGroup locks a group; it is an error if another recorder has, or has removed it.
func lockGroup(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		_, err = os.Stat(dir)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// removeAbandoned removes the groups without processes whose recorders were killed.
func removeAbandoned(parent string) {
	list, err := filepath.Glob(filepath.Join(parent, groupPrefix+"*"))
	if err != nil {
		return // the pattern is wrong: the parent has characters of one
	}
	for _, dir := range list {
		if f, err := lockGroup(dir); err == nil {
			_ = unix.Rmdir(dir) // which fails while there are processes
			f.Close()
		}
	}
}

// groupOf returns the directory of a process's control group of version 2.
func groupOf(proc string) (string, error) {
	mounts, err := os.ReadFile(filepath.Join(proc, "mountinfo"))
	if err != nil {
		return "", err
	}
	groups, err := os.ReadFile(filepath.Join(proc, "cgroup"))
	if err != nil {
		return "", err
	}
	at := ""
	for line := range strings.Lines(string(mounts)) {
		// ID parent major:minor root mountpoint options … - type source options
		before, after, _ := strings.Cut(line, " - ")
		if f := strings.Fields(before); len(f) > 4 && strings.HasPrefix(after, "cgroup2 ") {
			at = f[4]
		}
	}
	for line := range strings.Lines(string(groups)) {
		if path, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::"); ok && at != "" {
			return filepath.Join(at, path), nil
		}
	}
	return "", errors.New("control groups of version 2 are not mounted")
}

// attributes has a command start in the group; nil leaves it in that of this process.
func (g *ownGroup) attributes() *syscall.SysProcAttr {
	if g == nil {
		return nil
	}
	return &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(g.file.Fd())}
}

// close removes the group. Processes that outlive the command go to the group above.
func (g *ownGroup) close() error {
	if g == nil {
		return nil
	}
	if g.file != nil {
		g.file.Close()
	}
	left, err := os.ReadFile(filepath.Join(g.dir, "cgroup.procs"))
	for pid := range strings.Lines(string(left)) {
		above := filepath.Join(filepath.Dir(g.dir), "cgroup.procs")
		if e := os.WriteFile(above, []byte(pid), 0); !errors.Is(e, unix.ESRCH) {
			err = errors.Join(err, e)
		}
	}
	return errors.Join(err, unix.Rmdir(g.dir))
}
