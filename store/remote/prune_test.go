package remote

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"symbolize/buildid"
	"symbolize/fixtures/sweep"
	"symbolize/store"
	"symbolize/store/db"
)

const aDay = 24 * time.Hour

// memory is a Bucket whose requests take time, by a seed.
type memory struct {
	mu      sync.Mutex
	rnd     *rand.Rand
	objects map[string]content
}

type content struct {
	data []byte
	at   time.Time
}

// wait lets others go on before a request.
func (b *memory) wait() {
	b.mu.Lock()
	pause := time.Duration(b.rnd.IntN(50)) * time.Millisecond
	b.mu.Unlock()
	time.Sleep(pause)
	b.mu.Lock()
}

func (b *memory) URL(key string) string { return key }

func (b *memory) Get(_ context.Context, key string, _ int64) ([]byte, error) {
	b.wait()
	defer b.mu.Unlock()
	if o, ok := b.objects[key]; ok {
		return o.data, nil
	}
	return nil, fmt.Errorf("%s: %w", key, ErrNotFound)
}

func (b *memory) Stat(_ context.Context, key string) (Entry, error) {
	b.wait()
	defer b.mu.Unlock()
	if o, ok := b.objects[key]; ok {
		return Entry{key, int64(len(o.data)), o.at}, nil
	}
	return Entry{}, fmt.Errorf("%s: %w", key, ErrNotFound)
}

func (b *memory) Put(_ context.Context, key string, data []byte) (bool, error) {
	b.wait()
	defer b.mu.Unlock()
	if _, ok := b.objects[key]; ok {
		return false, nil
	}
	b.objects[key] = content{data, time.Now()}
	return true, nil
}

func (b *memory) Replace(_ context.Context, key string, data []byte) error {
	b.wait()
	defer b.mu.Unlock()
	b.objects[key] = content{data, time.Now()}
	return nil
}

// Remove follows the request before it at once: no bucket compares and removes in one request, and
// what is written or noted between these two is lost until it is pushed again.
func (b *memory) Remove(_ context.Context, key string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.objects, key)
	return nil
}

func (b *memory) List(_ context.Context, prefix string) (list []Entry, _ error) {
	b.wait()
	defer b.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(b.objects)) {
		if strings.HasPrefix(key, prefix) {
			list = append(list, Entry{key, int64(len(b.objects[key].data)), b.objects[key].at})
		}
	}
	return list, nil
}

// made is a Store of objects whose inputs are few bytes, which some objects share.
type made struct{ facts int }

// madeInputs has the content of all inputs of such stores.
var madeInputs sync.Map

func (made) BlobInput(store.BlobID) (store.Digest, error) { return store.Digest{}, store.ErrNotFound }

func (made) Input(id store.Digest) ([]byte, error) {
	b, ok := madeInputs.Load(id)
	if !ok {
		return nil, store.ErrNotFound
	}
	return b.([]byte), nil
}

func (s made) InputSize(id store.Digest) (int64, error) {
	b, err := s.Input(id)
	return int64(len(b)), err
}

// objects returns the objects of a store: those of stores with other facts have other manifests.
func (s made) objects(n int) (list []*store.Manifest) {
	for i := range n {
		m := &store.Manifest{ID: buildid.New([]byte(fmt.Sprintf("object-%06d", i))), Machine: uint16(s.facts)}
		for k, shared := range []int{i, i / 3} {
			content := fmt.Append(nil, k, shared)
			id := store.Digest(sha256.Sum256(content))
			madeInputs.Store(id, content)
			m.Sources = append(m.Sources, store.SourceInfo{Kind: store.DWARF + store.SourceKind(k),
				Digest: id, Producer: 1, Path: "/bin/x", Size: 32, Input: id})
		}
		list = append(list, m)
	}
	return list
}

