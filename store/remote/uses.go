package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"symbolize/ingest/files"
	"symbolize/store"
)

const (
	anyUses  = "symbolize used " // of any version
	usesHead = anyUses + "1\n"
)

const (
	// maxUses bounds the bytes of one note of uses.
	maxUses = 64 << 20
	// manyUses is from how many notes on they are joined.
	manyUses = 16
	// listings is how often notes are listed before one that is not there is an error: another
	// process may have joined those of a list.
	listings = 4
)

// uses are the notes of a bucket.
type uses struct {
	keys []string
	last map[string]string // the last day of use of objects, by store.ObjectName
	// damaged notes are left out: the days in them are lost.
	damaged []error
}

// readUses reads the notes of a bucket. A note of a newer version is an error.
func readUses(ctx context.Context, b Bucket, jobs int) (*uses, error) {
	for tries := 1; ; tries++ {
		list, err := b.List(ctx, usesDir)
		if err != nil {
			return nil, err
		}
		u := &uses{keys: keysOf(list), last: make(map[string]string)}
		var mu sync.Mutex
		err = files.Each(ctx, jobs, len(u.keys), func(ctx context.Context, i int) error {
			text, err := b.Get(ctx, u.keys[i], maxUses)
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			if err = u.add(text, u.keys[i], b.URL(u.keys[i])); errors.Is(err, ErrDamaged) {
				u.damaged, err = append(u.damaged, err), nil
			}
			return err
		})
		if !errors.Is(err, ErrNotFound) || tries == listings {
			slices.SortFunc(u.damaged, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
			return u, err
		}
	}
}

// add reads one note.
func (u *uses) add(text []byte, key, url string) error {
	rest, ok := bytes.CutPrefix(text, []byte(usesHead))
	switch {
	case key != usesDir+sumOf(text) || !bytes.HasPrefix(text, []byte(anyUses)):
		return damagef("%s: %d bytes are not a note of uses", url, len(text))
	case !ok:
		return fmt.Errorf("%s: %w: a note of uses", url, store.ErrVersion)
	}
	for line := range strings.Lines(string(rest)) {
		day, object, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if _, err := time.Parse(time.DateOnly, day); err != nil || !ok {
			return damagef("%s: line %.40q", url, line)
		}
		u.note(object, day)
	}
	return nil
}

// note notes a day on which an object was used, and reports whether it is later than the known one.
func (u *uses) note(object, day string) bool {
	later := day > u.last[object]
	if later {
		u.last[object] = day
	}
	return later
}

// write writes a note, and removes the notes that it replaces.
func (u *uses) write(ctx context.Context, b Bucket, last map[string]string, replaced []string) error {
	var text strings.Builder
	text.WriteString(usesHead)
	for _, object := range slices.Sorted(maps.Keys(last)) {
		fmt.Fprintf(&text, "%s %s\n", last[object], object)
	}
	key := usesDir + sumOf([]byte(text.String()))
	if len(last) > 0 {
		if _, err := b.Put(ctx, key, []byte(text.String())); err != nil {
			return err
		}
	}
	for _, old := range replaced {
		if old == key && len(last) > 0 {
			continue
		}
		if err := b.Remove(ctx, old); err != nil {
			return err
		}
	}
	return nil
}

// noteUses adds the days of last use of objects to the notes of a bucket. Damaged notes, which it
// returns, are replaced: other machines write their days again when they push.
func noteUses(ctx context.Context, b Bucket, objects []*store.Manifest, days map[string]time.Time,
	jobs int) (damaged []error, err error) {
	if len(days) == 0 {
		return nil, nil
	}
	u, err := readUses(ctx, b, jobs)
	if err != nil {
		return nil, err
	}
	later := make(map[string]string)
	for _, m := range objects {
		name := store.ObjectName(m.ID)
		if at, ok := days[name]; ok {
			if day := at.UTC().Format(time.DateOnly); u.note(name, day) {
				later[name] = day
			}
		}
	}
	switch {
	case len(u.damaged) > 0, len(later) > 0 && len(u.keys) >= manyUses:
		err = u.write(ctx, b, u.last, u.keys)
	case len(later) > 0:
		err = u.write(ctx, b, later, nil)
	}
	return u.damaged, err
}
