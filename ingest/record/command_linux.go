package record

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// command is the program that a capture runs.
type command struct {
	cmd    *exec.Cmd
	start  time.Time
	done   chan error // receives the result of Wait
	ending bool       // was requested to end
	left   string     // the control group in which it ended, if it left its own; set before done
}

// startCommand starts the command from the calling thread, which it inherits events from.
func startCommand(o *Options, group *ownGroup) (*command, error) {
	c := &command{cmd: exec.Command(o.Command[0], o.Command[1:]...), start: time.Now(),
		done: make(chan error, 1)}
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = o.Stdin, o.Stdout, o.Stderr
	// The command has ended even if a child keeps its output open.
	c.cmd.SysProcAttr = group.attributes()
	c.cmd.WaitDelay = time.Second
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCommand, err)
	}
	go func() {
		c.left = group.leftFor(c.cmd.Process.Pid)
		c.done <- c.cmd.Wait()
	}()
	return c, nil
}

// signal sends a signal to the command. It ignores that the command has just ended.
func (c *command) signal(sig os.Signal) { _ = c.cmd.Process.Signal(sig) }

// stop asks the command to end, unless it was already signalled. The second call kills it.
func (c *command) stop(sig os.Signal, signalled bool) {
	switch {
	case c.ending:
		c.signal(unix.SIGKILL)
	case !signalled:
		c.signal(sig)
	}
	c.ending = true
}

// SharesTerminal reports whether this process is in the foreground of its terminal: its children
// then also receive interrupts from the keyboard.
func SharesTerminal() bool {
	f, err := os.Open("/dev/tty")
	if err != nil {
		return false // no terminal
	}
	defer f.Close()
	group, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// status records how the command ended; err is the result of Wait.
func (c *command) status(s *recording, err error) {
	st := &s.summary.Command
	st.Run, st.Elapsed = true, time.Since(c.start)
	if c.left != "" {
		s.warn("the command left its control group for %s, and was sampled only before: sample that with "+
			"--cgroup, or all processes with --all-cpus", c.left)
	}
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

// ownGroup is a control group in which the command is started: the sampler recognizes the command
// and its children from their first instruction on. No controller is enabled: nothing is limited.
// The directory is locked while the recorder lives; an unlocked group was left by a killed
// recorder.
type ownGroup struct {
	dir  string
	file *os.File
}

// groupPrefix is the prefix of the names of such groups.
const groupPrefix = "symbolize-"

// groupTries limits the attempts to make a group if another recorder removes it as abandoned.
const groupTries = 10

// newOwnGroup makes a control group below the group of this process, in cgroup v2.
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
		return g, fmt.Errorf("%s: control group of unsupported type %q", g.dir, s)
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

// lockGroup locks a group; it fails if another recorder locked or removed it.
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

// removeAbandoned removes groups without processes that killed recorders left.
func removeAbandoned(parent string) {
	list, err := filepath.Glob(filepath.Join(parent, groupPrefix+"*"))
	if err != nil {
		return // the parent's name has characters of patterns
	}
	for _, dir := range list {
		if f, err := lockGroup(dir); err == nil {
			_ = unix.Rmdir(dir) // fails if the group has processes
			f.Close()
		}
	}
}

// groupOf returns the directory of a process's cgroup v2.
func groupOf(proc string) (string, error) {
	mounts, err := os.ReadFile(filepath.Join(proc, "mountinfo"))
	if err != nil {
		return "", err
	}
	path, err := groupPath(proc)
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
	if path == "" || at == "" {
		return "", errors.New("cgroup v2 is not mounted")
	}
	return filepath.Join(at, path), nil
}

// groupPath returns the path of a process's cgroup v2 in its hierarchy; "" if that is not mounted.
func groupPath(proc string) (string, error) {
	groups, err := os.ReadFile(filepath.Join(proc, "cgroup"))
	for line := range strings.Lines(string(groups)) {
		if path, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::"); ok {
			return path, nil
		}
	}
	return "", err
}

// leftFor waits until a child ends, and returns the path of the control group that it moved to; "" if
// it ended in this group or below it.
func (g *ownGroup) leftFor(pid int) string {
	if g == nil {
		return ""
	}
	parent, err := groupPath("/proc/self")
	if err != nil || !waitEnd(pid) {
		return ""
	}
	own := filepath.Join(parent, filepath.Base(g.dir))
	path, err := groupPath(filepath.Join("/proc", strconv.Itoa(pid)))
	if err != nil || path == "" || path == own || strings.HasPrefix(path, own+"/") {
		return ""
	}
	return strings.TrimSuffix(path, " (deleted)")
}

// waitEnd waits until a child ends, and leaves its status for Wait.
func waitEnd(pid int) bool {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err == nil
		}
	}
}

// attributes starts a command in the group; nil leaves it in the group of this process.
func (g *ownGroup) attributes() *syscall.SysProcAttr {
	if g == nil {
		return nil
	}
	return &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(g.file.Fd())}
}

// close removes the group. Processes that outlive the command are moved to the parent group.
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
