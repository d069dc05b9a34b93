package batch

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"symbolize/analyze"
	"symbolize/analyze/demangle"
	"symbolize/ingest"
	"symbolize/ingest/files"
	"symbolize/ingest/texts"
	"symbolize/store/remote"
)

// workDir is where Run keeps the files between its steps, below its output.
const workDir = ".batch"

// Extensions of the files in workDir: collected captures, names, what is done; and what is added to
// the names of directories in their place.
const (
	stacksExt = ".stacks"
	namesExt  = ".names"
	doneExt   = ".done"
	asideExt  = ".aside"
)

// RunOptions are for Run.
type RunOptions struct {
	Session analyze.Options // of each capture; Bundles are the bundles of its directory
	Parts   int             // 0 for 8
	Workers int             // captures, parts and groups at a time; 0 for GOMAXPROCS
	By      Grouping
	Out     string // directory of the profiles
	// Formats are the extensions of the files to write: FormatPprof, FormatFolded, FormatParquet; or those of
	// package pgo, see CheckFormats.
	Formats   []string
	Demangler func() *demangle.Demangler // for each group
	Chains    Chains
	// Config is a text of the options that change the reading of a capture, and Style of the
	// options that change how profiles are written: work that was done with others is done again.
	Config, Style string

	*Hooks
}

// The formats, by the extensions of their files.
const (
	FormatPprof   = ".pb.gz"
	FormatFolded  = ".folded"
	FormatParquet = ".parquet"
)

// Summary counts the results of Run.
type Summary struct {
	CollectStats
	NameStats
	// Outdated counts captures that were not read again although the store has more to unwind their
	// stacks with: see Night.Name.
	Outdated   int `json:"captures_outdated,omitempty"`
	NamesKept  int `json:"parts_kept"` // that an earlier run had named
	Groups     int `json:"profiles"`
	GroupsKept int `json:"profiles_kept"` // that an earlier run had written
	// Remote counts the tables that came from analyze.Options.Remote.
	Remote  remote.PullResult `json:"remote,omitzero"`
	Lacking []string          `json:"lacking,omitempty"` // see Grouped
	Equal   [][2]string       `json:"equal,omitempty"`
}

// Run makes the profiles of all captures on this machine: it collects each capture, names each
// part and merges each group. Work that an earlier run of the same inputs has done is not repeated.
// Captures that cannot be read are reported to OnFailed. The others are processed also if a file
// cannot be written; the error then wraps ErrOutput, and the summary covers the finished part.
func Run(ctx context.Context, captures []string, opts RunOptions) (*Summary, error) {
	r := &runner{opts: opts, work: filepath.Join(opts.Out, workDir)}
	if r.opts.Parts <= 0 {
		r.opts.Parts = 8
	}
	if err := r.opts.By.compile(); err != nil {
		return nil, err
	}
	if err := files.CheckLinks(opts.Out); err != nil {
		return nil, err
	}
	if err := files.MakeDir(r.work); err != nil {
		return nil, err
	}
	err := r.setAside()
	if err != nil {
		return nil, err
	}
	if r.session, err = analyze.Open(ctx, opts.Session); err != nil {
		return nil, err
	}
	if err = r.collect(ctx, captures); err == nil {
		err = r.writeNight()
	}
	if err == nil {
		_, err = r.finish(ctx)
	}
	return &r.sum, errors.Join(err, r.session.Close())
}

// finish names and merges the collected captures.
func (r *runner) finish(ctx context.Context) (*Summary, error) {
	err := r.nameParts(ctx)
	if err == nil {
		err = r.mergeGroups(ctx)
	}
	if err == nil {
		err = r.sum.Err()
	}
	return &r.sum, err
}

// setAside renames directories that have the names of Run's own files, which cannot be replaced.
func (r *runner) setAside() error {
	entries, err := os.ReadDir(r.work)
	if err != nil {
		return err
	}
	for _, e := range entries {
		switch filepath.Ext(e.Name()) {
		case stacksExt, namesExt, doneExt:
		default:
			continue
		}
		if !e.IsDir() {
			continue
		}
		path := filepath.Join(r.work, e.Name())
		aside := path + asideExt
		for i := 2; ; i++ {
			if _, err := os.Lstat(aside); errors.Is(err, os.ErrNotExist) {
				break
			}
			aside = fmt.Sprintf("%s%s%d", path, asideExt, i)
		}
		if err := os.Rename(path, aside); err != nil {
			return err
		}
		r.opts.warn(path, ingest.Warning{Text: fmt.Sprintf("%s is a directory where a file of this "+
			"program belongs: it is now %s", texts.Printable(path), ingest.BaseName(aside))})
	}
	return nil
}

