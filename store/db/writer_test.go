package db

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"symbolize/buildid"
	"symbolize/store"
)

func TestLock(t *testing.T) {
	path := t.TempDir()
	cmd := child(t, "hold", path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if !bufio.NewScanner(out).Scan() {
		t.Fatal("the holder did not start")
	}
	_, err = OpenWriter(context.Background(), path, WriterOptions{LockTimeout: 60 * time.Millisecond})
	var locked *store.LockedError
	if !errors.As(err, &locked) || !errors.Is(err, store.ErrLocked) {
		t.Fatalf("second writer: %v", err)
	}
	if locked.PID != cmd.Process.Pid || locked.Command == "" || time.Since(locked.Since) > time.Hour {
		t.Errorf("holder is process %d, error says %+v", cmd.Process.Pid, locked)
	}
	if !strings.Contains(err.Error(), fmt.Sprintf("process %d", locked.PID)) {
		t.Errorf("message: %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Millisecond)
	defer cancel()
	_, err = OpenWriter(ctx, path, WriterOptions{LockTimeout: -1})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("waiting as long as the context: %v", err)
	}
	// The lock ends with the process, and its entry counts no more.
	time.AfterFunc(20*time.Millisecond, func() { cmd.Process.Kill() })
	w, err := OpenWriter(context.Background(), path, WriterOptions{LockTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
	cmd.Wait()
}

func TestFind(t *testing.T) {
	short := buildid.New([]byte{1, 2, 3, 4, 5, 6, 7, 8})
	longer := buildid.New([]byte{1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0})
	sha := testID(5)
	over := buildid.New(append(sha.Bytes(), 1, 2, 3))
	content := buildid.Make(buildid.Content, sha.Bytes())
	w := openTestWriter(t, "")
	o := store.NewOverlay()
	for _, id := range []buildid.ID{short, longer, sha, content} {
		c := &store.Contribution{Manifest: store.Manifest{ID: id}}
		mustMerge(t, w, c)
		mustMerge(t, o, c)
	}
	for _, tc := range []struct {
		name string
		id   buildid.ID
		want []buildid.ID
	}{
		{name: "exact", id: short, want: []buildid.ID{short}},
		{name: "exact, zeros at the end", id: longer, want: []buildid.ID{longer}},
		{name: "ambiguous", id: buildid.Padded(append(short.Bytes(), make([]byte, 12)...)),
			want: []buildid.ID{short, longer}},
		{name: "padded", id: buildid.Padded(sha.Bytes()), want: []buildid.ID{sha}},
		{name: "longer than a key", id: over, want: []buildid.ID{sha}},
		{name: "other space", id: content, want: []buildid.ID{content}},
		{name: "other length", id: buildid.New(append(short.Bytes(), 0))},
		{name: "unknown", id: testID(99)},
		{name: "none", id: buildid.ID{}},
	} {
		for name, v := range map[string]store.View{"store": w, "overlay": o} {
			ms, err := v.Find(tc.id)
			if err != nil {
				t.Fatal(err)
			}
			var got []buildid.ID
			for _, m := range ms {
				got = append(got, m.ID)
			}
			if !reflect.DeepEqual(got, tc.want) {
				t.Errorf("%s: %s: %v, want %v", name, tc.name, got, tc.want)
			}
		}
	}
}

func TestDirs(t *testing.T) {
	w := openTestWriter(t, "")
	o := store.NewOverlay()
	for _, s := range []interface {
		store.Sink
		store.View
	}{w, o} {
		for _, dir := range []string{"/usr/lib", "/usr/lib/x", "/"} {
			if err := s.PutDir(dir, testRows(20)); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.PutDir("/usr/lib", testRows(3)); err != nil {
			t.Fatal(err)
		}
		if err := s.PutDir("/", nil); err != nil {
			t.Fatal(err)
		}
		rows, ok, err := s.Dir("/usr/lib")
		if err != nil || !ok || !reflect.DeepEqual(rows, testRows(3)) {
			t.Errorf("rows %v, %v, %v", rows, ok, err)
		}
		for _, dir := range []string{"/", "/usr", "", strings.Repeat("x", 70000)} {
			if _, ok, err := s.Dir(dir); ok || err != nil {
				t.Errorf("Dir(%.10q) = %v, %v", dir, ok, err)
			}
		}
	}
	var got []string
	for d, err := range w.Dirs() {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprint(d.Path, len(d.Rows)))
	}
	if want := []string{"/usr/lib3", "/usr/lib/x20"}; !reflect.DeepEqual(got, want) {
		t.Errorf("dirs %q, want %q", got, want)
	}
}

// TestLargeObject writes a table of many blocks, and a captured input of several
// pieces.
func TestLargeObject(t *testing.T) {
	w := openTestWriter(t, "")
	table := testTable(t, 1, 350_000)
	raw := make([]byte, 3*store.RawPiece+5)
	for i := range raw {
		raw[i] = byte(i * i >> 7)
	}
	mustMerge(t, w, &store.Contribution{Manifest: store.Manifest{ID: testID(1)}, Sources: []store.NewSource{
		{Info: store.SourceInfo{Kind: store.Kallsyms, Producer: 1}, Table: table, Raw: raw}}})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r := openTestReader(t, w.path)
	checkObject(t, r, 1, 350_000)
	ms, _ := r.Find(testID(1))
	got, err := r.Raw(ms[0], 0)
	if err != nil || !bytes.Equal(got, raw) {
		t.Errorf("captured input: %d bytes, %v", len(got), err)
	}
	if ms[0].Sources[0].RawPieces != 4 {
		t.Errorf("%d pieces", ms[0].Sources[0].RawPieces)
	}
	v, err := r.Verify(t.Context())
	if err != nil || !v.Sound() || len(v.Problems) > 0 {
		t.Errorf("verify: %+v, %v", v, err)
	}
}

// TestManySources fills a manifest to its limit.
func TestManySources(t *testing.T) {
	w := openTestWriter(t, "")
	var err error
	for i := 0; i <= store.MaxSources && err == nil; i++ {
		err = w.Merge(context.Background(), &store.Contribution{Manifest: store.Manifest{ID: testID(1)},
			Sources: []store.NewSource{{Info: store.SourceInfo{Kind: store.Symtab}, Table: testTable(t, i, 1)}}})
	}
	if !errors.Is(err, store.ErrTooLarge) {
		t.Errorf("after %d sources: %v", store.MaxSources, err)
	}
	if ms, err := w.Find(testID(1)); err != nil || len(ms[0].Sources) != store.MaxSources {
		t.Errorf("%d sources, %v", len(ms[0].Sources), err)
	}
}

func TestClosed(t *testing.T) {
	w := openTestWriter(t, "")
	mustMerge(t, w, testContribution(t, 1, 5))
	if err := errors.Join(w.Close(), w.Close()); err != nil {
		t.Fatal(err)
	}
	r := openTestReader(t, w.path)
	ms, _ := r.Find(testID(1))
	if err := errors.Join(r.Close(), r.Close()); err != nil {
		t.Fatal(err)
	}
	_, findErr := r.Find(testID(1))
	_, openErr := r.Open(ms[0], 0)
	for name, err := range map[string]error{
		"merge": w.Merge(context.Background(), testContribution(t, 2, 5)), "publish": w.Publish(),
		"rows": w.PutDir("/", testRows(1)), "find": findErr, "open": openErr,
	} {
		if !errors.Is(err, store.ErrClosed) {
			t.Errorf("%s after Close: %v", name, err)
		}
	}
}

func TestCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	w := openTestWriter(t, "")
	for _, s := range []store.Sink{w, store.NewOverlay()} {
		if err := s.Merge(ctx, testContribution(t, 1, 5)); !errors.Is(err, context.Canceled) {
			t.Errorf("%T: %v", s, err)
		}
	}
}

func TestVersions(t *testing.T) {
	newStore := func() string {
		w := openTestWriter(t, "")
		mustMerge(t, w, testContribution(t, 1, 5))
		w.Close()
		return w.path
	}
	both := func(path string, want error) {
		t.Helper()
		if _, err := OpenReader(path); !errors.Is(err, want) {
			t.Errorf("reader: %v, want %v", err, want)
		}
		if _, err := OpenWriter(context.Background(), path, WriterOptions{}); !errors.Is(err, want) {
			t.Errorf("writer: %v, want %v", err, want)
		}
	}
	path := newStore()
	format := filepath.Join(path, formatName)
	newer := store.SchemaVersion + 1
	os.WriteFile(format, fmt.Appendf(nil, "symbolize store\nschema %d\n", newer), 0o644)
	both(path, store.ErrVersion)
	os.WriteFile(format, []byte("something else\n"), 0o644)
	both(path, store.ErrDamaged)

	path = newStore()
	b := fmt.Appendf(nil, "symbolize index 2\nschema %d\nof a format unknown", newer)
	os.WriteFile(filepath.Join(genDir(path, 1), indexName), b, 0o644)
	both(path, store.ErrVersion)

	path = newStore()
	os.WriteFile(filepath.Join(path, formatName), []byte("symbolize store\nschema 2\n"), 0o644)
	both(path, store.ErrOldSchema)

	if _, err := OpenReader(t.TempDir()); !errors.Is(err, store.ErrNoStore) {
		t.Errorf("empty directory: %v", err)
	}
	if _, err := OpenReader(filepath.Join(path, "nowhere")); !errors.Is(err, store.ErrNoStore) {
		t.Errorf("no directory: %v", err)
	}
}

func TestDefaultPath(t *testing.T) {
	for want, env := range map[string]map[string]string{
		"/s":                            {"SYMBOLIZE_STORE": "/s", "XDG_DATA_HOME": "/x", "HOME": "/h"},
		"/x/symbolize":                  {"XDG_DATA_HOME": "/x", "HOME": "/h"},
		"/h/.local/share/symbolize":     {"XDG_DATA_HOME": "relative", "HOME": "/h"},
		"/other/.local/share/symbolize": {"HOME": "/other"},
		"":                              {},
	} {
		if got := DefaultPath(func(k string) string { return env[k] }); got != want {
			t.Errorf("DefaultPath(%v) = %q", env, got)
		}
	}
}
