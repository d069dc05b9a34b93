//go:build linux

package db

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"symbolize/buildid"
	"symbolize/fixtures/sweep"
	"symbolize/store"
)

// crashCuts is the environment variable for the number of random cuts of TestCrash.
const crashCuts = "STORE_CRASH_CUTS"

// The writer of the crash test publishes crashRounds times, crashObjects objects each time.
const (
	crashRounds  = 4
	crashObjects = 5
)

func crashContribution(n int) *store.Contribution {
	table := killTable(n)
	entry := []byte(strings.Repeat("entry ", n*200+1))
	return &store.Contribution{
		Manifest: store.Manifest{ID: testID(n), Machine: 62, Variants: []store.Variant{
			{Entry: store.NewBlobID(entry), Program: uint32(n)}}},
		Sources: []store.NewSource{{
			Info:  store.SourceInfo{Kind: store.Symtab, Producer: 1, Path: fmt.Sprintf("/lib/%d", n)},
			Table: table, Raw: []byte(strings.Repeat("raw ", n*1000)),
		}},
	}
}

// crashWrite merges objects [from, to) with their rows.
func crashWrite(ctx context.Context, w *Writer, from, to int) error {
	for n := from; n < to; n++ {
		c := crashContribution(n)
		if _, err := w.PutBlob(ctx, []byte(strings.Repeat("entry ", n*200+1))); err != nil {
			return err
		}
		if err := w.Merge(ctx, c); err != nil {
			return err
		}
		rows := store.DirRows{{Name: "f", ID: testID(n)}}
		if err := w.PutDir(fmt.Sprintf("/lib/%d", n), rows); err != nil {
			return err
		}
	}
	return nil
}

// crashRemoved is an object that the collection removes.
const crashRemoved = 1000

func crashRemove(ctx context.Context, w *Writer) error {
	_, err := w.GC(ctx, GCOptions{Exists: func(string) bool { return true },
		Remove: map[buildid.ID]bool{testID(crashRemoved): true}})
	return err
}

// childCrash writes, publishes, opens again and collects. It prints how many objects are
// published as soon as they are.
func childCrash(path string) error {
	ctx := context.Background()
	opts := WriterOptions{PublishEvery: -1, LockTimeout: forkWait}
	w, err := OpenWriter(ctx, path, opts)
	if err != nil {
		return err
	}
	for round := range crashRounds {
		to := (round + 1) * crashObjects
		if err := crashWrite(ctx, w, to-crashObjects, to); err != nil {
			return err
		}
		switch round {
		case 1:
			if err := crashWrite(ctx, w, crashRemoved, crashRemoved+1); err != nil {
				return err
			}
			if err := w.Close(); err != nil {
				return err
			}
			if w, err = OpenWriter(ctx, path, opts); err != nil {
				return err
			}
		case 2:
			err = crashRemove(ctx, w)
		default:
			err = w.Publish()
		}
		if err != nil {
			return err
		}
		fmt.Printf("%d\n", to)
	}
	return w.Close()
}

