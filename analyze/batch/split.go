package batch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"symbolize/analyze"
	"symbolize/analyze/advice"
	"symbolize/analyze/columns"
	"symbolize/analyze/demangle"
	"symbolize/ingest"
	"symbolize/ingest/input/merge"
)

// ofSamples reports whether samples have values of a key, rather than captures.
func ofSamples(key string) bool {
	switch key {
	case KeyComm, "pid", "tid", "cpu":
		return true
	}
	return ingest.ParseTag(key) == nil
}

// Labels adds the labels of the keys to the labels that Collect keeps.
func (g *Grouping) Labels(k *ingest.Keep) error {
	if err := g.compile(); err != nil {
		return err
	}
	for _, key := range g.keysOf(true) {
		if key == "" {
			continue
		}
		if err := k.Add(key); err != nil {
			return fmt.Errorf("key %q: %w: %w", key, err, ErrGrouping)
		}
	}
	return nil
}

// kept checks that a capture was collected with the labels that the keys need.
func (g *Grouping) kept(h *Head) error {
	with := h.Keep
	if err := g.Labels(&with); err != nil {
		return err
	}
	if with != h.Keep {
		return fmt.Errorf("%s was collected without the labels that are keys: %w", h.Path, ErrGrouping)
	}
	return nil
}

// keysOf returns the keys of samples or of captures, with "" for the others.
func (g *Grouping) keysOf(samples bool) []string {
	keys := slices.Clone(g.Keys)
	for i := range keys {
		if g.samples[i] != samples {
			keys[i] = ""
		}
	}
	return keys
}

// Output is where and how the profiles of groups are written.
type Output struct {
	Dir     string
	Formats []string // extensions of the files, see RunOptions
	// Demangler returns the demangler of a group.
	Demangler func() *demangle.Demangler
	Comment   string // of each profile; "" for none
	// Session has the store: only needed by the formats of package pgo, for the layouts of objects, and
	// if Group.Accesses, for the types that instructions access.
	Session *analyze.Session
	*Hooks
}

// Written has the files of a group.
type Written struct {
	Files []WrittenFile
	Facts []json.RawMessage // of the profiles, see Hooks
	// Warnings are about the names, by profile; a run that writes nothing repeats them.
	Warnings []Warned `json:",omitempty"`
	// Left counts the builds without a file, such as those without debug information: another run tries again.
	Left int `json:",omitempty"`

	// Needs are the questions to the store that the labels depend on, an encoded []analyze.Dependency.
	Needs []byte `json:",omitempty"`

	keys []string // of the records that were looked for
}

// Warned is a warning about a profile.
type Warned struct {
	Profile string // name of its files, without an extension
	ingest.Warning
}

// has reports whether a warning was added about any profile.
func (w *Written) has(warning ingest.Warning) bool {
	return slices.ContainsFunc(w.Warnings, func(o Warned) bool { return o.Warning == warning })
}

// warnAll passes on the warnings.
func (w *Written) warnAll(h *Hooks) {
	for _, one := range w.Warnings {
		h.warn(one.Profile, one.Warning)
	}
}

// WrittenFile is a file below Output.Dir.
type WrittenFile struct {
	Path string // below it
	Size int64
	Sum  string // SHA-256 of its content, in hexadecimal
}

// Write makes the profiles of a group and writes them.
func (g *Group) Write(ctx context.Context, a *Answers, out Output) (*Written, error) {
	if err := a.have(g.parts); err != nil {
		return nil, err
	}
	gr := newGroup(a)
	if g.Accesses() {
		if out.Session == nil {
			return nil, fmt.Errorf("%s: no store with the types that samples access", name(g.Values))
		}
		gr.accesses = out.Session.Accesses(ctx)
	}
	w := &writer{Output: out, captureKeys: g.captureKeys, d: out.Demangler()}
	split := slices.ContainsFunc(g.keys, func(key string) bool { return key != "" })
	profiles, err := gr.loadAll(ctx, g, split)
	switch {
	case err != nil:
		err = fmt.Errorf("%s: %w", name(g.Values), err)
	case split:
		err = g.writeParts(ctx, gr, profiles, w)
	default:
		err = w.write(ctx, gr, profiles, g.Values)
	}
	if err != nil {
		return nil, err
	}
	if gr.accesses != nil {
		needs := gr.accesses.Dependencies()
		w.done.Needs = encodeRecord(&needs)
		for _, warning := range gr.accesses.Warnings() {
			w.add(g.Values, warning)
		}
	}
	w.done.keys = slices.Sorted(maps.Keys(gr.known))
	for _, m := range g.Collected {
		w.done.keys = append(w.done.keys, chainName(m.state))
	}
	w.facts(w.done.Facts)
	w.done.warnAll(w.Hooks)
	return &w.done, nil
}

