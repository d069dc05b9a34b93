package indexer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"symbolize/buildid"
	"symbolize/fixtures/must"
	"symbolize/store"
	"symbolize/store/db"
)

// tree copies the recorded programs to a directory of the test.
func tree(t testing.TB) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"bin/mixed", "bin/mixed.debug", "bin/fixed", "bin/spawn",
		"bin/gone", "lib/libkernels.so"} {
		must.Write(t, filepath.Join(root, name), fixture(t, name))
	}
	must.Write(t, filepath.Join(root, "README"), []byte("no object\n"))
	must.Write(t, filepath.Join(root, "empty"), nil)
	settle()
	return root
}

func TestIndexTree(t *testing.T) {
	root, m := tree(t), newMemory()
	sum := m.index(t, Options{}, root)
	if sum.Files != 8 || sum.ELF != 6 || sum.Read != 6 || sum.Objects != 5 || sum.Debug != 1 ||
		sum.Unchanged != 0 || sum.Nameless != 0 || len(sum.Problems) != 0 || sum.Dirs != 3 {
		t.Errorf("summary %+v", sum)
	}
	if m.opened != 1 {
		t.Errorf("the sink was opened %d times", m.opened)
	}
	id := mixedID(t)
	o := m.object(t, id)
	if len(o.Layout) != 2 || o.Machine != 62 || o.Class != 2 {
		t.Errorf("mixed: %d segments, machine %d, class %d", len(o.Layout), o.Machine, o.Class)
	}
	kinds := map[store.SourceKind]string{store.Symtab: "main", store.PLT: "malloc@plt"}
	for kind, name := range kinds {
		names := m.names(t, id, kind)
		if len(names) == 0 || kind == store.Symtab && !slices.Contains(names, name) {
			t.Errorf("%s of mixed: %q", kind, names)
		}
		for _, n := range names {
			if kind == store.PLT && !strings.HasSuffix(n, "@plt") {
				t.Errorf("PLT of mixed names %q", n)
			}
		}
	}
	rows, ok, err := m.Dir(filepath.Join(root, "bin"))
	if err != nil || !ok || len(rows) != 5 {
		t.Fatalf("rows of bin: %v, %v, %v", rows, ok, err)
	}
	if row := rows.Find("mixed"); !row.ID.Matches(id) || row.Producer != Producer || row.Inode == 0 {
		t.Errorf("row of mixed: %+v", row)
	}
}

// TestOrderChangesNothing gives the same files one by one in every order of a few, and all at once
// to one worker and to many.
func TestOrderChangesNothing(t *testing.T) {
	root := tree(t)
	files := []string{"bin/mixed", "bin/mixed.debug", "lib/libkernels.so", "bin/fixed"}
	var want string
	for i := range 24 {
		m, order := newMemory(), slices.Clone(files)
		for k, rest := 0, i; k < len(order); k++ {
			n := len(order) - k
			order[k], order[k+rest%n] = order[k+rest%n], order[k]
			rest /= n
		}
		for _, name := range order {
			m.index(t, Options{}, filepath.Join(root, name))
		}
		got := m.dump(t, root)
		if want == "" {
			want = got
		}
		if got != want {
			t.Fatalf("order %v gives\n%s\nnot\n%s", order, got, want)
		}
	}
	var first *Summary
	for _, workers := range []int{1, 2, 7} {
		m := newMemory()
		sum := m.index(t, Options{Workers: workers, MaxMemory: 1 << 20}, root)
		if first == nil {
			first, want = sum, m.dump(t, root)
		}
		if got := m.dump(t, root); got != want || !reflect.DeepEqual(sum, first) {
			t.Errorf("%d workers: %+v\n%s\nnot %+v\n%s", workers, sum, got, first, want)
		}
	}
}

