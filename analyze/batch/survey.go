package batch

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"symbolize/ingest/files"
)

// looseDir has the captures that a task has read, below Collector.Dir, until it packs them. A task
// that is killed finds them there.
const looseDir = ".loose"

// survey finds the captures that runs before have collected, and packs them with new ones.
type survey struct {
	*collecting
	captures []string       // of this run
	wanted   map[string]int // their numbers by key
	kept     []bool         // by capture: it need not be read

	packs  []string   // full ones of wanted captures alone, which stay
	small  [][]member // such packs that are not full
	rest   []member   // captures to be packed
	others []member   // of packs that are replaced, and of no interest to this run
	gone   []string   // packs that are replaced
}

// read looks at the packs in the directory. One without a wanted capture belongs to another task.
func (v *survey) read(ctx context.Context) error {
	paths, err := filepath.Glob(filepath.Join(v.Dir, "*"+stacksExt))
	if err != nil {
		return err
	}
	for _, path := range paths { // sorted
		if err := v.look(ctx, path); err != nil {
			return err
		}
	}
	return nil
}

// look looks at one pack. The captures of one that cannot be read, or is of another version, are
// read again.
func (v *survey) look(ctx context.Context, path string) error {
	f, head, heads, err := readPack(path)
	switch {
	case files.OfMachine(err):
		return err
	case err != nil:
		return nil
	}
	if err := f.Close(); err != nil {
		return err
	}
	good := make([]bool, len(heads))
	err = files.Each(ctx, v.Workers, len(heads), func(ctx context.Context, i int) error {
		h := &heads[i]
		n, ok := v.wanted[h.Key]
		if !ok {
			return nil
		}
		// A capture that cannot be read is reported when it is read.
		kept, err := v.isKept(ctx, h, &Head{Path: v.captures[n], Key: h.Key})
		v.mu.Lock()
		good[i] = kept && err == nil && !v.kept[n]
		v.kept[n] = v.kept[n] || good[i]
		v.mu.Unlock()
		if good[i] {
			v.done()
		}
		return ctx.Err()
	})
	if err == nil {
		v.sort(path, head, heads, good)
	}
	return err
}

// sort keeps, replaces or ignores a pack, of which the good captures are of this run.
func (v *survey) sort(path string, head packHead, heads []Head, good []bool) {
	var own, others []member
	wanted := 0
	for i := range heads {
		m := member{capture: heads[i].Path, pack: path, n: i}
		if _, ok := v.wanted[heads[i].Key]; !ok {
			others = append(others, m)
			continue
		}
		wanted++
		if good[i] {
			own = append(own, m)
		}
	}
	switch {
	case wanted == 0:
	case len(own) < len(heads) || head.Parts != v.Parts:
		v.gone = append(v.gone, path)
		v.rest, v.others = append(v.rest, own...), append(v.others, others...)
	case len(own) == packSize:
		v.packs = append(v.packs, path)
	default:
		v.small = append(v.small, own)
	}
}

// pack packs new captures with those of packs that are not full, and returns all packs of the run,
// sorted.
func (v *survey) pack(ctx context.Context) ([]string, error) {
	if len(v.rest) == 0 && len(v.small) == 1 {
		v.packs = append(v.packs, v.small[0][0].pack)
		v.small = nil
	}
	for _, own := range v.small {
		v.gone = append(v.gone, own[0].pack)
		v.rest = append(v.rest, own...)
	}
	for i, list := range [][]member{v.rest, v.others} {
		slices.SortFunc(list, func(a, b member) int {
			return cmp.Or(strings.Compare(a.capture, b.capture), strings.Compare(a.pack, b.pack))
		})
		for some := range slices.Chunk(list, packSize) {
			path, err := writePack(ctx, v.Dir, some, v.Parts, v.Workers)
			if err != nil {
				return nil, err
			}
			v.gone = slices.DeleteFunc(v.gone, func(old string) bool { return old == path })
			if i == 0 {
				v.packs = append(v.packs, path)
			}
		}
	}
	for _, path := range v.gone {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, outputErr(err)
		}
	}
	slices.Sort(v.packs)
	return v.packs, nil
}
