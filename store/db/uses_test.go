package db

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"symbolize/buildid"
	"symbolize/fixtures/must"
	"symbolize/store"
)

// at returns a time on the day that is so many days before today.
func daysAgo(n int) time.Time { return day(time.Now()).AddDate(0, 0, -n).Add(5 * time.Hour) }

func mustMark(tb testing.TB, path string, ago int, objects ...int) {
	tb.Helper()
	var ids []buildid.ID
	for _, n := range objects {
		ids = append(ids, testID(n))
	}
	if err := markUsed(path, ids, daysAgo(ago)); err != nil {
		tb.Fatal(err)
	}
}

// usesText returns all files of days with their lines.
func usesText(tb testing.TB, path string) string {
	tb.Helper()
	var b strings.Builder
	names, err := filepath.Glob(filepath.Join(path, usesName, "*"))
	if err != nil {
		tb.Fatal(err)
	}
	for _, name := range names {
		text := must.Read(tb, name)
		b.WriteString(filepath.Base(name) + ":\n" + string(text))
	}
	return b.String()
}

func TestMarkUsed(t *testing.T) {
	path := t.TempDir()
	mustMark(t, path, 9, 1, 2, 3)
	mustMark(t, path, 3, 2)
	mustMark(t, path, 0, 3, 3)
	before := usesText(t, path)
	mustMark(t, path, 0, 3)
	if got := usesText(t, path); got != before {
		t.Errorf("an object is noted twice a day:\n%s\nwas\n%s", got, before)
	}
	check := func(what string) {
		t.Helper()
		last, err := readUses(path, time.Now())
		if err != nil || len(last) != 3 {
			t.Fatalf("%s: %v, %v", what, last, err)
		}
		for n, ago := range map[int]int{1: 9, 2: 3, 3: 0} {
			if got := last.day(testID(n)); !got.Equal(day(daysAgo(ago))) {
				t.Errorf("%s: object %d: %v, %d days ago", what, n, got, ago)
			}
		}
	}
	check("as noted")
	if err := compactUses(path, time.Now(), nil); err != nil {
		t.Fatal(err)
	}
	check("compacted")
	nine := daysAgo(9).Format(dayForm)
	if got := usesText(t, path); strings.Count(got, "\n") != 6 || strings.Contains(got, nine+"-") ||
		!strings.Contains(got, nine+":\n"+store.ObjectName(testID(1))+"\n") {
		t.Errorf("compacted:\n%s", got)
	}
}

// TestMarkDemangled notes objects with demangled names: each once, not as used, and GC's compaction
// keeps the notes.
func TestMarkDemangled(t *testing.T) {
	path := t.TempDir()
	r := &Reader{database: &database{path: path}}
	check := func(want ...int) {
		t.Helper()
		noted, err := r.Demangled()
		if err != nil {
			t.Fatal(err)
		}
		for n := range 4 {
			if got := noted(testID(n)); got != slices.Contains(want, n) {
				t.Errorf("object %d: %v, want those of %v", n, got, want)
			}
		}
	}
	check()
	for _, n := range []int{1, 3, 1} {
		if err := r.MarkDemangled(testID(n)); err != nil {
			t.Fatal(err)
		}
	}
	check(1, 3)
	if text := usesText(t, path); strings.Count(text, "\n") != 3 {
		t.Errorf("notes:\n%s", text)
	}
	if last, err := readUses(path, time.Now()); err != nil || len(last) != 0 {
		t.Errorf("used: %v, %v", last, err)
	}
	if err := compactUses(path, time.Now(), func(buildid.ID) bool { return false }); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(path, usesName, namesPrefix+"7")
	must.Write(t, other, []byte(store.ObjectName(testID(2))+"\ncut"))
	check(1, 2, 3)
	err := errors.Join(os.Remove(other), os.Symlink(filepath.Join(path, "x"), other))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Demangled(); !errors.Is(err, store.ErrUnsafe) {
		t.Errorf("a link: %v", err)
	}
}

