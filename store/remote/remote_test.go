package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"symbolize/buildid"
	"symbolize/fixtures/must"
	"symbolize/fixtures/storebuild"
	"symbolize/store"
	"symbolize/store/db"
	"symbolize/store/indexer"
)

// counting is a Bucket that counts the objects that were fetched and written, and fails on demand.
type counting struct {
	Bucket
	mu      sync.Mutex
	gets    map[string]int
	puts    map[string]int
	getting func(key string, b []byte) ([]byte, error) // nil for as it is
}

func newCounting(b Bucket) *counting {
	return &counting{Bucket: b, gets: make(map[string]int), puts: make(map[string]int)}
}

func (c *counting) Get(ctx context.Context, key string, limit int64) ([]byte, error) {
	b, err := c.Bucket.Get(ctx, key, limit)
	c.mu.Lock()
	defer c.mu.Unlock()
	if key != formatKey {
		c.gets[key]++
	}
	if err == nil && c.getting != nil {
		return c.getting(key, b)
	}
	return b, err
}

func (c *counting) Put(ctx context.Context, key string, data []byte) (bool, error) {
	created, err := c.Bucket.Put(ctx, key, data)
	c.mu.Lock()
	defer c.mu.Unlock()
	if created {
		c.puts[key]++
	}
	return created, err
}

// indexed returns the path of a store with the symbols of files.
func indexed(t *testing.T, paths ...string) string {
	t.Helper()
	return storebuild.New(t, indexer.Options{DebugRoots: []string{}}, paths...)
}

const binaries = "../../fixtures/objects/bin"