// TestCrash runs a writer under ptrace and cuts the power at random system calls: data that was
// not synced is lost, there, or there in part, page by page, and each directory is as it was
// at some moment since it was synced. The published data is in the store all the same;
// it verifies; and a writer that goes on comes to the digest of one that nobody disturbed.
func TestCrash(t *testing.T) {
	t.Parallel()
	cuts := sweep.Most(30, 10)
	if text := os.Getenv(crashCuts); text != "" {
		cuts, _ = strconv.Atoi(text)
	}
	c := &crasher{t: t, rnd: sweep.Rand(t)}
	quiet := filepath.Join(t.TempDir(), "quiet")
	stops, err := c.run(quiet, func(int, int, *disk) error { return nil })
	if errors.Is(err, unix.EPERM) {
		t.Skipf("SKIPPED: no right to trace a process: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	c.want = digestOf(t, quiet)
	t.Logf("%d system calls to cut at", stops)
	for c.cuts < cuts && !t.Failed() {
		c.series(stops, min(10, cuts-c.cuts))
	}
	t.Logf("%d cuts; the newest generation before the cut was published in %d of them", c.cuts, c.had)
}

// crasher makes cuts.
type crasher struct {
	t     *testing.T
	rnd   *rand.Rand
	want  [32]byte
	cuts  int
	had   int    // cuts after something was published
	start string // a store after a cut, that the next writer begins with; "" for none
	names bool   // all changes of directories are kept, and all data is lost that was not synced
	begun int    // objects published in it
}

// run runs the writer on path and calls at after each call that changes the store, with the
// number of objects that it reports as published.
func (c *crasher) run(path string, at func(stop, published int, d *disk) error) (int, error) {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return 0, err
	}
	d, err := newDisk(path)
	if err != nil {
		return 0, err
	}
	says, err := os.Create(filepath.Join(c.t.TempDir(), "says"))
	if err != nil {
		return 0, err
	}
	defer says.Close()
	cmd := exec.Command(os.Args[0]) // nobody waits for it but the tracer
	cmd.Env = append(os.Environ(), childRole+"=crash", childStore+"="+path)
	cmd.Stdout, cmd.Stderr = says, os.Stderr
	t, err := traced(cmd, d, func(stop int) error {
		text, err := os.ReadFile(says.Name())
		if err != nil {
			return err
		}
		published := c.begun
		for line := range strings.Lines(string(text)) {
			if n, err := strconv.Atoi(strings.TrimSuffix(line, "\n")); err == nil {
				published = max(published, n)
			}
		}
		return at(stop, published, d)
	})
	if err != nil {
		return 0, err
	}
	return t.stops, nil
}

// series lets one writer run and cuts at some of its calls.
func (c *crasher) series(stops, n int) {
	path := filepath.Join(c.t.TempDir(), "store")
	if c.start != "" {
		copyStore(c.t, c.start, path)
	}
	chosen := make(map[int]bool)
	for range n {
		chosen[1+c.rnd.IntN(stops)] = true
	}
	next, begun := "", 0
	_, err := c.run(path, func(stop, published int, d *disk) error {
		if !chosen[stop] {
			return nil
		}
		image := filepath.Join(c.t.TempDir(), "image")
		if err := c.cut(d, image); err != nil {
			return err
		}
		if next == "" || c.rnd.IntN(2) == 0 {
			next, begun = filepath.Join(c.t.TempDir(), "next"), published
			copyStore(c.t, image, next)
		}
		c.check(image, published)
		c.cuts++
		if c.t.Failed() {
			return fmt.Errorf("at call %d, %d objects published", stop, published)
		}
		return nil
	})
	if err != nil {
		c.t.Fatal(err)
	}
	c.start, c.begun = "", 0
	if c.rnd.IntN(2) == 0 && next != "" {
		c.start, c.begun = next, begun
	}
}

// cut makes image a possible content of the disk if the power fails now.
func (c *crasher) cut(d *disk, image string) error {
	if err := d.list(); err != nil {
		return err
	}
	newest := len(d.listings) - 1
	// A file system with a journal keeps the order of all changes of directories; others may keep
	// the order of each directory alone.
	together, floor := c.rnd.IntN(2) == 0, 0
	for _, at := range d.synced {
		floor = max(floor, at)
	}
	moment := floor + c.rnd.IntN(newest-floor+1)
	lose := []float64{0, 0.1, 0.5, 0.9, 1}[c.rnd.IntN(5)]
	if c.names {
		together, moment, lose = true, newest, 1
	}
	made := make(map[inode]string)
	var build func(path string, dir inode) error
	build = func(path string, dir inode) error {
		if err := os.Mkdir(path, 0o755); err != nil {
			return err
		}
		at := moment
		if !together || d.listings[at][dir] == nil {
			at = d.synced[dir]
			at += c.rnd.IntN(newest - at + 1)
			for at > d.synced[dir] && d.listings[at][dir] == nil {
				at--
			}
		}
		for name, id := range d.listings[at][dir] {
			to := filepath.Join(path, name)
			var err error
			switch first, ok := made[id]; {
			case d.isDir[id]:
				err = build(to, id)
			case ok:
				err = os.Link(first, to)
			default:
				made[id] = to
				err = c.file(d, id, to, lose)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	return build(image, d.top)
}

// file writes a possible rest of a file: of each page its content now or when it was synced, and of
// its two sizes one.
func (c *crasher) file(d *disk, id inode, to string, lose float64) error {
	old, now := d.durable[id], content{}
	if current, _, err := inodeOf(d.paths[id]); err == nil && current == id {
		if now, err = readContent(d.paths[id]); err != nil {
			return err
		}
	} else {
		now = old // removed since: its last content is not known
	}
	size := now.size
	if c.rnd.Float64() < lose {
		size = old.size
	}
	f, err := os.Create(to)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Truncate(size); err != nil {
		return err
	}
	for page := range (size + pageSize - 1) / pageSize {
		a, b := old.pages[page], now.pages[page]
		if a == nil && b == nil {
			continue
		}
		if c.rnd.Float64() < lose {
			b = a
		}
		if b == nil {
			continue
		}
		if _, err := f.WriteAt(b[:min(pageSize, size-page*pageSize)], page*pageSize); err != nil {
			return err
		}
	}
	return nil
}

// check opens, verifies and indexes on.
func (c *crasher) check(image string, published int) {
	t, ctx := c.t, c.t.Context()
	r, err := OpenReader(image)
	switch {
	case err == nil:
		if n := crashFound(t, r, published); n != published {
			t.Errorf("a reader finds %d of %d published objects", n, published)
		}
		ms, err := r.Find(testID(crashRemoved))
		if c.start == "" && published >= 3*crashObjects && len(ms) > 0 {
			t.Errorf("a removed object is back: %v, %v", ms, err)
		}
		if v, err := r.Verify(ctx); err != nil || !v.Sound() {
			t.Errorf("verify after the cut: %+v, %v", v, err)
		}
		r.Close()
		c.had++
	case published > 0:
		t.Errorf("%d objects were published: %v", published, err)
	}
	w, err := OpenWriter(ctx, image, WriterOptions{PublishEvery: -1, LockTimeout: forkWait})
	if err != nil {
		t.Errorf("writer: %v", err)
		return
	}
	defer w.Close()
	if n := crashFound(t, w, published); n != published {
		t.Errorf("a writer finds %d of %d published objects", n, published)
	}
	if v, err := w.Verify(ctx); err != nil || !v.Sound() {
		t.Errorf("verify of what was taken up: %+v, %v", v, err)
	}
	err = crashWrite(ctx, w, 0, crashRounds*crashObjects)
	if ms, _ := w.Find(testID(crashRemoved)); len(ms) > 0 {
		err = errors.Join(err, crashRemove(ctx, w))
	}
	err = errors.Join(err, w.Close())
	if err != nil {
		t.Errorf("indexing on: %v", err)
		return
	}
	mustVerify(t, image)
	if got := digestOf(t, image); got != c.want {
		t.Errorf("digest %x, undisturbed %x", got, c.want)
	}
}

// crashFound returns how many of the first n objects are there.
func crashFound(t *testing.T, v store.View, n int) (found int) {
	t.Helper()
	for i := range n {
		ms, err := v.Find(testID(i))
		if err == nil && len(ms) == 1 && len(ms[0].Sources) == 1 {
			found++
		}
	}
	return found
}