// runner is one Run.
type runner struct {
	opts    RunOptions
	work    string
	session *analyze.Session // of the store, for all steps
	again   bool             // captures are not collected: only what is written has warnings

	mu        sync.Mutex // of sum while groups are merged
	sum       Summary
	collected []string // files
	answers   []string
}

// collect collects all captures.
func (r *runner) collect(ctx context.Context, captures []string) error {
	c := &Collector{Session: r.opts.Session, Dir: r.work, Parts: r.opts.Parts, Workers: r.opts.Workers,
		Config: r.opts.Config, Hooks: r.opts.Hooks, shared: r.session}
	files, st, err := c.Collect(ctx, captures, captures)
	r.sum.CollectStats, r.collected = st, files
	return err
}

// nameParts names all parts, as far as an earlier run has not. Without the names of a part there
// are no profiles, but the others are named.
func (r *runner) nameParts(ctx context.Context) error {
	slices.Sort(r.collected)
	inputs, _, err := inputsOf(r.collected)
	if err != nil {
		return err
	}
	r.answers = make([]string, r.opts.Parts)
	// One part after another: memory holds one part, and its objects are named in parallel.
	c := &completer{session: r.session, chains: r.opts.Chains, packs: r.collected, parts: r.opts.Parts,
		workers: r.opts.Workers}
	name := func(ctx context.Context, part int) error {
		r.answers[part] = filepath.Join(r.work, fmt.Sprintf("part-%d%s", part, namesExt))
		st, err := namePart(ctx, c, &namesHead{part, r.opts.Parts, inputs, r.opts.Chains}, r.answers[part])
		if err == nil {
			r.sum.NameStats.add(st)
			if st.all {
				r.sum.NamesKept++
			}
		}
		return r.passOver(ctx, err)
	}
	before := r.sum.Files
	err = steps(ctx, 1, r.opts.Hooks, "name", r.opts.Parts, name)
	r.sum.Remote = r.session.State().Pulled
	r.sum.pulled.Asked, r.sum.pulled.Found = 0, 0 // they are requested again
	r.sum.Remote.Add(&r.sum.pulled)
	if err == nil && r.sum.Files > before {
		err = r.sum.Err()
	}
	return err
}

// passOver counts a file that could not be written.
func (r *runner) passOver(ctx context.Context, err error) error {
	if !errors.Is(err, ErrOutput) || ctx.Err() != nil {
		return err
	}
	r.opts.unwritten(err)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sum.Files++
	return nil
}

// mergeGroups writes the profile of each group.
func (r *runner) mergeGroups(ctx context.Context) error {
	grouped, err := r.opts.By.Groups(r.collected)
	if err != nil {
		return err
	}
	groups := grouped.Groups
	r.sum.Lacking, r.sum.Equal = grouped.Lacking, grouped.Equal
	a, err := OpenAnswers(r.answers)
	if err != nil {
		return err
	}
	err = steps(ctx, r.opts.Workers, r.opts.Hooks, "merge", len(groups),
		func(ctx context.Context, i int) error {
			if err := r.heldBack(groups[i]); err != nil {
				return r.passOver(ctx, err)
			}
			return r.passOver(ctx, r.mergeGroup(ctx, a, groups[i]))
		})
	return errors.Join(err, a.Close())
}

// heldBack returns an error for a group with captures that were read but could not be kept: its
// profile would lack them, under the name of a whole one.
func (r *runner) heldBack(g *Group) error {
	var list []string
	for _, path := range r.sum.unkept {
		if r.opts.By.mayHave(g, path) {
			list = append(list, path)
		}
	}
	if len(list) == 0 {
		return nil
	}
	slices.Sort(list)
	return outputErr(fmt.Errorf("%s: the profile is held back: %d of its captures could not be kept, such "+
		"as %s", name(g.Values), len(list), list[0]))
}

// done is a file that marks a group as written.
type done struct {
	State    string   // of the inputs
	Captures int      // of the group
	Keys     []string // of the records of names that it has
	Names    string   // see Answers.state
	Written
}