// writeParts writes a profile for each value of the keys of samples.
func (g *Group) writeParts(ctx context.Context, gr *group, profiles []*ingest.Profile,
	w *writer) error {
	parts := g.split(profiles)
	for _, values := range slices.Sorted(maps.Keys(parts)) {
		if err := ctx.Err(); err != nil {
			return err
		}
		for i, p := range profiles {
			parts[values].profiles[i] = merge.Part(p, parts[values].samples[i])
		}
		err := w.write(ctx, gr, parts[values].profiles, strings.Split(values, "\x00"))
		if err != nil {
			return err
		}
		delete(parts, values)
	}
	return nil
}

// part is the samples of a group with equal values of all keys.
type part struct {
	samples  [][]ingest.Sample // by profile
	profiles []*ingest.Profile
}

// split sorts the samples of profiles by the values of the keys, with NUL between them.
func (g *Group) split(profiles []*ingest.Profile) map[string]*part {
	parts := make(map[string]*part)
	values := slices.Clone(g.Values)
	for n, p := range profiles {
		for i := range p.Samples {
			s := &p.Samples[i]
			for k, key := range g.keys {
				if key == "" {
					continue
				}
				values[k] = strings.ReplaceAll(p.LabelValue(s, key), "\x00", "")
				if values[k] == "" {
					values[k] = unknownValue
				}
			}
			key := strings.Join(values, "\x00")
			pt := parts[key]
			if pt == nil {
				pt = &part{make([][]ingest.Sample, len(profiles)), make([]*ingest.Profile, len(profiles))}
				parts[key] = pt
			}
			pt.samples[n] = append(pt.samples[n], *s)
		}
	}
	return parts
}

// summing writes a file and computes its size and sum.
type summing struct {
	out  io.Writer
	hash hash.Hash
	size int64
}

func (s *summing) Write(b []byte) (int, error) {
	n, err := s.out.Write(b)
	s.hash.Write(b[:n])
	s.size += int64(n)
	return n, err
}

// writer writes the profiles of one group.
type writer struct {
	Output
	captureKeys []string // "" for keys of samples
	d           *demangle.Demangler
	done        Written
}

// labels are the keys of captures with their values. The host is a column of each file.
func (w *writer) labels(values []string) (list []columns.Label) {
	for i, key := range w.captureKeys {
		if key != "" && key != KeyHost {
			list = append(list, columns.Label{Key: key, Value: values[i]})
		}
	}
	return list
}

// add adds a warning about a profile.
func (w *writer) add(values []string, warning ingest.Warning) {
	w.done.Warnings = append(w.done.Warnings, Warned{name(values), warning})
}

// write names one profile of several and writes it.
func (w *writer) write(ctx context.Context, g *group, profiles []*ingest.Profile, values []string) error {
	p, err := g.merge(profiles)
	if err != nil {
		return fmt.Errorf("%s: %w", name(values), err)
	}
	if w.Comment != "" {
		p.Meta.Comments = append(p.Meta.Comments, w.Comment)
	}
	for _, warning := range slices.Concat(p.Stats.Warnings, p.Names.Warnings) {
		if !w.done.has(warning) { // one about a table is the same in all profiles
			w.add(values, warning)
		}
	}
	if slices.ContainsFunc(values, tooLong) {
		w.add(values, ingest.Warning{Text: "a value of a key is too long for the name of a file: " +
			"it is shortened, with a digest at its end"})
	}
	if warning := advice.UncalledWarning(p); warning != nil {
		w.add(values, *warning)
	}
	for _, format := range w.Formats {
		var err error
		if isPGO(format) {
			err = w.writeBuilds(ctx, p, values, format)
		} else {
			err = w.file(name(values)+format, func(out io.Writer) error {
				return Write(out, p, g.layout(), format, w.labels(values), w.d)
			})
		}
		if err != nil {
			return err
		}
	}
	if w.Hooks != nil && w.Facts != nil {
		w.done.Facts = append(w.done.Facts, w.Facts(p))
	}
	return nil
}

// file writes a file and notes it as done.
func (w *writer) file(name string, encode func(io.Writer) error) error {
	f := WrittenFile{Path: name}
	path := filepath.Join(w.Dir, f.Path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return outputErr(err)
	}
	err := writeFile(path, func(out io.Writer) error {
		s := &summing{out: out, hash: sha256.New()}
		err := encode(s)
		f.Size, f.Sum = s.size, hex.EncodeToString(s.hash.Sum(nil))
		return err
	})
	if err == nil {
		w.done.Files = append(w.done.Files, f)
	}
	return err
}