// names returns the objects in a bucket, and fails where one lacks a part.
func (b *memory) names(t *testing.T) (names []string) {
	t.Helper()
	for key, o := range b.objects {
		if !strings.HasPrefix(key, manifestDir) {
			continue
		}
		m, err := decodeManifest(o.data, key, key)
		if err != nil {
			t.Fatal(err)
		}
		m.eachInput(func(id store.Digest) {
			if _, ok := b.objects[contentKey(id)]; !ok {
				t.Errorf("%s lacks %s", key, id)
			}
		})
		names = append(names, store.ObjectName(m.ID))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// TestPruneMonths: machines use and push objects for months, while others prune. No object lacks a
// part at any time, none goes that a finished push has noted as used, and each that nobody uses goes.
func TestPruneMonths(t *testing.T) {
	for range sweep.Most(40, 4) {
		seed := sweep.Rand(t).Uint64()
		synctest.Test(t, func(t *testing.T) { pruneMonths(t, rand.New(rand.NewPCG(seed, 1))) })
	}
}

func pruneMonths(t *testing.T, rnd *rand.Rand) {
	const machines, count, keep = 3, 12, 30
	b := &memory{rnd: rand.New(rand.NewPCG(rnd.Uint64(), 2)), objects: make(map[string]content)}
	used := make([]map[string]time.Time, machines)
	for i := range used {
		used[i] = make(map[string]time.Time)
	}
	noted := make(map[string]time.Time) // by a push that has ended
	for range 150 {
		time.Sleep(aDay - time.Duration(rnd.IntN(3600))*time.Second)
		before := time.Now().UTC().AddDate(0, 0, -keep).Truncate(aDay)
		due := maps.Clone(noted)
		var wg sync.WaitGroup
		for i := range machines {
			objects := made{i}.objects(count)
			for _, m := range objects {
				if rnd.IntN(60) == 0 {
					used[i][store.ObjectName(m.ID)] = time.Now().UTC().Truncate(aDay)
				}
			}
			objects = slices.DeleteFunc(objects, func(m *store.Manifest) bool {
				return used[i][store.ObjectName(m.ID)].Before(before)
			})
			switch rnd.IntN(4) {
			case 0:
				for _, m := range objects {
					name := store.ObjectName(m.ID)
					if day := used[i][name]; day.After(noted[name]) {
						noted[name] = day
					}
				}
				wg.Go(func() {
					if _, err := Push(t.Context(), made{i}, objects, b, PushOptions{Used: used[i]}); err != nil {
						t.Error(err)
					}
				})
			case 1:
				wg.Go(func() {
					_, err := Prune(t.Context(), b, PruneOptions{Before: before, Used: used[i]})
					if err != nil && !errors.Is(err, ErrNoTables) {
						t.Error(err)
					}
				})
			}
		}
		wg.Wait()
		names := b.names(t)
		for name, day := range due {
			if _, there := slices.BinarySearch(names, name); !there && !day.Before(before) {
				t.Errorf("%s is gone, which was noted as used on %v, and the limit is %v", name, day, before)
			}
		}
		if t.Failed() {
			return
		}
	}
	time.Sleep((keep + 2) * aDay)
	if _, err := Prune(t.Context(), b, PruneOptions{Before: time.Now().AddDate(0, 0, -keep)}); err != nil {
		t.Error(err)
	}
	if list, _ := b.List(t.Context(), ""); len(list) != 1 {
		t.Errorf("left over: %v", list)
	}
}

// TestPrune: what a Prune does with a bucket of two objects, of which only one was used.
func TestPrune(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		objects := made{}.objects(2)
		a, other := store.ObjectName(objects[0].ID), store.ObjectName(objects[1].ID)
		b := &memory{rnd: rand.New(rand.NewPCG(1, 1)), objects: make(map[string]content)}
		pushAt := func(used map[string]time.Time) {
			t.Helper()
			if res, err := Push(t.Context(), made{}, objects, b, PushOptions{Used: used}); err != nil ||
				len(res.Problems) > 0 {
				t.Fatal(res, err)
			}
		}
		pushAt(nil)
		time.Sleep(100 * aDay)
		today := time.Now().UTC().Truncate(aDay)
		opts := PruneOptions{Before: today.AddDate(0, 0, -90), DryRun: true}
		check := func(what string, stay int, gone []string, files int) {
			t.Helper()
			size := len(b.objects)
			res, err := Prune(t.Context(), b, opts)
			var got []string
			for _, g := range res.Gone {
				got = append(got, store.ObjectName(g.Manifest.ID))
			}
			if err != nil || res.Objects != stay || !slices.Equal(got, gone) || res.Removed != files ||
				len(res.Problems) > 0 || opts.DryRun && len(b.objects) != size {
				t.Errorf("%s: %+v, %v", what, res, err)
			}
		}
		check("a dry run", 0, []string{a, other}, 5) // two manifests, three inputs
		opts.Used = map[string]time.Time{a: today.AddDate(0, 0, -90), other: today.AddDate(0, 0, -91)}
		check("with days of the pruner", 1, []string{other}, 2)
		opts.Used = nil
		for ago := range manyUses + 5 {
			pushAt(map[string]time.Time{a: today.AddDate(0, 0, ago-120)})
		}
		if list, _ := b.List(t.Context(), usesDir); len(list) > manyUses {
			t.Errorf("%d notes", len(list))
		}
		check("with notes before the limit", 0, []string{a, other}, 5)
		pushAt(map[string]time.Time{a: today.AddDate(0, 0, -80), other: today.AddDate(0, 0, -100)})
		opts.DryRun = false
		check("with notes", 1, []string{other}, 2)
		check("again", 1, nil, 0)
		if list, _ := b.List(t.Context(), usesDir); len(list) != 1 {
			t.Errorf("%d notes after a prune", len(list))
		}
		b.names(t)
		pushAt(nil)
		check("pushed again", 2, nil, 0)
		b.names(t)
	})
}

