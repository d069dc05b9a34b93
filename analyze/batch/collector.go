package batch

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"symbolize/analyze"
	"symbolize/ingest"
	"symbolize/ingest/files"
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

	shared *analyze.Session // has the store to read; nil: Collect opens one
}

// CollectStats are the figures of Collect.
type CollectStats struct {
	Captures int    `json:"captures"`        // all
	Failed   int    `json:"captures_failed"` // left out, as they could not be read
	Kept     int    `json:"captures_kept"`   // collected before
	Read     int    `json:"captures_read"`   // in this run
	Damaged  int    `json:"captures_damaged,omitempty"`
	Samples  uint64 `json:"samples"`
	Unwritten

	pulled remote.PullResult // from analyze.Options.Remote
	unkept []string          // failed captures that were read, but for which this machine had no room
}

// Collect collects captures and returns the packs that have them. A capture that a run before has
// collected is not read again while it would be read in the same way. Captures that cannot be read,
// and files that cannot be written, are reported to OnFailed; the others are collected. all has the
// captures of other tasks, too: bundles in it serve the captures beside them, and ReadProgress
// reports which are not collected.
func (c *Collector) Collect(ctx context.Context, captures, all []string) (
	packs []string, stats CollectStats, err error) {
	if c.Parts < 1 {
		return nil, stats, fmt.Errorf("locations cannot be cut into %d parts", c.Parts)
	}
	t := &collecting{Collector: c}
	t.bundles, t.served = bundlesByDir(all)
	end, err := t.openStore(ctx)
	if err != nil {
		return nil, stats, err
	}
	// Another process with the same task may pack and remove the files of this one.
	for try := 0; try == 0 || try < 3 && errors.Is(err, fs.ErrNotExist); try++ {
		packs, err = t.run(ctx, captures)
	}
	t.warnAll(captures)
	if err == nil {
		err = t.writeShare(captures, all)
	}
	return packs, t.stats, errors.Join(err, end())
}

// openStore opens the store that all captures are read by, so that another generation, which
// appears meanwhile, does not serve some of them. end closes it.
func (t *collecting) openStore(ctx context.Context) (end func() error, err error) {
	end = func() error { return nil }
	s := t.shared
	if s == nil {
		opts := t.Session
		opts.Warn = func(w analyze.Warning) {
			// Each task would report that there is no store, and so does Name.
			if t.Session.Warn != nil && !errors.Is(w.Err, store.ErrNoStore) {
				t.Session.Warn(w)
			}
		}
		if s, err = analyze.Open(ctx, opts); err != nil {
			return nil, err
		}
		end = s.Close
	}
	t.store = s
	return end, nil
}

// bundlesByDir lists the bundles among captures by their directories, and the directories with other
// captures, which bundles serve.
func bundlesByDir(captures []string) (list map[string][]string, served map[string]bool) {
	list, served = make(map[string][]string), make(map[string]bool)
	bundles, rest := analyze.SplitBundles(captures)
	for _, b := range bundles {
		list[filepath.Dir(b)] = append(list[filepath.Dir(b)], b)
	}
	for _, path := range rest {
		served[filepath.Dir(path)] = true
	}
	return list, served
}

// collecting is one run of Collect.
type collecting struct {
	*Collector
	store   *analyze.Session    // see analyze.Options.Shared
	bundles map[string][]string // by directory
	served  map[string]bool     // directories with captures that are no bundles

	inMemory sync.Once // reported that tables are kept in memory

	mu       sync.Mutex
	stats    CollectStats
	failures []Failure                   // without a reason: it is of this machine
	warnings map[string][]ingest.Warning // Head.Warnings by capture
}

func (t *collecting) fail(capture string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stats.Failed++
	f := Failure{capture, err.Error()}
	if ofMachine(err) {
		t.stats.Files++
		t.stats.unkept = append(t.stats.unkept, capture)
	}
	if ofMachine(err) || files.OfMachine(err) {
		f.Reason = ""
	}
	t.failures = append(t.failures, f)
	t.failed(capture, err)
}