// TestUsesDamaged cuts the notes of a day everywhere, and appends to them: no object gets a day
// that is not its own, and appended lines are read.
func TestUsesDamaged(t *testing.T) {
	path := t.TempDir()
	mustMark(t, path, 1, 1, 2)
	names, _ := filepath.Glob(filepath.Join(path, usesName, "*"))
	text := must.Read(t, names[0])
	for n := range text {
		must.Write(t, names[0], text[:n])
		mustMark(t, path, 1, 3)
		last, err := readUses(path, time.Now())
		if err != nil || !last.day(testID(3)).Equal(day(daysAgo(1))) {
			t.Fatalf("%d bytes: %v, %v", n, last, err)
		}
		delete(last, objectHash(testID(3)))
		for _, whole := range []buildid.ID{testID(1), testID(2)} {
			for cut := range whole.Len() + 1 { // a line that was cut
				delete(last, objectHash(buildid.New(whole.Bytes()[:cut])))
			}
		}
		if len(last) > 0 {
			t.Fatalf("%d bytes: %v", n, last)
		}
	}
}

// TestUsesWrongClock: days to come are no days of use, and the next GC removes them.
func TestUsesWrongClock(t *testing.T) {
	path := t.TempDir()
	mustMark(t, path, -400, 1)
	if last, err := readUses(path, time.Now()); err != nil || len(last) != 0 {
		t.Errorf("%v, %v", last, err)
	}
	if err := compactUses(path, time.Now(), nil); err != nil || usesText(t, path) != "" {
		t.Errorf("%v, %q", err, usesText(t, path))
	}
}

// TestUsesLinks: notes go to files of the store alone.
func TestUsesLinks(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(path, other string) error
	}{
		{name: "directory", make: func(path, other string) error {
			return os.Symlink(other, filepath.Join(path, usesName))
		}},
		{name: "file", make: func(path, other string) error {
			if err := makeUses(path); err != nil {
				return err
			}
			if err := markUsed(path, []buildid.ID{testID(1)}, time.Now()); err != nil {
				return err
			}
			names, _ := filepath.Glob(filepath.Join(path, usesName, "*"))
			return errors.Join(os.Remove(names[0]), os.Symlink(filepath.Join(other, "x"), names[0]))
		}},
	} {
		path, other := t.TempDir(), t.TempDir()
		if err := c.make(path, other); err != nil {
			t.Fatal(err)
		}
		err := markUsed(path, []buildid.ID{testID(2)}, time.Now())
		if !errors.Is(err, store.ErrUnsafe) {
			t.Errorf("%s: %v", c.name, err)
		}
		if names, _ := os.ReadDir(other); len(names) > 0 {
			t.Errorf("%s: written through the link", c.name)
		}
	}
}

// TestKeep drops objects neither indexed nor used for long, and dates those without a day.
func TestKeep(t *testing.T) {
	path := t.TempDir()
	fillStore(t, path, 0, 6)
	w := openTestWriter(t, path)
	rows := store.DirRows{{Name: "a", ID: testID(1)}, {Name: "b", ID: testID(2)}}
	if err := errors.Join(w.PutDir("/lib", rows), w.Close()); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(path, usesName)); err != nil {
		t.Fatal(err)
	}
	mustMark(t, path, 40, 0, 1, 2)
	mustMark(t, path, 29, 2)
	mustMark(t, path, 10, 3)
	since := day(time.Now()).AddDate(0, 0, -30)
	var gone []string
	opts := GCOptions{Since: since, Exists: func(string) bool { return true },
		Gone: func(g Gone) {
			gone = append(gone, g.Manifest.ID.String()+" "+g.LastUsed.Format(dayForm))
		}}
	r := openTestReader(t, path)
	plan, err := r.PlanGC(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	if w, err = OpenWriter(t.Context(), path, WriterOptions{}); err != nil {
		t.Fatal(err)
	}
	res, err := w.GC(t.Context(), opts)
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]*GCResult{"plan": plan, "gc": res} {
		if got.Objects != 4 || got.Dropped != 2 || got.Undated != 2 || got.RowsDropped != 1 {
			t.Errorf("%s: %+v", name, got)
		}
	}
	last40 := " " + daysAgo(40).Format(dayForm)
	want := []string{testID(0).String() + last40, testID(1).String() + last40}
	if !slices.Equal(gone, append(want, want...)) {
		t.Errorf("gone %q, of the plan and gc %q each", gone, want)
	}
	if v := mustVerify(t, path); v.Objects != 4 || len(v.Problems) > 0 {
		t.Errorf("verify: %+v", v)
	}
	if text := usesText(t, path); strings.Contains(text, store.ObjectName(testID(1))) {
		t.Errorf("a dropped object keeps its day:\n%s", text)
	}
	last, err := readUses(path, time.Now())
	if err != nil || !last.day(testID(5)).Equal(day(time.Now())) {
		t.Errorf("objects without a day are not dated: %v, %v", last, err)
	}
}

