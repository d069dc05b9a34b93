//go:build unix

package db

import (
	"context"
	"errors"
	"syscall"
	"testing"

	"symbolize/store"
)

// TestOpenFilesLimit opens a store for whose files the limit is too low.
func TestOpenFilesLimit(t *testing.T) {
	path := t.TempDir()
	fillStore(t, path, 1, 9)
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	low := old
	low.Cur = spareFiles + 2
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &low); err != nil {
		t.Fatal(err)
	}
	r, rerr := OpenReader(path)
	w, werr := OpenWriter(context.Background(), path, WriterOptions{})
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	if rerr == nil {
		r.Close()
	}
	if werr == nil {
		w.Close()
	}
	if !errors.Is(rerr, store.ErrLimit) || !errors.Is(werr, store.ErrLimit) {
		t.Errorf("reader %v, writer %v", rerr, werr)
	}
	mustVerify(t, path)
}
