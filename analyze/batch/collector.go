package batch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"symbolize/analyze"
	"symbolize/ingest/regular"
	"symbolize/store"
	"symbolize/store/remote"
)

// Collector collects many captures.
type Collector struct {
	Session analyze.Options // of each capture, which gets the bundles beside it
	Dir     string          // of the files
	Parts   int
	Workers int    // captures at a time; 0 for GOMAXPROCS
	Config  string // see RunOptions
	*Hooks
}

// CollectStats are the figures of Collect.
type CollectStats struct {
	Captures int    `json:"captures"`        // all
	Failed   int    `json:"captures_failed"` // left out, as they could not be read
	Kept     int    `json:"captures_kept"`   // collected before
	Samples  uint64 `json:"samples"`

	pulled remote.PullResult // from analyze.Options.Remote
}

// Collect collects captures and returns the files in the order of the captures. A capture whose
// file is there already is not read again; one that cannot be read goes to OnFailed, and the
// others are done. all has the captures of other tasks, too: bundles in it serve the captures
// beside them.
func (c *Collector) Collect(ctx context.Context, captures, all []string) (
	[]string, CollectStats, error) {
	t := &collecting{Collector: c, bundles: bundlesByDir(all),
		stats: CollectStats{Captures: len(captures)}}
	var err error
	if t.generation, err = c.generation(ctx); err != nil {
		return nil, t.stats, err
	}
	files := make([]string, len(captures))
	err = steps(ctx, c.Workers, c.Hooks, "collect", len(captures),
		func(ctx context.Context, i int) (err error) {
			files[i], err = t.one(ctx, captures[i])
			if err != nil && ctx.Err() == nil {
				t.fail(captures[i], err)
				return nil
			}
			return err
		})
	files = slices.DeleteFunc(files, func(f string) bool { return f == "" })
	return files, t.stats, err
}

// generation returns the one of the store that captures are read by: tables that come from
// analyze.Options.Remote leaves it as it is.
func (c *Collector) generation(ctx context.Context) (uint64, error) {
	opts := c.Session
	opts.Warn = nil
	s, err := analyze.Open(ctx, opts)
	if err != nil {
		return 0, err
	}
	return s.Indexed(), s.Close()
}

// bundlesByDir lists the bundles among captures by their directories.
func bundlesByDir(captures []string) map[string][]string {
	out := make(map[string][]string)
	bundles, _ := analyze.SplitBundles(captures)
	for _, b := range bundles {
		out[filepath.Dir(b)] = append(out[filepath.Dir(b)], b)
	}
	return out
}

// collecting is one run of Collect.
type collecting struct {
	*Collector
	generation uint64
	bundles    map[string][]string

	mu    sync.Mutex
	stats CollectStats
}

func (t *collecting) fail(capture string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stats.Failed++
	t.failed(capture, err)
}

func (t *collecting) count(h *Head, kept bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stats.Samples += h.Samples
	if kept {
		t.stats.Kept++
	}
}

// one returns the file of a collected capture; "" for a bundle that only serves others.
func (t *collecting) one(ctx context.Context, capture string) (string, error) {
	beside := slices.DeleteFunc(slices.Clone(t.bundles[filepath.Dir(capture)]),
		func(b string) bool { return b == capture })
	sum, err := t.identity(capture, beside)
	if err != nil {
		return "", err
	}
	path := filepath.Join(t.Dir, sum+".stacks")
	if h, err := ReadHead(path); err == nil && h.Path == capture && h.Parts == t.Parts {
		t.count(h, true)
		return path, nil
	}
	opts := t.Session
	opts.Undecided, opts.Workers = true, 1
	opts.Problems, opts.Failed, opts.Taken = nil, nil, nil
	opts.Warn = func(w analyze.Warning) {
		if !errors.Is(w.Err, store.ErrNoStore) { // which concerns no single capture
			t.warn(capture, w.Warning)
		}
	}
	opts.Inputs = analyze.OpenInputs(ctx, append(slices.Clone(beside), capture))
	opts.Bundles = opts.Inputs.Bundles
	defer opts.Inputs.Close()
	if len(beside) > 0 && !slices.Contains(opts.Inputs.Captures, capture) {
		return "", nil
	}
	s, err := analyze.Open(ctx, opts)
	if err != nil {
		return "", err
	}
	h, path, err := t.collect(ctx, s, capture, path)
	if err = errors.Join(err, s.Close()); err != nil {
		return "", err
	}
	t.count(h, false)
	t.mu.Lock()
	defer t.mu.Unlock()
	pulled := s.Pulled()
	t.stats.pulled.Add(&pulled)
	return path, nil
}

// collect collects one capture. Stacks that lack a table which analyze.Options.Remote may have are
// in a file that another run does not use.
func (t *collecting) collect(ctx context.Context, s *analyze.Session, capture, path string) (
	*Head, string, error) {
	incomplete := path + incompleteName
	h, err := Collect(ctx, s, capture, incomplete, t.Parts, t.Session.Keep)
	if err != nil {
		return nil, "", err
	}
	complete, err := s.Need(ctx, nil)
	if err != nil || !complete {
		return h, incomplete, err
	}
	return h, path, os.Rename(incomplete, path)
}

// identity names the file of a collected capture by all that it depends on.
func (t *collecting) identity(capture string, bundles []string) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%q %d %q %d %q\n", capture, t.generation, t.Session.Store, t.Parts, t.Config)
	for _, path := range append([]string{capture}, bundles...) {
		if err := hashFile(h, path); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:16]), nil
}

// hashFile adds the content of a file, or of those in a directory.
func hashFile(h io.Writer, path string) error {
	if entries, err := os.ReadDir(path); err == nil {
		for _, e := range entries {
			if err := hashFile(h, filepath.Join(path, e.Name())); err != nil {
				return err
			}
		}
		return nil
	}
	f, err := regular.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(h, f)
	return err
}
