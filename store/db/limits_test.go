//go:build linux

package db

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"

	"symbolize/store"
)

// TestOpenFilesLimit opens a store with more files than the limit permits, in a process that has no
// other files open.
func TestOpenFilesLimit(t *testing.T) {
	path := t.TempDir()
	fillStore(t, path, 1, 9)
	if out, err := child(t, "limit", path).Output(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	mustVerify(t, path)
}

// childLimit is the process of TestOpenFilesLimit.
func childLimit(path string) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	limit.Cur = spareFiles + 2
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	_, rerr := OpenReader(path)
	_, werr := OpenWriter(context.Background(), path, WriterOptions{})
	if !errors.Is(rerr, store.ErrLimit) || !errors.Is(werr, store.ErrLimit) {
		return fmt.Errorf("reader %w, writer %w", rerr, werr)
	}
	return nil
}
