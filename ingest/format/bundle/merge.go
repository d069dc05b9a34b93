package bundle

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
)

// mergeWays is how many segments are merged at a time: more are merged in groups first, so
// that memory and open files do not grow with the length of a recording.
const mergeWays = 8

// mergeSegments adds to a writer all that segments have, as if they had been recorded as one
// bundle, and returns the manifest of that. An error of a segment becomes a warning.
func mergeSegments(name string, r io.ReaderAt, list []segment, to *Writer) (*Manifest, []error,
	error) {
	var warnings []error
	var temp *os.File
	defer func() {
		if temp != nil {
			temp.Close()
		}
	}()
	for len(list) > mergeWays {
		next, groups, w, err := mergeGroups(name, r, list)
		warnings = append(warnings, w...)
		if temp != nil {
			temp.Close()
		}
		temp = next
		if err != nil {
			return nil, warnings, err
		}
		r, list = temp, groups
	}
	m, w, err := mergeGroup(name, r, list, to)
	return m, append(warnings, w...), err
}

// mergeGroups makes one segment of each mergeWays ones, in a temporary file without a name.
func mergeGroups(name string, r io.ReaderAt, list []segment) (f *os.File, groups []segment,
	warnings []error, err error) {
	w, err := createTemp()
	if err != nil {
		return nil, nil, nil, err
	}
	defer w.Abort()
	if f, err = os.CreateTemp("", "symbolize-bundle-*"); err != nil {
		return nil, nil, nil, err
	}
	err = os.Remove(f.Name())
	size := int64(0)
	for group := range slices.Chunk(list, mergeWays) {
		if err != nil {
			break
		}
		var m *Manifest
		var more []error
		m, more, err = mergeGroup(name, r, group, w)
		warnings = append(warnings, more...)
		at := size + segmentHead
		err = cmp.Or(err, w.appendSegment(f, &size, m), w.forget())
		groups = append(groups, segment{at, size - at})
	}
	return f, groups, warnings, err
}

// merger merges segments into a writer.
type merger struct {
	name     string
	to       *Writer
	from     []*Bundle
	manifest Manifest
	programs map[programKey]uint32 // new numbers, where they are others
	warnings []error
}

// programKey is a program of a process in one of the segments, see "Stacks" in the package
// comment.
type programKey struct {
	from    int
	pid     int32
	program uint32
}

func mergeGroup(name string, r io.ReaderAt, list []segment, to *Writer) (_ *Manifest, _ []error,
	err error) {
	x := &merger{name: name, to: to, programs: make(map[programKey]uint32)}
	defer func() {
		for _, b := range x.from {
			err = errors.Join(err, b.Close())
		}
	}()
	for _, s := range list {
		b, err := openSegment(name, r, s)
		if err != nil { // its digest is right: nobody wrote this
			x.warn("%v", err)
			b.Close()
			continue
		}
		x.warnings = append(x.warnings, b.Warnings...)
		x.from = append(x.from, b)
	}
	if len(x.from) == 0 {
		return nil, x.warnings, fmt.Errorf("%s: %w: none of its parts can be read", name,
			ErrNotBundle)
	}
	x.mergeManifests()
	if err := x.mergeEntries(); err != nil {
		return nil, x.warnings, fmt.Errorf("%s: %w", name, err)
	}
	return &x.manifest, x.warnings, nil
}

func (x *merger) warn(format string, args ...any) {
	if len(x.warnings) < maxWarnings {
		x.warnings = append(x.warnings, fmt.Errorf(format, args...))
	}
}

