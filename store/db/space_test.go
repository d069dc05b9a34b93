//go:build linux

package db

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"symbolize/store"
)

// TestSpaceGuard has a disk that fills up by a fake free count.
func TestSpaceGuard(t *testing.T) {
	w := openTestWriter(t, "")
	mustMerge(t, w, testContribution(t, 0, 50))
	free := int64(64 << 20)
	w.space.free = func(string) (int64, error) { return free, nil }
	n := 1
	for ; n < 1000; n++ {
		err := w.Merge(context.Background(), testContribution(t, n, 50))
		if errors.Is(err, store.ErrNoSpace) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		free -= 1 << 20
	}
	if n < 10 || n > 64 {
		t.Errorf("%d objects until 64 MiB were taken", n)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if v := mustVerify(t, w.path); v.Objects != n {
		t.Errorf("%d objects, %d were merged", v.Objects, n)
	}
}

func TestNoSpaceToOpen(t *testing.T) {
	path := t.TempDir()
	guard := newSpaceGuard(path)
	guard.free = func(string) (int64, error) { return 1 << 20, nil }
	w := &Writer{database: &database{path: path}}
	if err := w.roomToOpen(guard); !errors.Is(err, store.ErrNoSpace) {
		t.Errorf("1 MiB free: %v", err)
	}
	guard.free = func(string) (int64, error) { return 0, errors.New("no such thing") }
	if err := w.roomToOpen(guard); err == nil || errors.Is(err, store.ErrNoSpace) {
		t.Errorf("free space not known: %v", err)
	}
}

// childFill writes until the disk is full: mostly small tables, which go through memtables and
// compactions, and sometimes a large one, which goes to the value log.
func childFill(path string) error {
	w, err := OpenWriter(context.Background(), path, WriterOptions{PublishEvery: -1})
	if err != nil {
		return err
	}
	large := killTable(0)
	small := killTable(1)
	n := 0
	for ; err == nil && n < 1e6; n++ {
		table := small
		if n%100 == 0 {
			table = large
		}
		err = w.Merge(context.Background(), &store.Contribution{Manifest: store.Manifest{ID: testID(n)},
			Sources: []store.NewSource{{Info: store.SourceInfo{Kind: store.Symtab}, Table: table}}})
	}
	fmt.Println(n - 1)
	if cerr := w.Close(); cerr != nil {
		return fmt.Errorf("close: %w", cerr)
	}
	if !errors.Is(err, store.ErrNoSpace) {
		return fmt.Errorf("not ended by ErrNoSpace: %w", err)
	}
	return nil
}

// TestReadOnlyMount reads a store on a file system that is mounted read-only.
func TestReadOnlyMount(t *testing.T) {
	if os.Getenv("SYMBOLIZE_LIVE") == "" {
		t.Skip("LIVE TEST SKIPPED: needs root to mount a tmpfs; set SYMBOLIZE_LIVE=1")
	}
	mnt := t.TempDir()
	if err := syscall.Mount("tmpfs", mnt, "tmpfs", 0, "size=64m"); err != nil {
		t.Fatalf("mount: %v", err)
	}
	t.Cleanup(func() { syscall.Unmount(mnt, 0) })
	path := filepath.Join(mnt, "store")
	fillStore(t, path, 300, 310)
	if err := syscall.Mount("", mnt, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatalf("remount: %v", err)
	}
	r := openTestReader(t, path)
	checkObject(t, r, 305, 325)
	if r.state.shadow != "" {
		t.Log("through a shadow directory")
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	_, err := OpenWriter(context.Background(), path, WriterOptions{})
	if !errors.Is(err, syscall.EROFS) {
		t.Errorf("writer: %v", err)
	}
}

// TestFullDisk fills a small file system, in a process of its own because Badger dies of SIGBUS
// when it writes to a page for which the disk has no space. The writer ends with ErrNoSpace and the
// store verifies.
func TestFullDisk(t *testing.T) {
	if os.Getenv("SYMBOLIZE_LIVE") == "" {
		t.Skip("LIVE TEST SKIPPED: needs root to mount a tmpfs; set SYMBOLIZE_LIVE=1")
	}
	for _, size := range []string{"3m", "12m", "24m", "48m"} {
		mnt := t.TempDir()
		if err := syscall.Mount("tmpfs", mnt, "tmpfs", 0, "size="+size); err != nil {
			t.Fatalf("mount: %v", err)
		}
		t.Cleanup(func() { syscall.Unmount(mnt, 0) })
		path := filepath.Join(mnt, "store")
		cmd := child(t, "fill", path)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if size == "3m" {
			if err == nil || !strings.Contains(stderr.String(), store.ErrNoSpace.Error()) {
				t.Errorf("%s: %v, %s", size, err, stderr.String())
			}
			continue // too little space to begin
		}
		if err != nil {
			t.Errorf("%s: %v\n%s%s", size, err, out, stderr.String())
			continue
		}
		v := mustVerify(t, path)
		if fmt.Sprintln(v.Objects) != string(out) {
			t.Errorf("%s: %d objects, the writer said %s", size, v.Objects, out)
		}
		t.Logf("%s: %d objects of %d bytes", size, v.Objects, v.Bytes)
		// A second run on the full disk reports it too, and harms nothing.
		if _, err := child(t, "fill", path).Output(); err == nil && v.Objects == 0 {
			t.Errorf("%s: second run: %v", size, err)
		}
		mustVerify(t, path)
		if err := syscall.Unmount(mnt, 0); err != nil {
			t.Error(err)
		}
	}
}
