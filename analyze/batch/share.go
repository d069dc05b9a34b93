package batch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"symbolize/ingest"
	"symbolize/ingest/files"
	"symbolize/ingest/texts"
)

// Extensions of the files in which tasks of Collect note the captures that they read together, and
// their share.
const (
	PlanExtension  = ".plan"
	ShareExtension = ".share"
)

// plan lists the captures that are expected. Paths are absolute.
type plan struct {
	Captures []string `json:"captures"`
}

// share is the work of one task of Collect.
type share struct {
	Plan   string    `json:"plan"` // name of the file
	Done   []string  `json:"done"` // absolute paths
	Failed []Failure `json:"failed,omitempty"`
}

// Failure is a capture that could not be read, or with a part that could not.
type Failure struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// WritePlan notes in a directory which captures are expected in it, and returns the name of the
// file.
func WritePlan(dir string, captures []string) (string, error) {
	var p plan
	var err error
	if p.Captures, err = absolute(captures); err != nil {
		return "", err
	}
	name := digest(strings.Join(p.Captures, "\x00")) + PlanExtension
	if _, err := os.Stat(filepath.Join(dir, name)); err == nil { // of another task
		return name, nil
	}
	return name, writeJSON(filepath.Join(dir, name), &p)
}

// writeJSON writes a file with one value.
func writeJSON(path string, value any) error {
	return writeFile(path, func(w io.Writer) error { return texts.NewJSONEncoder(w).Encode(value) })
}

// writeShare notes the share of a task, and the captures of all tasks.
func (t *collecting) writeShare(captures, all []string) error {
	own, err := absolute(captures)
	if err != nil {
		return err
	}
	var s share
	if s.Plan, err = WritePlan(t.Dir, all); err != nil {
		return err
	}
	failed := make(map[string]bool)
	for _, f := range t.failures {
		abs, err := filepath.Abs(f.Path)
		if err != nil {
			return err
		}
		failed[abs] = true
		if f.Reason != "" {
			s.Failed = append(s.Failed, Failure{abs, f.Reason})
		}
	}
	slices.SortFunc(s.Failed, func(a, b Failure) int { return strings.Compare(a.Path, b.Path) })
	s.Done = slices.DeleteFunc(slices.Clone(own), func(path string) bool { return failed[path] })
	// By the captures that it was to read: run again, the task replaces its note.
	name := digest(s.Plan+"\n"+strings.Join(own, "\x00")) + ShareExtension
	if t.shared != nil { // of Run: nothing but its last plan counts
		if err := t.dropPlans(s.Plan, name); err != nil {
			return err
		}
	}
	return writeJSON(filepath.Join(t.Dir, name), &s)
}

// dropPlans removes the plans and shares of runs before.
func (t *collecting) dropPlans(keep ...string) error {
	for _, ext := range []string{PlanExtension, ShareExtension} {
		old, err := filepath.Glob(filepath.Join(t.Dir, "*"+ext))
		if err != nil {
			return err
		}
		for _, path := range old {
			if slices.Contains(keep, filepath.Base(path)) {
				continue
			}
			if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
				return outputErr(err)
			}
		}
	}
	return nil
}

// absolute returns absolute paths, sorted.
func absolute(paths []string) ([]string, error) {
	out := make([]string, len(paths))
	for i, path := range paths {
		abs, err := filepath.Abs(path)
		if err != nil {
			return nil, err
		}
		out[i] = abs
	}
	slices.Sort(out)
	return out, nil
}

// Progress is how much of a plan is done.
type Progress struct {
	Expected  int       `json:"captures_expected"`
	Collected int       `json:"captures_collected"`
	Failed    []Failure `json:"captures_failed,omitempty"`  // they could not be read
	Damaged   []Failure `json:"captures_damaged,omitempty"` // collected, but something in them is lost
	Warned    []Failure `json:"captures_warned,omitempty"`  // the other warnings about collected ones
	Missing   []string  `json:"captures_missing,omitempty"` // no task has read them, or no pack has them
	Shares    int       `json:"shares"`                     // tasks that have ended
}

// packedKeys are the keys of the captures that packs have.
type packedKeys struct {
	keys     map[string][]ingest.Warning // Head.Warnings by Head.Key
	readings map[string]bool             // see Head.Reading
}

