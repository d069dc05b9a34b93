package batch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"symbolize/analyze"
	"symbolize/ingest/files"
	"symbolize/ingest/texts"
)

// nightName is the file in workDir with the options of Run.
const nightName = "night.json"

// Night describes a finished Run, so that its profiles can be made again without the captures.
type Night struct {
	Out      string                       `json:"-"` // directory of the profiles
	Keys     []string                     `json:"by,omitempty"`
	Pattern  string                       `json:"path,omitempty"`
	Manifest map[string]map[string]string `json:"manifest,omitempty"`
	Formats  []string                     `json:"formats"`
	Style    string                       `json:"style"` // see RunOptions
	Parts    int                          `json:"parts"`
	// Chains is how stacks of frame pointers are treated. It may be changed before Name.
	Chains Chains `json:"chains,omitzero"`
	// Last is the day of the latest first sample, UTC; that of the run where captures have no time.
	Last      string   `json:"last"`
	Collected []string `json:"collected"` // files in workDir
}

// writeNight describes the run.
func (r *runner) writeNight() error {
	o := &r.opts
	n := &Night{Keys: o.By.Keys, Pattern: o.By.Pattern, Manifest: o.By.Manifest, Formats: o.Formats,
		Style: o.Style, Parts: o.Parts, Chains: o.Chains}
	for _, path := range r.collected {
		heads, err := ReadHeads(path)
		if err != nil {
			return err
		}
		for i := range heads {
			n.Last = max(n.Last, heads[i].value(KeyDay))
		}
		n.Collected = append(n.Collected, filepath.Base(path))
	}
	if n.Last == "" && len(r.collected) > 0 {
		fi, err := os.Stat(r.collected[0])
		if err != nil {
			return err
		}
		n.Last = fi.ModTime().UTC().Format(time.DateOnly)
	}
	return writeJSON(filepath.Join(r.work, nightName), n)
}

// ErrNoNight is wrapped by the error of Nights for a directory without runs.
var ErrNoNight = errors.New("no finished `symbolize batch run`")

// Nights returns the runs with profiles in directories or below them, in the order of their paths.
// damaged receives the error of each one that cannot be read.
func Nights(dirs []string, damaged func(error)) (list []*Night, err error) {
	for _, dir := range dirs {
		found := false
		err := files.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case !d.IsDir() || d.Name() != workDir:
				return nil
			}
			n, err := readNight(filepath.Dir(path))
			if errors.Is(err, fs.ErrNotExist) { // it was not finished
				return fs.SkipDir
			}
			if found = true; err != nil {
				damaged(err)
				return fs.SkipDir
			}
			list = append(list, n)
			return fs.SkipDir
		})
		if err != nil {
			return nil, err
		}
		if !found {
			return nil, texts.WithHint(fmt.Errorf("%s: %w", dir, ErrNoNight),
				"name its output, or a directory with several")
		}
	}
	return list, nil
}

func readNight(dir string) (*Night, error) {
	path := filepath.Join(dir, workDir, nightName)
	n := &Night{Out: dir}
	return n, readJSON(path, n)
}

// Status is the progress in a directory of Run or of Collect.
type Status struct {
	Progress
	Packs    int `json:"packs"`
	Outdated int `json:"captures_lacking"` // with questions that the store could not answer
	Parts    int `json:"parts"`
	Named    int `json:"parts_named"`
	Groups   int `json:"groups_written"`
}

// ReadStatus reads the progress in a directory: the output of Run, or one of Collect, with files of
// names in others.
func ReadStatus(dir string, names []string) (*Status, error) {
	if fi, err := os.Stat(filepath.Join(dir, workDir)); err == nil && fi.IsDir() {
		dir = filepath.Join(dir, workDir)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	s := &Status{}
	var notes []string
	var there packedKeys
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		switch filepath.Ext(e.Name()) {
		case PlanExtension, ShareExtension:
			notes = append(notes, path)
		case stacksExt:
			err = s.addPack(path, &there)
		case namesExt:
			names = append(names, path)
		case doneExt:
			s.Groups++
		}
		if err != nil {
			return nil, err
		}
	}
	a, err := OpenAnswers(names)
	if err != nil {
		return nil, err
	}
	s.Named = len(a.parts)
	p, err := readProgress(notes, &there)
	if err = errors.Join(err, a.Close()); err != nil {
		return nil, err
	}
	s.Progress = *p
	return s, nil
}

// addPack adds a pack.
func (s *Status) addPack(path string, there *packedKeys) error {
	f, head, heads, err := readPack(path)
	if err != nil {
		return err
	}
	s.Packs++
	s.Parts = head.Parts
	there.add(heads)
	for i := range heads {
		if heads[i].Lacking > 0 {
			s.Outdated++
		}
	}
	return f.Close()
}

// Prune removes the files that Run keeps for another run, and leaves the profiles.
func (n *Night) Prune() error { return os.RemoveAll(filepath.Join(n.Out, workDir)) }

// AddNight adds the figures of another night.
func (s *Summary) AddNight(o *Summary) {
	s.Captures += o.Captures
	s.Kept += o.Kept
	s.Samples += o.Samples
	s.Files += o.Files
	s.NameStats.add(&o.NameStats)
	s.Outdated += o.Outdated
	s.NamesKept += o.NamesKept
	s.Groups += o.Groups
	s.GroupsKept += o.GroupsKept
	s.Remote = o.Remote // of the session, which all share
}

// Name names the night again with the store of a session, and replaces the profiles that have other
// names then. It reads no captures: Summary.Outdated counts those with stacks that the store could
// unwind further now. Of the options only Workers, Demangler and Hooks count.
func (n *Night) Name(ctx context.Context, s *analyze.Session, opts RunOptions) (*Summary, error) {
	opts.Out, opts.Formats, opts.Style, opts.Parts, opts.Chains = n.Out, n.Formats, n.Style, n.Parts, n.Chains
	opts.By = Grouping{Keys: n.Keys, Pattern: n.Pattern, Manifest: n.Manifest}
	r := &runner{opts: opts, work: filepath.Join(n.Out, workDir), session: s, again: true}
	if err := r.opts.By.compile(); err != nil {
		return nil, err
	}
	for _, name := range n.Collected {
		if strings.ContainsRune(name, filepath.Separator) {
			return nil, fmt.Errorf("%s: %q is not the name of a file in it: %w", r.work, name, ErrFormat)
		}
		path := filepath.Join(r.work, name)
		if err := r.countKept(ctx, path); err != nil {
			return nil, err
		}
		r.collected = append(r.collected, path)
	}
	if before, err := readNight(n.Out); err != nil || before.Chains == n.Chains {
		return r.finish(ctx)
	}
	if err := writeJSON(filepath.Join(r.work, nightName), n); err != nil {
		return nil, err
	}
	return r.finish(ctx)
}

// countKept counts the captures of a pack.
func (r *runner) countKept(ctx context.Context, path string) error {
	heads, err := ReadHeads(path)
	if err != nil {
		return err
	}
	for i := range heads {
		h := &heads[i]
		changed, err := r.session.Changed(ctx, h.Needs)
		if err != nil {
			return err
		}
		if changed {
			r.sum.Outdated++
		}
		r.sum.Captures++
		r.sum.Kept++
		r.sum.Samples += h.Samples
	}
	return nil
}