// TestRemove drops one object, with the rows of its files and nothing else.
func TestRemove(t *testing.T) {
	path := t.TempDir()
	w := openTestWriter(t, path)
	for n := range 40 {
		mustMerge(t, w, testContribution(t, n, 3000))
	}
	rows := store.DirRows{{Name: "a", ID: testID(1)}, {Name: "b", ID: testID(2)}}
	if err := errors.Join(w.PutDir("/lib", rows), w.Close()); err != nil {
		t.Fatal(err)
	}
	opts := GCOptions{Exists: func(string) bool { return true },
		Remove: map[buildid.ID]bool{testID(1): true, testID(7): true}}
	r := openTestReader(t, path)
	plan, err := r.PlanGC(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	w = openTestWriter(t, path)
	res, err := w.GC(t.Context(), opts)
	if err := errors.Join(err, w.Close()); err != nil || res.Dropped != 2 || res.RowsDropped != 1 {
		t.Fatalf("%+v, %v", res, err)
	}
	disk, err := DiskUse(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("before %d, after %d, planned %d", res.Before, disk, plan.After)
	if diff := plan.After - disk; diff > disk/10 || diff < -disk/10 {
		t.Errorf("%d bytes of disk, %d planned", disk, plan.After)
	}
	rd := openTestReader(t, path)
	for n := range 40 {
		ms, err := rd.Find(testID(n))
		if err != nil || (len(ms) == 0) != opts.Remove[testID(n)] {
			t.Errorf("object %d: %d, %v", n, len(ms), err)
		}
	}
	if got, _, err := rd.Dir("/lib"); err != nil || len(got) != 1 || got[0].Name != "b" {
		t.Errorf("rows %v, %v", got, err)
	}
	checkObject(t, r, 1, 3000) // a reader keeps its open files
}

// TestUsedByReader: objects that a reader was asked for and has are used, and nothing is written.
func TestUsedByReader(t *testing.T) {
	path := t.TempDir()
	fillStore(t, path, 0, 3)
	before := treeSums(t, path)
	r := openTestReader(t, path)
	for _, n := range []int{1, 2, 9} {
		if _, err := r.Find(testID(n)); err != nil {
			t.Fatal(err)
		}
	}
	if used := r.Used(); len(used) != 2 || used[0] != testID(1) || used[1] != testID(2) {
		t.Errorf("used: %v", used)
	}
	last, err := readUses(path, time.Now())
	if at := last.day(testID(0)); err != nil || !at.Equal(day(time.Now())) {
		t.Errorf("an indexed object's day: %v, %v", at, err)
	}
	r.Close()
	if got := treeSums(t, path); !mapsEqual(got, before) {
		t.Error("reading changed the store")
	}
}

// TestUsesOfOthers: a store of somebody else has no notes until its owner makes their place.
func TestUsesOfOthers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to give a directory away")
	}
	path := t.TempDir()
	if err := os.Chown(path, 12345, 12345); err != nil {
		t.Fatal(err)
	}
	if err := markUsed(path, []buildid.ID{testID(1)}, time.Now()); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("notes in the store of another: %v", err)
	}
}