func (k *packedKeys) add(heads []Head) {
	if k.keys == nil {
		k.keys, k.readings = make(map[string][]ingest.Warning), make(map[string]bool)
	}
	for i := range heads {
		k.keys[heads[i].Key] = heads[i].Warnings
		k.readings[heads[i].Reading] = true
	}
}

// has reports whether a pack has the capture with an absolute path, read in any way, and returns the
// warnings about it.
func (k *packedKeys) has(path string) (warnings []ingest.Warning, ok bool) {
	for _, reading := range slices.Sorted(maps.Keys(k.readings)) {
		list, has := k.keys[captureKey(path, reading)]
		ok = ok || has
		for _, w := range list {
			if !slices.Contains(warnings, w) {
				warnings = append(warnings, w)
			}
		}
	}
	return warnings, ok
}

// ReadProgress reads the notes of tasks, see PlanExtension and ShareExtension. A capture that a task
// has read is missing if none of the packs has it: a file was lost.
func ReadProgress(notes, packs []string) (*Progress, error) {
	var there packedKeys
	for _, path := range packs {
		heads, err := ReadHeads(path)
		if err != nil {
			return nil, err
		}
		there.add(heads)
	}
	return readProgress(notes, &there)
}

func readProgress(notes []string, there *packedKeys) (*Progress, error) {
	p := &Progress{}
	left := make(map[string]bool) // expected captures: true if none has read them
	failed := make(map[string]string)
	var shares []share
	for _, path := range notes {
		var pl plan
		var s share
		switch filepath.Ext(path) {
		case PlanExtension:
			if err := readJSON(path, &pl); err != nil {
				return nil, err
			}
		case ShareExtension:
			if err := readJSON(path, &s); err != nil {
				return nil, err
			}
			if s.Plan == "" {
				return nil, fmt.Errorf("%s: no share of a plan: %w", path, ErrFormat)
			}
			shares = append(shares, s)
		}
		for _, capture := range pl.Captures {
			left[capture] = true
		}
	}
	for _, s := range shares {
		for _, f := range s.Failed {
			failed[f.Path] = f.Reason
			left[f.Path] = false
		}
	}
	for _, s := range shares {
		for _, capture := range s.Done { // also by a later task
			delete(failed, capture)
			_, ok := there.has(capture)
			left[capture] = !ok
		}
	}
	for _, capture := range slices.Sorted(maps.Keys(left)) {
		if reason, ok := failed[capture]; ok {
			p.Failed = append(p.Failed, Failure{capture, reason})
		} else if left[capture] {
			p.Missing = append(p.Missing, capture)
		} else {
			p.addWarnings(capture, there)
		}
	}
	p.Expected, p.Shares = len(left), len(shares)
	p.Collected = p.Expected - len(p.Failed) - len(p.Missing)
	return p, nil
}

// addWarnings adds the warnings about a collected capture.
func (p *Progress) addWarnings(capture string, there *packedKeys) {
	list, _ := there.has(capture)
	for _, w := range list {
		if w.Partial {
			p.Damaged = append(p.Damaged, Failure{capture, w.Text})
		} else {
			p.Warned = append(p.Warned, Failure{capture, w.Text})
		}
	}
}

func readJSON(path string, value any) error {
	f, err := files.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := json.NewDecoder(f).Decode(value); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// ErrGaps is wrapped by the error of a plan with captures that are not collected.
var ErrGaps = errors.New("not all captures are collected")

// maxListed is how many captures an error names.
const maxListed = 20

// Complete returns an error if captures are missing.
func (p *Progress) Complete() error {
	if len(p.Missing) == 0 {
		return nil
	}
	text := strings.Join(p.Missing[:min(len(p.Missing), maxListed)], ", ")
	if len(p.Missing) > maxListed {
		text += " …"
	}
	return texts.WithHint(fmt.Errorf("%w: %d of %d are missing: %s", ErrGaps, len(p.Missing), p.Expected,
		texts.Printable(text)), "run each share of `symbolize batch collect` to its end, or go on "+
		"without them with --allow-missing")
}

// Note describes the missing captures for the profiles made without them; "" for none.
func (p *Progress) Note() string {
	if len(p.Missing) == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d captures (%.1f %%) of the batch are missing: their stacks are not there",
		len(p.Missing), p.Expected, 100*float64(len(p.Missing))/float64(p.Expected))
}