// mergeGroup writes the profiles of one group, unless an earlier run has.
func (r *runner) mergeGroup(ctx context.Context, a *Answers, g *Group) error {
	d := done{State: digest(r.opts.Style + "\n" + g.state), Captures: len(g.Collected)}
	mark := filepath.Join(r.work, digest(fmt.Sprintf("%q %q", g.Values, g.keys))+doneExt)
	old := readDone(mark)
	kept, err := r.isDone(ctx, old, d.State, a)
	if err != nil {
		return err
	}
	if kept {
		r.count(len(old.Files), &r.sum.GroupsKept)
		r.opts.facts(old.Facts)
		if !r.again {
			old.warnAll(r.opts.Hooks)
		}
		return nil
	}
	if old.Captures > d.Captures {
		r.opts.warn(name(g.Values), ingest.Warning{Text: fmt.Sprintf("%d of the %d captures of the "+
			"run before are not there any more", old.Captures-d.Captures, old.Captures)})
	}
	o := &r.opts
	w, err := g.Write(ctx, a, Output{Dir: o.Out, Formats: o.Formats, Demangler: o.Demangler, Session: r.session,
		Hooks: o.Hooks})
	if err != nil {
		return err
	}
	if r.again {
		g.warn(o.Hooks)
	}
	d.Written, d.Keys, d.Names = *w, w.keys, a.state(w.keys)
	r.count(len(w.Files), nil)
	if err := r.sync(w.Files); err != nil {
		return outputErr(err)
	}
	return writeFile(mark, func(w io.Writer) error { return texts.NewJSONEncoder(w).Encode(&d) })
}

// count counts the profiles of a group by their files.
func (r *runner) count(files int, kept *int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := files / len(r.opts.Formats)
	r.sum.Groups += n
	if kept != nil {
		*kept += n
	}
}

// readDone reads the mark of a group, zero if there is none.
func readDone(mark string) (d done) {
	if err := readJSON(mark, &d); err != nil {
		return done{}
	}
	return d
}

// isDone reports whether the files of a group are there and have the same inputs.
func (r *runner) isDone(ctx context.Context, old done, state string, a *Answers) (bool, error) {
	if old.State != state || old.Left > 0 || old.Names != a.state(old.Keys) || !r.hasFiles(&old) {
		return false, nil
	}
	if len(old.Needs) == 0 {
		return true, nil
	}
	var needs []analyze.Dependency
	if err := decodeRecord("labels", old.Needs, &needs); err != nil {
		return false, nil // of another version
	}
	changed, err := r.session.Changed(ctx, needs)
	return !changed, err
}

// hasFiles reports whether the files of a group are there in all formats.
func (r *runner) hasFiles(old *done) bool {
	has := make(map[string]bool)
	for _, file := range old.Files {
		if !r.isWhole(&file) {
			return false
		}
		for _, format := range r.opts.Formats {
			has[format] = has[format] || strings.HasSuffix(file.Path, format)
		}
	}
	for _, format := range r.opts.Formats { // another run may have had others
		if !has[format] {
			return false
		}
	}
	return true
}

// isWhole reports whether a file has the content that was written.
func (r *runner) isWhole(file *WrittenFile) bool {
	f, err := files.Open(filepath.Join(r.opts.Out, file.Path))
	if err != nil {
		return false
	}
	defer f.Close()
	if fi, err := f.Stat(); err != nil || fi.Size() != file.Size {
		return false
	}
	h := sha256.New()
	_, err = io.Copy(h, f)
	return err == nil && hex.EncodeToString(h.Sum(nil)) == file.Sum
}

// sync has the names of files written to the disk, as writeFile does with their content, so that no
// mark of them outlives them when the power fails.
func (r *runner) sync(list []WrittenFile) error {
	dirs := make(map[string]bool)
	for _, file := range list {
		for path := file.Path; path != "."; path = filepath.Dir(path) {
			dirs[filepath.Dir(path)] = true
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		if err := files.SyncDir(filepath.Join(r.opts.Out, dir)); err != nil {
			return err
		}
	}
	return nil
}

// writeFile writes a file that appears complete or not at all, also when the power fails.
func writeFile(path string, write func(io.Writer) error) error {
	f, err := files.Create(path, 0o644)
	if err != nil {
		return outputErr(err)
	}
	b := bufio.NewWriter(f)
	err = write(b)
	if err == nil {
		err = b.Flush()
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = f.Publish(path)
	}
	return outputErr(errors.Join(err, f.Discard()))
}