// TestPruneRefuses: a bucket that is not understood loses nothing.
func TestPruneRefuses(t *testing.T) {
	one := indexed(t, binaries+"/fixed", binaries+"/spawn")
	for _, tt := range []struct {
		name string
		key  string // of a new object, or a directory of which the first object is damaged
		text string
		want error // nil for a problem
	}{
		{name: "newer version", key: formatKey, text: formatHead + "3\n", want: store.ErrVersion},
		{name: "newer note", key: usesDir + sumOf([]byte("symbolize used 2\n")), text: "symbolize used 2\n",
			want: store.ErrVersion},
		{name: "damaged note", key: usesDir + sumOf(nil), text: usesHead},
		{name: "a line", key: usesDir + sumOf([]byte(usesHead+"2026-11-26\n")), text: usesHead + "2026-11-26\n"},
		{name: "damaged manifest", key: manifestDir},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := OpenDir(t.TempDir())
			r, err := db.OpenReader(one)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			used, err := r.LastUsed()
			if err != nil || len(used) < 2 {
				t.Fatal(used, err)
			}
			if _, err := Push(t.Context(), r, objectsIn(t, r), b, PushOptions{Used: used}); err != nil {
				t.Fatal(err)
			}
			key := tt.key
			if strings.HasSuffix(key, "/") {
				list, err := b.List(t.Context(), key)
				if err != nil || len(list) == 0 {
					t.Fatal(list, err)
				}
				key = list[0].Key
			}
			if err := b.write(key, []byte(tt.text)); err != nil {
				t.Fatal(err)
			}
			stays := "v2/"
			opts := PruneOptions{Before: time.Now().AddDate(0, 0, 1)} // all would go
			if id, _, ok := parseKey(key); ok {
				stays = contentDir
				opts.Used = map[string]time.Time{store.ObjectName(id): opts.Before.AddDate(0, 0, 1)}
			}
			note := tt.want == nil && strings.HasPrefix(key, usesDir)
			if note {
				stays = "v2/"
			}
			before, _ := b.List(t.Context(), stays)
			if note { // it goes, and the others are joined
				before = slices.DeleteFunc(before, func(e Entry) bool { return strings.HasPrefix(e.Key, usesDir) })
			}
			res, err := Prune(t.Context(), b, opts)
			if !errors.Is(err, tt.want) || (err == nil) != (len(res.Problems) == 1) {
				t.Errorf("%+v, %v", res, err)
			}
			// Of the damaged manifest's object nothing is known, so that all inputs stay.
			after, _ := b.List(t.Context(), stays)
			if note {
				after = slices.DeleteFunc(after, func(e Entry) bool { return strings.HasPrefix(e.Key, usesDir) })
				if u, err := readUses(t.Context(), b, 1); err != nil || len(u.keys) != 1 || len(u.damaged) > 0 || len(u.last) < 2 {
					t.Errorf("the notes %+v, %v", u, err)
				}
			}
			if !slices.Equal(before, after) {
				t.Errorf("%d objects, of %d", len(after), len(before))
			}
		})
	}
}

// TestPrunedPull: what stays is whole.
func TestPrunedPull(t *testing.T) {
	one, two := indexed(t, binaries+"/fixed"), filepath.Join(t.TempDir(), "two")
	b := OpenDir(t.TempDir())
	push(t, one, b)
	if _, err := Prune(t.Context(), b, PruneOptions{Before: time.Now().AddDate(0, 0, -1)}); err != nil {
		t.Fatal(err)
	}
	if pull(t, b, nil, two); digest(t, one) != digest(t, two) {
		t.Error("another store came")
	}
	res, err := Prune(t.Context(), b, PruneOptions{Before: time.Now().AddDate(0, 0, 1)})
	if err != nil || res.Objects != 0 || len(res.Gone) == 0 || res.Gone[0].Manifest.Size() == 0 {
		t.Errorf("%+v, %v", res, err)
	}
	if list, err := b.List(t.Context(), ""); len(list) != 1 || err != nil {
		t.Errorf("left: %v, %v", list, err)
	}
	if names, _ := filepath.Glob(b.path("v1/manifests/*")); len(names) > 0 {
		t.Errorf("directories %v", names)
	}
}

// TestPruneClock: a machine with a wrong clock removes nothing.
func TestPruneClock(t *testing.T) {
	one := indexed(t, binaries+"/fixed")
	b := OpenDir(t.TempDir())
	push(t, one, b)
	before, err := b.List(t.Context(), "v2/")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		now    time.Time
		dryRun bool
		want   error
	}{
		{name: "a year ahead", now: time.Now().AddDate(1, 0, 0), want: ErrClock},
		{name: "a year behind", now: time.Now().AddDate(-1, 0, 0), want: ErrClock},
		{name: "dry run", now: time.Now().AddDate(1, 0, 0), dryRun: true},
		{name: "right", now: time.Now()},
	} {
		opts := PruneOptions{Before: tt.now.AddDate(0, 0, -90), Now: tt.now, DryRun: tt.dryRun}
		if _, err := Prune(t.Context(), b, opts); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
		if after, err := b.List(t.Context(), "v2/"); err != nil || !slices.Equal(after, before) {
			t.Errorf("%s: %d objects of %d, %v", tt.name, len(after), len(before), err)
		}
	}
}
