package db

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"symbolize/ingest/files"
	"symbolize/store"
)

// lockPoll is how often a waiting writer tries again.
const lockPoll = 50 * time.Millisecond

// lockPatience is how long a writer waits before it reports that it does.
const lockPatience = 200 * time.Millisecond

// maxHolder bounds the bytes read of a lock file, and maxCommand those written of a command line.
const (
	maxHolder  = 4 << 10
	maxCommand = 512
)

// holder is the lock file's entry for the process that holds it.
type holder struct {
	PID     int       `json:"pid"`
	Host    string    `json:"host"`
	Command string    `json:"command"`
	Since   time.Time `json:"since"`
}

// acquireLock acquires the writer's lock. It is flock's, so it ends with the process, however that
// ends; the text in the file is for people only. A timeout of 0 does not wait, a negative one waits
// as long as ctx. locked is false where the file system cannot lock.
func acquireLock(ctx context.Context, root, path string, opts WriterOptions) (f *os.File, locked bool,
	err error) {
	timeout, waiting := opts.LockTimeout, opts.Waiting
	f, err = files.OpenPlain(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, false, fmt.Errorf("store lock: %w", err)
	}
	start := time.Now()
	deadline := start.Add(timeout)
	for {
		held, err := lockFile(f)
		if cannotLock(err) {
			return f, false, nil
		}
		if err != nil {
			f.Close()
			return nil, false, fmt.Errorf("store lock %s: %w", path, err)
		}
		if !held {
			break
		}
		if timeout >= 0 && !time.Now().Before(deadline) {
			defer f.Close()
			return nil, false, lockedBy(root, f)
		}
		if waiting != nil && time.Since(start) >= lockPatience {
			waiting(lockedBy(root, f))
			waiting = nil
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, false, ctx.Err()
		case <-time.After(lockPoll):
		}
	}
	if err := writeHolder(f); err != nil {
		f.Close()
		return nil, false, fmt.Errorf("store lock %s: %w", path, err)
	}
	return f, true, nil
}

// lockFile is files.Lock, but in tests.
var lockFile = files.Lock

// cannotLock reports whether an error is of a file system without locks.
func cannotLock(err error) bool {
	return errors.Is(err, syscall.ENOLCK) || errors.Is(err, errors.ErrUnsupported)
}

func writeHolder(f *os.File) error {
	host, _ := os.Hostname()
	command := strings.Join(os.Args, " ")
	text, err := json.Marshal(holder{
		PID: os.Getpid(), Host: host, Command: command[:min(len(command), maxCommand)],
		Since: time.Now().UTC().Truncate(time.Second),
	})
	if err != nil {
		return err
	}
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err = f.WriteAt(append(text, '\n'), 0)
	return err
}

// lockedBy reads the holder of the lock; a file that is being written has no name in it yet.
func lockedBy(root string, f *os.File) *store.LockedError {
	e := &store.LockedError{Path: root}
	text, err := io.ReadAll(io.NewSectionReader(f, 0, maxHolder))
	var h holder
	if err == nil && json.Unmarshal(text, &h) == nil {
		e.PID, e.Host, e.Command, e.Since = h.PID, h.Host, h.Command, h.Since
	}
	return e
}

// releaseLock gives the lock back and forgets the holder.
func releaseLock(f *os.File) error {
	return errors.Join(f.Truncate(0), f.Close())
}