// mergeManifests adds the manifests up: the last one has most fields.
func (x *merger) mergeManifests() {
	x.manifest = x.from[len(x.from)-1].Manifest
	m := &x.manifest
	m.Begin, m.Lost, m.Warnings, m.Missing = x.from[0].Manifest.Begin, nil, nil, nil
	missing := make(map[uint32]bool)
	seen := make(map[string]bool)
	for _, b := range x.from {
		if len(b.Manifest.Lost) > 0 && m.Lost == nil {
			m.Lost = make(map[string]uint64)
		}
		for cause, n := range b.Manifest.Lost {
			m.Lost[cause] += n
		}
		for _, text := range b.Manifest.Warnings {
			if !seen[text] && len(m.Warnings) < maxWarnings {
				seen[text] = true
				m.Warnings = append(m.Warnings, text)
			}
		}
		for _, p := range b.Manifest.Missing {
			if !missing[p.ID] && len(missing) < maxMissing {
				missing[p.ID] = true
				m.Missing = append(m.Missing, p)
			}
		}
	}
	slices.SortFunc(m.Missing, func(a, b MissingProgram) int { return cmp.Compare(a.ID, b.ID) })
}

// mergeEntries adds the entries: those of stacks and of the side band merged, of mappings each
// that is another one, of all others the last of a name.
func (x *merger) mergeEntries() error {
	done := make(map[string]bool)
	if err := x.mergeMappings(done); err != nil {
		return err
	}
	if err := x.mergeSamples(done); err != nil {
		return err
	}
	if err := x.mergePerfData(done); err != nil {
		return err
	}
	for _, b := range slices.Backward(x.from) {
		for _, name := range b.Names() {
			if done[name] {
				continue
			}
			done[name] = true
			r, size, err := b.Entry(name)
			if err == nil {
				err = x.add(name, io.NewSectionReader(r, 0, size))
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// add adds an entry, unless there are too many.
func (x *merger) add(name string, r io.Reader) error {
	if len(x.to.entries) >= maxMerged {
		if x.manifest.Lost == nil {
			x.manifest.Lost = make(map[string]uint64)
		}
		x.manifest.Lost["entries beyond what a bundle holds"]++
		return nil
	}
	return x.to.AddReader(name, r)
}

// mergeMappings adds the mappings of processes. Those of a process that are the same in two
// segments are of one program; the newest keep their numbers.
func (x *merger) mergeMappings(done map[string]bool) error {
	type mappings struct {
		pid  int32
		text [sha256.Size]byte
	}
	known := make(map[mappings]uint32)
	used := make(map[int32]uint32) // numbers, by process
	for from, b := range slices.Backward(x.from) {
		for _, name := range b.Names() {
			pid, program, ok := MapsProgram(name)
			if !ok {
				continue
			}
			done[name] = true
			key := mappings{pid, b.entries[b.index[name]].sum}
			n, ok := known[key]
			if !ok {
				n = used[pid]
				used[pid]++
				known[key] = n
				r, size, err := b.Entry(name)
				if err == nil {
					err = x.add(ProgramMapsName(pid, n), io.NewSectionReader(r, 0, size))
				}
				if err != nil {
					return err
				}
			}
			if n != program {
				x.programs[programKey{from, pid, program}] = n
			}
		}
	}
	return nil
}

// mergeFiles returns the files of all, sorted by build ID, each ID once.
func (x *merger) mergeFiles(event string) []File {
	paths := make(map[string]string)
	for _, b := range x.from {
		for i := range b.Manifest.Samples {
			if b.Manifest.Samples[i].Event != event {
				continue
			}
			for _, f := range b.Manifest.Samples[i].Files {
				if was, ok := paths[f.BuildID]; !ok || f.Path < was {
					paths[f.BuildID] = f.Path
				}
			}
		}
	}
	var list []File
	for _, id := range slices.Sorted(maps.Keys(paths)) {
		list = append(list, File{BuildID: id, Path: paths[id]})
	}
	return list
}

// addTemp adds an entry that is written, first to a temporary file.
func (x *merger) addTemp(name string, write func(f *os.File) error) (err error) {
	f, err := os.CreateTemp("", "symbolize-bundle-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := os.Remove(f.Name()); err != nil {
		return err
	}
	if err := write(f); err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return x.to.AddReader(name, f)
}