// TestOrderInStore is the same on disk: one digest.
func TestOrderInStore(t *testing.T) {
	root := tree(t)
	var sums [][32]byte
	for _, paths := range [][]string{
		{"bin/mixed", "bin/mixed.debug"}, {"bin/mixed.debug", "bin/mixed"},
	} {
		w, err := db.OpenWriter(t.Context(), t.TempDir(), db.WriterOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range paths {
			open := func() (store.Sink, error) { return w, nil }
			opts := Options{DebugRoots: []string{}}
			path := []string{filepath.Join(root, p)}
			if _, err := Index(t.Context(), path, w, open, opts); err != nil {
				t.Fatal(err)
			}
		}
		sum, err := w.Digest(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		sums = append(sums, sum)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if sums[0] != sums[1] {
		t.Error("the digest depends on the order")
	}
}

func TestUnchangedTreeTouchesNothing(t *testing.T) {
	root, m := tree(t), newMemory()
	first := m.index(t, Options{}, root)
	sum := m.again(t, Options{}, root)
	if sum.Unchanged != 8 || sum.Read != 0 || sum.Files != 8 || sum.ELF != first.ELF ||
		sum.Objects != first.Objects {
		t.Errorf("first %+v\nagain %+v", first, sum)
	}
	m.again(t, Options{}, filepath.Join(root, "bin/mixed"), filepath.Join(root, "lib"))
}

func TestChanges(t *testing.T) {
	bin := func(root, name string) string { return filepath.Join(root, "bin", name) }
	tests := []struct {
		name   string
		change func(t *testing.T, root string)
		read   uint64
		gone   string // a row that must be gone
	}{
		{name: "touched", change: func(t *testing.T, root string) {
			must.Write(t, bin(root, "fixed"), fixture(t, "bin/fixed"))
		}, read: 1},
		{name: "replaced by another object", change: func(t *testing.T, root string) {
			must.Write(t, bin(root, "new"), fixture(t, "bin/spawn"))
			if err := os.Rename(bin(root, "new"), bin(root, "fixed")); err != nil {
				t.Fatal(err)
			}
		}, read: 1},
		{name: "added", change: func(t *testing.T, root string) {
			must.Write(t, bin(root, "added"), fixture(t, "bin/bpfload"))
		}, read: 1},
		{name: "no object any more", change: func(t *testing.T, root string) {
			must.Write(t, bin(root, "spawn"), []byte("#!/bin/sh\n"))
		}, read: 0},
		{name: "deleted", change: func(t *testing.T, root string) {
			if err := os.Remove(bin(root, "gone")); err != nil {
				t.Fatal(err)
			}
		}, read: 0, gone: "gone"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			root, m := tree(t), newMemory()
			m.index(t, Options{}, root)
			m.puts = nil
			tt.change(t, root)
			settle()
			sum := m.index(t, Options{}, root)
			if sum.Read != tt.read {
				t.Errorf("%d files read, want %d", sum.Read, tt.read)
			}
			if want := []string{filepath.Join(root, "bin")}; !slices.Equal(m.puts, want) {
				t.Errorf("rows written of %q, want %q", m.puts, want)
			}
			rows, _, _ := m.Dir(filepath.Join(root, "bin"))
			if tt.gone != "" && rows.Find(tt.gone) != nil {
				t.Errorf("row of %s is still there", tt.gone)
			}
			m.again(t, Options{}, root)
		})
	}
}

// TestOlderProducer has rows that an older program wrote.
func TestOlderProducer(t *testing.T) {
	root, m := tree(t), newMemory()
	m.index(t, Options{}, root)
	dir := filepath.Join(root, "lib")
	rows, _, _ := m.Dir(dir)
	rows[0].Producer = 0
	if err := m.PutDir(dir, rows); err != nil {
		t.Fatal(err)
	}
	if sum := m.index(t, Options{}, root); sum.Read != 1 {
		t.Errorf("%d files read, want 1", sum.Read)
	}
}

func TestHardLinksAreReadOnce(t *testing.T) {
	for _, workers := range []int{1, 4} {
		root, m := tree(t), newMemory()
		for _, name := range []string{"a", "lib/z", "bin/b"} {
			err := os.Link(filepath.Join(root, "bin/fixed"), filepath.Join(root, name))
			if err != nil {
				t.Skip(err)
			}
		}
		settle()
		sum := m.index(t, Options{Workers: workers}, root)
		if sum.Read != 6 || sum.Skipped[SkipDuplicate] != 3 || sum.ELF != 9 {
			t.Errorf("read %d, ELF %d, skipped %v", sum.Read, sum.ELF, sum.Skipped)
		}
		if !strings.Contains(m.dump(t, root), "symtab from a, ") {
			t.Error("the source does not have the smallest path")
		}
		m.again(t, Options{}, root)
	}
}

func TestRoots(t *testing.T) {
	root, m := tree(t), newMemory()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(root, link); err != nil {
		t.Fatal(err)
	}
	// Inside a tree links are not followed, not even to itself.
	for name, to := range map[string]string{"loop": ".", "other": "bin/fixed", "gone": "nowhere"} {
		if err := os.Symlink(to, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	sum := m.index(t, Options{}, link, root, filepath.Join(root, "bin"),
		filepath.Join(link, "bin/fixed"))
	if sum.Read != 6 || sum.Dirs != 3 {
		t.Errorf("read %d files of %d directories", sum.Read, sum.Dirs)
	}
}

func TestBadPaths(t *testing.T) {
	root, m := tree(t), newMemory()
	must.Write(t, filepath.Join(root, "text"), []byte("some text that is no object\n"))
	must.Write(t, filepath.Join(root, "noid/System.map"),
		[]byte("ffffffff81000000 T _text\nffffffff81000100 T x\n"))
	sum := m.index(t, Options{}, filepath.Join(root, "nowhere"), filepath.Join(root, "text"),
		filepath.Join(root, "noid/System.map"), filepath.Join(root, "bin/fixed"))
	want := "noid/System.map: kallsyms of an unknown kernel: no build ID\n" +
		"nowhere: no such file or directory\n" + "text: " + errNoObject.Error()
	if got := problems(sum, root); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for _, p := range sum.Problems {
		if !p.Named {
			t.Errorf("%v is not marked as named by the user", p)
		}
	}
	if sum.Read != 1 {
		t.Errorf("%d files read, want 1", sum.Read)
	}
}

func TestDamagedFiles(t *testing.T) {
	root, m := tree(t), newMemory()
	whole := fixture(t, "bin/fixed")
	must.Write(t, filepath.Join(root, "bin/cut"), whole[:40])
	must.Write(t, filepath.Join(root, "bin/cut2"), whole[:len(whole)-100])
	settle()
	sum := m.index(t, Options{}, root)
	if sum.Read != 6 || sum.Skipped[SkipDamaged] != 2 || len(sum.Problems) != 2 {
		t.Errorf("read %d, skipped %v, problems %v", sum.Read, sum.Skipped, sum.Problems)
	}
	for _, p := range sum.Problems {
		if !strings.Contains(p.Error(), "offset 0x") || strings.Count(p.Error(), p.Path) != 1 {
			t.Errorf("problem %q", p.Error())
		}
	}
	again := m.again(t, Options{}, root)
	if got, want := problems(again, root), problems(sum, root); got != want {
		t.Errorf("the second run says\n%s\nthe first\n%s", got, want)
	}
}

// TestTruncated indexes every prefix of an object: never a panic, and the result is a consistent
// table.
func TestTruncated(t *testing.T) {
	whole := fixture(t, "lib/libkernels.so")
	dir := t.TempDir()
	for n := 0; n < len(whole); n += 61 {
		must.Write(t, filepath.Join(dir, fmt.Sprintf("cut%05d", n)), whole[:n])
	}
	m := newMemory()
	sum := m.index(t, Options{}, dir)
	if len(sum.Problems) == 0 {
		t.Error("no prefix is a problem")
	}
	m.dump(t, dir)
}

func TestUnreadableDirectory(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root reads every directory")
	}
	root, m := tree(t), newMemory()
	if err := os.Chmod(filepath.Join(root, "lib"), 0); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(filepath.Join(root, "lib"), 0o755)
	sum := m.index(t, Options{}, root)
	if problems(sum, root) != "lib: permission denied" || sum.Read != 5 {
		t.Errorf("read %d, problems %v", sum.Read, sum.Problems)
	}
	m.again(t, Options{}, root)
}

func TestCancelAndSinkErrors(t *testing.T) {
	root, m := tree(t), newMemory()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Index(ctx, []string{root}, m, m.open, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	m.fail = store.ErrNoSpace
	sum, err := Index(t.Context(), []string{root}, m, m.open, Options{DebugRoots: []string{}})
	if !errors.Is(err, store.ErrNoSpace) || sum == nil {
		t.Errorf("full disk: %v, %v", sum, err)
	}
	for _, dir := range []string{"bin", "lib"} {
		if slices.Contains(m.puts, filepath.Join(root, dir)) {
			t.Errorf("rows of %s were written, though its objects were not stored", dir)
		}
	}
	locked := &store.LockedError{Path: "x", PID: 7}
	_, err = Index(t.Context(), []string{root}, nil, func() (store.Sink, error) { return nil, locked },
		Options{DebugRoots: []string{}})
	if !errors.Is(err, store.ErrLocked) {
		t.Errorf("locked: %v", err)
	}
}

// TestTooLarge has a sink that refuses one object and one directory: the rest is done.
func TestTooLarge(t *testing.T) {
	root, m := tree(t), newMemory()
	id := mixedID(t)
	picky := &pickySink{memory: m, object: id, dir: filepath.Join(root, "lib")}
	sum, err := Index(t.Context(), []string{root}, m, func() (store.Sink, error) { return picky, nil },
		Options{DebugRoots: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	want := "bin/mixed: refused: too large for the store\n" +
		"bin/mixed.debug: refused: too large for the store\nlib: refused: too large for the store"
	if got := problems(sum, root); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if sum.Skipped[SkipTooLarge] != 2 || len(m.ids) != 4 {
		t.Errorf("skipped %v, %d objects", sum.Skipped, len(m.ids))
	}
	if rows, _, _ := m.Dir(filepath.Join(root, "bin")); rows.Find("mixed").Error == "" {
		t.Error("the row says nothing of it")
	}
}

// pickySink refuses one object and one directory.
type pickySink struct {
	*memory
	object buildid.ID
	dir    string
}

func (p *pickySink) Merge(ctx context.Context, c *store.Contribution) error {
	if c.Manifest.ID == p.object {
		return fmt.Errorf("refused: %w", store.ErrTooLarge)
	}
	return p.memory.Merge(ctx, c)
}

func (p *pickySink) PutDir(dir string, rows store.DirRows) error {
	if dir == p.dir {
		return fmt.Errorf("refused: %w", store.ErrTooLarge)
	}
	return p.memory.PutDir(dir, rows)
}

// TestFilesOfOneDirectoryKeepEachOthersRows names files of a directory one after
// another.
func TestFilesOfOneDirectoryKeepEachOthersRows(t *testing.T) {
	root, m := tree(t), newMemory()
	for _, name := range []string{"fixed", "spawn", "mixed"} {
		m.index(t, Options{}, filepath.Join(root, "bin", name))
	}
	rows, _, _ := m.Dir(filepath.Join(root, "bin"))
	if len(rows) != 3 {
		t.Fatalf("rows %+v", rows)
	}
	all := []string{filepath.Join(root, "bin/fixed"), filepath.Join(root, "bin/mixed")}
	if sum := m.again(t, Options{}, all...); sum.Unchanged != 2 {
		t.Errorf("%d unchanged", sum.Unchanged)
	}
}

// TestJustWritten has files so new that they may change without a trace.
func TestJustWritten(t *testing.T) {
	root, m := realDir(t), newMemory()
	must.Write(t, filepath.Join(root, "a"), fixture(t, "bin/fixed"))
	m.index(t, Options{}, root)
	rows, _, _ := m.Dir(root)
	st, err := statFile(filepath.Join(root, "a"))
	if err != nil {
		t.Fatal(err)
	}
	if fresh := rows[0].Producer == 0; fresh == matches(&st, st.dev, &rows[0], Producer) {
		t.Errorf("row %+v matches %v", rows[0], matches(&st, st.dev, &rows[0], Producer))
	}
	settle()
	m.index(t, Options{}, root)
	m.again(t, Options{}, root)
}

// TestRowMatches changes each thing that a row knows of a file.
func TestRowMatches(t *testing.T) {
	st := fileStat{kind: kindFile, dev: 1, ino: 2, size: 3, mtime: 4, ctime: 5}
	for i, change := range []func(r *store.PathRow){
		func(*store.PathRow) {},
		func(r *store.PathRow) { r.Dev++ }, func(r *store.PathRow) { r.Inode++ },
		func(r *store.PathRow) { r.Size++ }, func(r *store.PathRow) { r.MtimeNs++ },
		func(r *store.PathRow) { r.CtimeNs++ }, func(r *store.PathRow) { r.Producer-- },
	} {
		row := rowOf(&st, st.dev, "x", Producer)
		change(&row)
		if got := matches(&st, st.dev, &row, Producer); got != (i == 0) {
			t.Errorf("change %d: %v", i, got)
		}
	}
	newer := rowOf(&st, st.dev, "x", Producer)
	newer.Producer++
	if !matches(&st, st.dev, &newer, Producer) {
		t.Error("a row of a newer program makes an older one read the file again")
	}
}

func TestProgress(t *testing.T) {
	root, m := tree(t), newMemory()
	var calls []Progress
	m.index(t, Options{Progress: func(p Progress) { calls = append(calls, p) }}, root)
	last := calls[len(calls)-1]
	if last.Files != 8 || last.Done != last.Objects || last.Done < 6 || last.Bytes == 0 || last.Bytes != last.Size ||
		last.Dirs != 3 {
		t.Errorf("last call %+v", last)
	}
}

// TestProgressWithinFile moves the bytes while a file is read, never back.
func TestProgressWithinFile(t *testing.T) {
	ix := &index{}
	w := &fileReader{ix: ix}
	w.advance(1, 2) // no file: the kernel's list
	w.task = &fileTask{st: fileStat{size: 1000}}
	for _, step := range []struct{ done, total, want uint64 }{
		{done: 1, total: 4, want: 250}, {done: 0, total: 4, want: 250}, {done: 2, total: 4,
			want: 500}, {done: 1, total: 0, want: 500}, {done: 9, total: 4, want: 1000}, {done: 4,
			total: 4, want: 1000},
	} {
		if w.advance(step.done, step.total); ix.prog.Bytes != step.want {
			t.Errorf("%d of %d: %d bytes, want %d", step.done, step.total, ix.prog.Bytes, step.want)
		}
	}
}

func TestNoBuildID(t *testing.T) {
	root, m := tree(t), newMemory()
	b := withoutID(t, fixture(t, "bin/fixed"))
	must.Write(t, filepath.Join(root, "bin/fixed"), b)
	sum := m.index(t, Options{}, filepath.Join(root, "bin/fixed"))
	if sum.NoBuildID != 1 || sum.Objects != 1 {
		t.Fatalf("summary %+v", sum)
	}
	for id := range m.ids {
		if want, _ := buildid.FromContent(bytes.NewReader(b)); id != want {
			t.Errorf("filed under %s, its content is %s", id, want)
		}
		if !slices.Contains(m.names(t, id, store.Symtab), "main") {
			t.Error("it has no main")
		}
	}
}
