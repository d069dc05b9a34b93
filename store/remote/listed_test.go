package remote

import (
	"bytes"
	"context"
	"crypto/sha1"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"symbolize/buildid"
	"symbolize/fixtures/must"
	"symbolize/ingest/object/elf"
	"symbolize/store/db"
)

// requesting is a Bucket that counts requests.
type requesting struct {
	Bucket
	lists, others, puts atomic.Int32
}

func (r *requesting) Get(ctx context.Context, key string, limit int64) ([]byte, error) {
	r.others.Add(1)
	return r.Bucket.Get(ctx, key, limit)
}

func (r *requesting) Stat(ctx context.Context, key string) (Entry, error) {
	r.others.Add(1)
	return r.Bucket.Stat(ctx, key)
}

func (r *requesting) Put(ctx context.Context, key string, data []byte) (bool, error) {
	r.puts.Add(1)
	return r.Bucket.Put(ctx, key, data)
}

func (r *requesting) List(ctx context.Context, prefix string) ([]Entry, error) {
	r.lists.Add(1)
	return r.Bucket.List(ctx, prefix)
}

// copies writes copies of a program with other build IDs.
func copies(t *testing.T, n int) (dir string) {
	t.Helper()
	dir = t.TempDir()
	b := must.Read(t, binaries+"/spawn")
	f, err := elf.Open("spawn", bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	old := f.ID.Bytes()
	for i := range n {
		id := sha1.Sum([]byte(fmt.Sprint("object ", i)))
		path := filepath.Join(dir, fmt.Sprint(i))
		if err := os.WriteFile(path, bytes.Replace(b, old, id[:], 1), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestRequests: pushing and pulling objects that are new sends one request for each object of the
// bucket, besides the lists: one for each of the first few, then one for all.
func TestRequests(t *testing.T) {
	const objects = 3 * listedAfter
	one := indexed(t, copies(t, objects))
	r, err := db.OpenReader(one)
	if err != nil {
		t.Fatal(err)
	}
	var ids []buildid.ID
	for _, m := range objectsIn(t, r) {
		if !m.IsAlias() {
			ids = append(ids, m.ID)
		}
	}
	if err := r.Close(); err != nil || len(ids) != objects {
		t.Fatal(len(ids), err)
	}
	dir := OpenDir(t.TempDir())
	to := &requesting{Bucket: dir}
	res := push(t, one, Listed(to))
	// One for the format, which is then written. Copies of a program have inputs in common.
	if others, puts := int(to.others.Load()), int(to.puts.Load()); others != 1 || res.Objects != objects ||
		to.lists.Load() != listedAfter+1 || puts != res.Written+1 {
		t.Errorf("push: %d lists, %d puts, %d others: %+v", to.lists.Load(), puts, others, res)
	}
	from := &requesting{Bucket: dir}
	two := filepath.Join(t.TempDir(), "two")
	got := pull(t, Listed(from), ids, two)
	if others := int(from.others.Load()); from.lists.Load() != listedAfter+1 || others != got.Fetched+1 ||
		got.Changed != objects {
		t.Errorf("pull: %d lists, %d others: %+v", from.lists.Load(), others, got)
	}
	// A second push lists, and writes nothing.
	again := &requesting{Bucket: dir}
	if res = push(t, one, Listed(again)); again.puts.Load() != 0 || again.lists.Load() != listedAfter+1 ||
		res.Known != objects {
		t.Errorf("push again: %d lists, %d puts: %+v", again.lists.Load(), again.puts.Load(), res)
	}
}