// warnOf adds a warning about a capture to its head. Warnings about the run are passed on once: that
// there is no store (Name), or that it cannot be written (Run).
func (t *collecting) warnOf(h *Head, w analyze.Warning) {
	switch {
	case errors.Is(w.Err, store.ErrNoStore):
	case errors.Is(w.Err, analyze.ErrInMemory):
		if t.shared == nil {
			t.inMemory.Do(func() { t.warn(h.Path, w.Warning) })
		}
	default:
		h.warn(w.Warning)
	}
}

// warnAll counts and passes on what was wrong with captures, in their order.
func (t *collecting) warnAll(captures []string) {
	for _, capture := range captures {
		list := t.warnings[capture]
		if isDamage(list) {
			t.stats.Damaged++
		}
		t.warnCapture(capture, list)
	}
}

func (t *collecting) count(capture string, h *Head, kept bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.warnings[capture] = h.Warnings
	t.stats.Samples += h.Samples
	if kept {
		t.stats.Kept++
	} else {
		t.stats.Read++
	}
}

// run collects captures once.
func (t *collecting) run(ctx context.Context, captures []string) (packs []string, err error) {
	t.stats, t.failures = CollectStats{Captures: len(captures)}, nil
	t.warnings = make(map[string][]ingest.Warning)
	t.step("collect", len(captures))
	v := &survey{collecting: t, captures: captures, wanted: make(map[string]int),
		kept: make([]bool, len(captures))}
	for i, capture := range captures {
		key, err := t.keyOf(&Head{Path: capture})
		if err != nil {
			return nil, err
		}
		v.wanted[key] = i
	}
	if err := v.read(ctx); err != nil {
		return nil, err
	}
	loose := make([]string, len(captures))
	err = files.Each(ctx, t.Workers, len(captures), func(ctx context.Context, i int) (err error) {
		if v.kept[i] {
			return nil
		}
		loose[i], err = t.one(ctx, captures[i])
		if err != nil && ctx.Err() == nil {
			t.fail(captures[i], err)
			err = nil
		}
		if err == nil {
			t.done()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	for i, path := range loose {
		if path != "" {
			v.rest = append(v.rest, member{capture: captures[i], pack: path})
			v.gone = append(v.gone, path)
		}
	}
	packs, err = v.pack(ctx)
	if errors.Is(err, ErrOutput) && ctx.Err() == nil {
		for _, capture := range captures {
			t.failures = append(t.failures, Failure{Path: capture})
		}
		t.stats.Files++
		t.Hooks.unwritten(err)
		return nil, nil
	}
	return packs, err
}

// one reads a capture and returns the file with it alone, below looseDir.
func (t *collecting) one(ctx context.Context, capture string) (string, error) {
	head := &Head{Path: capture, Keep: t.Session.Keep}
	var err error
	if head.Key, err = t.keyOf(head); err != nil {
		return "", err
	}
	path := filepath.Join(t.Dir, looseDir, head.Key[:2], head.Key+stacksExt)
	old := &Head{}
	if heads, err := ReadHeads(path); err == nil && len(heads) == 1 {
		old = &heads[0]
	}
	switch kept, err := t.isKept(ctx, old, head); {
	case err != nil:
		return "", err
	case kept:
		return path, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", outputErr(err)
	}
	beside := t.beside(capture)
	opts := t.Session
	opts.Undecided, opts.Workers, opts.Shared = true, 1, t.store
	opts.Callers = analyze.NoCallers // Name checks and completes stacks
	opts.Problems, opts.Failed, opts.Taken = nil, nil, nil
	opts.Warn = func(w analyze.Warning) { t.warnOf(head, w) }
	opts.Inputs = analyze.OpenInputs(ctx, append(slices.Clone(beside), capture))
	opts.Bundles = opts.Inputs.Bundles
	defer opts.Inputs.Close()
	s, err := analyze.Open(ctx, opts)
	if err != nil {
		return "", err
	}
	if err = errors.Join(collect(ctx, s, head, path, t.served[filepath.Dir(capture)]), s.Close()); err != nil {
		return "", err
	}
	t.count(capture, head, false)
	t.mu.Lock()
	defer t.mu.Unlock()
	state := s.State()
	t.stats.pulled.Add(&state.Pulled)
	return path, nil
}

// beside returns the other bundles in the directory of a capture.
func (t *collecting) beside(capture string) []string {
	return slices.DeleteFunc(slices.Clone(t.bundles[filepath.Dir(capture)]),
		func(b string) bool { return b == capture })
}

// isKept reports whether a run before has read a capture, with the old head, and would read the
// same now. It sets the fields of the new head that recognize the capture.
func (t *collecting) isKept(ctx context.Context, old, head *Head) (kept bool, err error) {
	beside := t.beside(head.Path)
	if head.Files, err = statesOf(append([]string{head.Path}, beside...)); err != nil {
		return false, err
	}
	if head.Content = old.Content; len(old.Files) == 0 || !slices.Equal(head.Files, old.Files) {
		if head.Content, err = contentSum(head.Path, beside); err != nil {
			return false, err
		}
	}
	if old.Content != head.Content || old.Key != head.Key {
		return false, nil
	}
	changed, err := t.store.Changed(ctx, old.Needs)
	if err == nil && !changed {
		t.count(head.Path, old, true)
	}
	return !changed, err
}

// readingRevision is part of Head.Reading. It grows when this program reads captures differently.
const readingRevision = 1

// keyOf returns Head.Key, and sets Head.Reading. Relative and absolute paths of a capture give one
// key.
func (t *collecting) keyOf(head *Head) (string, error) {
	path, err := filepath.Abs(head.Path)
	if err != nil {
		return "", err
	}
	head.Reading = digest(fmt.Sprintf("%d %q", readingRevision, t.Config))
	return captureKey(path, head.Reading), nil
}

// captureKey returns the Head.Key of a capture with an absolute path.
func captureKey(path, reading string) string { return digest(fmt.Sprintf("%q %s", path, reading)) }

// fileState recognizes an unchanged file.
type fileState struct {
	Size  int64
	Mtime int64 // ns since 1970
	Inode uint64
	Ends  [16]byte // digest of the first and the last bytes
}

// endSize is the number of bytes at each end of a file that are compared.
const endSize = 4096

// statesOf returns the states of captures, of each file of one that is a directory.
func statesOf(paths []string) (list []fileState, err error) {
	for _, path := range paths {
		err := eachFile(path, func(f *os.File) error {
			fi, err := f.Stat()
			if err != nil {
				return err
			}
			_, id := files.Blocks(fi)
			b := make([]byte, 2*endSize)
			n, err1 := f.ReadAt(b[:endSize], 0)
			m, err2 := f.ReadAt(b[n:n+endSize], max(0, fi.Size()-endSize))
			if err := cmp.Or(notEOF(err1), notEOF(err2)); err != nil {
				return err
			}
			sum := sha256.Sum256(b[:n+m])
			list = append(list, fileState{fi.Size(), fi.ModTime().UnixNano(), id.Inode(), [16]byte(sum[:16])})
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

// notEOF returns an error that is not the end of a file.
func notEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// digest returns a short digest of a text, in hexadecimal.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// contentSum returns Head.Content.
func contentSum(capture string, bundles []string) (string, error) {
	h := sha256.New()
	for _, path := range append([]string{capture}, bundles...) {
		err := eachFile(path, func(f *os.File) error {
			_, err := io.Copy(h, f)
			return err
		})
		if err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:16]), nil
}

// eachFile opens a file, or the files in a directory.
func eachFile(path string, do func(*os.File) error) error {
	if entries, err := os.ReadDir(path); err == nil {
		for _, e := range entries {
			if err := eachFile(filepath.Join(path, e.Name()), do); err != nil {
				return err
			}
		}
		return nil
	}
	f, err := files.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return do(f)
}