// push pushes a whole store.
func push(t *testing.T, path string, to Bucket) *PushResult {
	t.Helper()
	r, err := db.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	res, err := Push(t.Context(), r, objectsIn(t, r), to, PushOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func objectsIn(t *testing.T, r *db.Reader) (list []*store.Manifest) {
	t.Helper()
	for m, err := range r.Objects() {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, m)
	}
	return list
}

// digest returns the digest of a store without its path rows, as text.
func digest(t *testing.T, path string) string {
	t.Helper()
	r, err := db.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var b bytes.Buffer
	if _, err := store.Export(t.Context(), &b, r, nil); err != nil {
		t.Fatal(err)
	}
	return sumOf(b.Bytes())
}

func pull(t *testing.T, from Bucket, ids []buildid.ID, path string) *PullResult {
	t.Helper()
	res, err := PullStore(t.Context(), from, ids, path, PullOptions{}, db.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// TestPushPull: a store that pulls has all that the others have pushed, and nothing is fetched or
// written twice.
func TestPushPull(t *testing.T) {
	one := indexed(t, binaries+"/fixed", binaries+"/spawn")
	b := newCounting(OpenDir(filepath.Join(t.TempDir(), "tables")))
	res := push(t, one, b)
	if res.Objects < 2 || res.Known != 0 || len(res.Problems) != 0 || res.Written == 0 {
		t.Fatalf("push: %+v", res)
	}
	if again := push(t, one, b); again.Known != res.Objects || again.Written != 0 {
		t.Errorf("second push: %+v", again)
	}
	two := filepath.Join(t.TempDir(), "two")
	got := pull(t, b, nil, two)
	if got.Changed != res.Objects || got.Found != res.Objects || len(got.Problems) != 0 {
		t.Errorf("pull: %+v", got)
	}
	if digest(t, one) != digest(t, two) {
		t.Error("the stores differ")
	}
	if again := pull(t, b, nil, two); again.Found != res.Objects || again.Changed != 0 || again.Fetched != 0 {
		t.Errorf("second pull: %+v", again)
	}
	for key, n := range b.gets {
		if n > 1 {
			t.Errorf("%s was fetched %d times", key, n)
		}
	}
	for key, n := range b.puts {
		if n > 1 {
			t.Errorf("%s was written %d times", key, n)
		}
	}
}

// TestUnion: stores that know different things of an object add up, and parts fetched for that are
// not fetched again, though no manifest of the bucket is the store's.
func TestUnion(t *testing.T) {
	file, b := binaries+"/fixed", newCounting(OpenDir(t.TempDir()))
	push(t, storebuild.New(t, indexer.Options{DebugRoots: []string{}, NoUnwind: true}, file), b)
	push(t, storebuild.New(t, indexer.Options{DebugRoots: []string{}, UnwindOnly: true}, file), b)
	three := filepath.Join(t.TempDir(), "three")
	pull(t, b, nil, three)
	if got := push(t, three, newCounting(OpenDir(t.TempDir()))); got.Objects != 1 {
		t.Errorf("%d objects", got.Objects)
	}
	clear(b.gets)
	four := filepath.Join(t.TempDir(), "four")
	first, second := pull(t, b, nil, four), pull(t, b, nil, four)
	if first.Fetched < 4 || second.Fetched != 0 || second.Found != 1 {
		t.Errorf("%+v, then %+v", first, second)
	}
	for key, n := range b.gets {
		if n > 1 {
			t.Errorf("%s was fetched %d times", key, n)
		}
	}
	if digest(t, three) != digest(t, four) {
		t.Error("the stores differ")
	}
}

// TestDamage: whatever is wrong with one object of the bucket is named, and the rest is pulled; a
// later pull completes it.
func TestDamage(t *testing.T) {
	one := indexed(t, binaries+"/fixed", binaries+"/spawn")
	away := errors.New("connection refused")
	for _, tt := range []struct {
		name string
		dir  string // of the object
		bad  func(b []byte) ([]byte, error)
		want string
	}{
		{name: "piece flipped", dir: contentDir, bad: func(b []byte) ([]byte, error) {
			b[len(b)/2] ^= 1
			return b, nil
		}, want: "bytes of another content"},
		{name: "piece cut", dir: contentDir,
			bad:  func(b []byte) ([]byte, error) { return b[:len(b)/2], nil },
			want: "bytes of another content"},
		{name: "piece lost", dir: contentDir,
			bad: func([]byte) ([]byte, error) { return nil, ErrNotFound }, want: "not there"},
		{name: "piece does not come", dir: contentDir,
			bad: func([]byte) ([]byte, error) { return nil, away }, want: "connection refused"},
		{name: "manifest flipped", dir: manifestDir, bad: func(b []byte) ([]byte, error) {
			b[len(b)-1] ^= 1
			return b, nil
		}, want: "checksum"},
		{name: "manifest cut", dir: manifestDir,
			bad: func(b []byte) ([]byte, error) { return b[:10], nil }, want: "it begins with"},
		{name: "manifest lost", dir: manifestDir,
			bad: func([]byte) ([]byte, error) { return nil, ErrNotFound }, want: "not there"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newCounting(OpenDir(t.TempDir()))
			push(t, one, b)
			keys, err := b.List(t.Context(), tt.dir)
			if err != nil || len(keys) < 2 {
				t.Fatalf("%d objects: %v", len(keys), err)
			}
			bad := keys[len(keys)-1].Key
			b.getting = func(key string, data []byte) ([]byte, error) {
				if key != bad {
					return data, nil
				}
				data, err := tt.bad(data)
				if err != nil {
					err = fmt.Errorf("%s: %w", b.URL(key), err)
				}
				return data, err
			}
			two := filepath.Join(t.TempDir(), "two")
			res := pull(t, b, nil, two)
			if len(res.Problems) != 1 || !strings.Contains(res.Problems[0].Error(), tt.want) ||
				!strings.Contains(res.Problems[0].Error(), b.URL("")) {
				t.Errorf("problems %q, want %q", res.Problems, tt.want)
			}
			if res.Changed == 0 || res.Tables == 0 {
				t.Errorf("nothing came: %+v", res)
			}
			r, err := db.OpenReader(two)
			if err != nil {
				t.Fatal(err)
			}
			v, err := r.Verify(t.Context())
			if err := errors.Join(err, r.Close()); err != nil || !v.Sound() {
				t.Errorf("the store is not sound: %v", err)
			}
			b.getting = nil
			if res := pull(t, b, nil, two); len(res.Problems) != 0 || digest(t, one) != digest(t, two) {
				t.Errorf("a second pull does not complete it: %+v", res)
			}
		})
	}
}

// TestVerify: a push that verifies replaces what is damaged, or brings back what is lost, and
// writes nothing else.
func TestVerify(t *testing.T) {
	one := indexed(t, binaries+"/fixed", binaries+"/spawn")
	for _, tt := range []struct {
		name     string
		dir      string                // of the object
		bad      func(b []byte) []byte // nil: it is removed
		replaced int
	}{
		{name: "piece flipped", dir: contentDir, replaced: 1, bad: func(b []byte) []byte {
			b[len(b)/2] ^= 1
			return b
		}},
		{name: "piece cut", dir: contentDir, replaced: 1, bad: func(b []byte) []byte { return b[:len(b)/2] }},
		{name: "piece longer", dir: contentDir, replaced: 1,
			bad: func(b []byte) []byte { return append(b, 0) }},
		{name: "piece lost", dir: contentDir},
		{name: "manifest flipped", dir: manifestDir, replaced: 1, bad: func(b []byte) []byte {
			b[len(b)-1] ^= 1
			return b
		}},
		{name: "manifest lost", dir: manifestDir},
	} {
		b := OpenDir(t.TempDir())
		push(t, one, b)
		keys, err := b.List(t.Context(), tt.dir)
		if err != nil || len(keys) < 2 {
			t.Fatalf("%d objects: %v", len(keys), err)
		}
		path := b.path(keys[len(keys)-1].Key)
		data, err := os.ReadFile(path)
		if err == nil {
			err = os.Remove(path)
		}
		if err == nil && tt.bad != nil {
			err = os.WriteFile(path, tt.bad(data), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		r, err := db.OpenReader(one)
		if err != nil {
			t.Fatal(err)
		}
		for _, written := range []int{1, 0} {
			res, err := Push(t.Context(), r, objectsIn(t, r), b, PushOptions{Verify: true})
			if err != nil || res.Written != written || res.Replaced != min(tt.replaced, written) {
				t.Errorf("%s: %+v, %v, want %d written", tt.name, res, err, written)
			}
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		two := filepath.Join(t.TempDir(), "two")
		if res := pull(t, b, nil, two); len(res.Problems) != 0 || digest(t, one) != digest(t, two) {
			t.Errorf("%s: then pulled: %+v", tt.name, res)
		}
	}
}

// TestPullTo: the store is opened for writing only where something is missing in the view.
func TestPullTo(t *testing.T) {
	one := indexed(t, binaries+"/fixed", binaries+"/spawn")
	b := OpenDir(t.TempDir())
	push(t, one, b)
	r, err := db.OpenReader(one)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	// Nobody could write to it now.
	w, err := db.OpenWriter(t.Context(), one, db.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	res, wrote, err := PullTo(t.Context(), b, nil, Here(r, r), one, PullOptions{}, db.WriterOptions{})
	if err != nil || wrote || res.Found < 2 || res.Fetched != 0 {
		t.Errorf("all is there: wrote %t, %+v, %v", wrote, res, err)
	}
	two := filepath.Join(t.TempDir(), "two")
	res, wrote, err = PullTo(t.Context(), b, nil, Target{View: store.NewOverlay()}, two, PullOptions{},
		db.WriterOptions{})
	if err != nil || !wrote || res.Changed != res.Found {
		t.Errorf("nothing is there: wrote %t, %+v, %v", wrote, res, err)
	}
}

// TestTwoWriters: two pushes of one store at a time are as one.
func TestTwoWriters(t *testing.T) {
	one := indexed(t, binaries+"/fixed", binaries+"/spawn")
	dir := t.TempDir()
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() { push(t, one, OpenDir(dir)) })
	}
	all.Wait()
	two := filepath.Join(t.TempDir(), "two")
	if res := pull(t, OpenDir(dir), nil, two); len(res.Problems) != 0 || digest(t, one) != digest(t, two) {
		t.Errorf("%+v", res)
	}
}

func TestRefused(t *testing.T) {
	one := indexed(t, binaries+"/fixed")
	for _, tt := range []struct {
		name, text string
		want       error
	}{
		{name: "nothing", want: ErrNoTables},
		{name: "newer", text: "symbolize remote 3\n", want: store.ErrVersion},
		{name: "older", text: "symbolize remote 1\n", want: store.ErrOldSchema},
		{name: "another file", text: "hello", want: ErrDamaged},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			if tt.text != "" {
				push(t, one, OpenDir(dir)) // whatever is in it
				must.Write(t, filepath.Join(dir, formatKey), []byte(tt.text))
			}
			two := filepath.Join(t.TempDir(), "two")
			if _, err := PullStore(t.Context(), OpenDir(dir), nil, two, PullOptions{},
				db.WriterOptions{}); !errors.Is(err, tt.want) {
				t.Errorf("pull: %v, want %v", err, tt.want)
			}
			if _, err := os.Stat(two); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("a store was made: %v", err)
			}
			r, err := db.OpenReader(one)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			_, err = Push(t.Context(), r, nil, OpenDir(dir), PushOptions{})
			if tt.want != ErrNoTables && !errors.Is(err, tt.want) {
				t.Errorf("push: %v, want %v", err, tt.want)
			}
		})
	}
}

// TestSomeIDs: only the objects that IDs match come, also for IDs of unknown length.
func TestSomeIDs(t *testing.T) {
	one := indexed(t, binaries+"/fixed", binaries+"/spawn")
	b := OpenDir(t.TempDir())
	push(t, one, b)
	r, err := db.OpenReader(one)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	want := objectsIn(t, r)[0].ID
	for _, id := range []buildid.ID{want, buildid.Padded(want.Bytes())} {
		two := filepath.Join(t.TempDir(), "two")
		if res := pull(t, b, []buildid.ID{id, buildid.New([]byte{1, 2, 3})}, two); res.Found != 1 || res.Changed != 1 {
			t.Errorf("%v: %+v", id, res)
		}
		got, err := db.OpenReader(two)
		if err != nil {
			t.Fatal(err)
		}
		if list := objectsIn(t, got); len(list) != 1 || list[0].ID != want {
			t.Errorf("%d objects", len(list))
		}
		got.Close()
	}
}
