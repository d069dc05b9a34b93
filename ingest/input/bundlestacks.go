package input

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/format/bpf"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/rawdump"
	"symbolize/ingest/format/stackmap"
	"symbolize/ingest/object/btf"
	"symbolize/ingest/sideband"
)

// bundleDump is a dump of a map in a bundle.
type bundleDump struct {
	name   string // of the map
	header rawdump.Header
	input  stackmap.Input
}

// dumps opens the dumps of a bundle. One that cannot be opened is left out.
func (s *bundleSource) dumps() (list []bundleDump, damage error) {
	for _, entry := range s.bundle.Names() {
		name, ok := bundle.CutDump(entry)
		if !ok {
			continue
		}
		r, size, err := s.bundle.Entry(entry)
		if err != nil {
			continue // it is in Bundle.Warnings
		}
		d, err := rawdump.Open(s.file.path+": "+entry, r, size)
		if err != nil {
			damage = errors.Join(damage, err)
			continue
		}
		list = append(list, bundleDump{name: name, header: d.Header, input: stackmap.Input{
			Name: s.file.path + ": " + entry, R: r, Size: size}})
	}
	return list, damage
}

// stackMap reads the stacks in a bundle, once: those that the manifest lists, else those of
// the dumps. The profile reports damage among them.
func (s *bundleSource) stackMap() *stackSource {
	if !s.stacksRead {
		s.stacksRead = true
		if len(s.bundle.Manifest.Samples) == 0 {
			s.dumpedStacks()
		} else {
			s.sampledStacks()
		}
	}
	return s.stacks
}

// setStacks makes the source of the stacks that were read; err is the damage after them.
func (s *bundleSource) setStacks(set *stackmap.Set, err error) {
	s.stacksErr = errors.Join(s.stacksErr, err)
	if set == nil {
		return
	}
	opts := s.opts
	opts.Stacks.PathOf = func(id buildid.ID) string {
		if path := s.recordedPath(id); path != "" || s.opts.Stacks.PathOf == nil {
			return path
		}
		return s.opts.Stacks.PathOf(id)
	}
	s.stacks = &stackSource{file: s.file, set: set, opts: opts,
		damage: errors.Join(s.stacksErr, s.damage)}
	if s.bundle.Manifest.Text == 0 { // else the list only has names, and may be of another boot
		s.stacks.kallsyms = opts.Stacks.Kallsyms
	}
}

// foldStacks makes the profile of the stacks, with the mappings of the bundle itself.
func (s *bundleSource) foldStacks(ctx context.Context) (*ingest.Profile, error) {
	sb, err := s.stacks.newState(ctx)
	if err != nil {
		return nil, err
	}
	own := sideband.Bundle{Path: s.file.path, Bundle: s.bundle,
		Programs: func() ([]bpf.Program, error) { return nil, nil }}
	var warnings []sideband.Warning
	if s.sideBand != nil {
		side, err := s.sideBand.scan(ctx)
		if err != nil {
			return nil, err
		}
		sb.Programs.Err = side.Programs.Err
		own.Records = s.sideBand.data
		own.Programs = func() ([]bpf.Program, error) { return side.Programs.List, nil }
		warnings = side.Records.Warnings
	}
	sb.TakeAll(own)
	return s.stacks.fold(sb, warnings)
}

// sampledStacks reads the stacks that the manifest lists.
func (s *bundleSource) sampledStacks() {
	var list []stackmap.Sampled
	for i := range s.bundle.Manifest.Samples {
		m := &s.bundle.Manifest.Samples[i]
		x, err := s.sampled(m)
		if err != nil {
			s.stacksErr = errors.Join(s.stacksErr, fmt.Errorf("%s: samples of %q: %w",
				s.file.path, m.Event, err))
			continue
		}
		list = append(list, *x)
	}
	if len(list) > 0 {
		s.setStacks(stackmap.ReadSampled(list))
	}
}

// recordedPath returns the path that the manifest has for a build ID in stacks, [vdso] for
// that of a vdso, and "" for others.
func (s *bundleSource) recordedPath(id buildid.ID) string {
	if s.bundle.Has(bundle.VDSOName(id.Hex())) {
		return "[vdso]"
	}
	if s.paths == nil {
		s.paths = make(map[buildid.Key][]recordedFile)
		for i := range s.bundle.Manifest.Samples {
			for _, f := range s.bundle.Manifest.Samples[i].Files {
				if file, err := buildid.Parse(f.BuildID); err == nil {
					key := file.Key()
					s.paths[key] = append(s.paths[key], recordedFile{file, f.Path})
				}
			}
		}
	}
	for _, f := range s.paths[id.Key()] {
		if f.id.Matches(id) {
			return f.path
		}
	}
	return ""
}

// recordedFile is a file of a build ID that a bundle's manifest lists.
type recordedFile struct {
	id   buildid.ID
	path string
}

// sampled opens the dumps that the manifest lists for the samples of an event.
func (s *bundleSource) sampled(m *bundle.Samples) (*stackmap.Sampled, error) {
	x := &stackmap.Sampled{Event: stackmap.Event{Name: m.Event, Unit: m.Unit, Period: m.Period}}
	if m.Period == 0 && m.Weight == "" {
		return nil, errors.New("neither a period nor a weight")
	}
	open := func(entry string) (*stackmap.Input, error) {
		r, size, err := s.bundle.Entry(entry)
		return &stackmap.Input{Name: s.file.path + ": " + entry, R: r, Size: size}, err
	}
	user, err := open(m.Stacks)
	if err != nil {
		return nil, err
	}
	x.Stacks = *user
	o := &x.Options
	o.Packed = s.file.size
	if m.KernelStacks != "" {
		if o.Kernel, err = open(m.KernelStacks); err != nil {
			return nil, err
		}
	}
	if o.Counts, err = open(m.Counts); err != nil {
		return nil, err
	}
	if o.Key, err = stackmap.ParseFields(m.Key); err != nil {
		return nil, err
	}
	for _, f := range []struct {
		text string
		to   **stackmap.Field
	}{{m.Value, &o.Value}, {m.Weight, &o.Weight}} {
		if f.text == "" {
			continue
		}
		if *f.to, err = stackmap.ParseValue(f.text); err != nil {
			return nil, err
		}
	}
	return x, nil
}

// dumpedStacks reads the stack maps among the dumps of a bundle. The first has all stacks,
// or those of the user if another, with "kern" or "kstack" in its name, has those of the
// kernel. The count map is the one with the name "counts", else the first whose key has
// stacks by its BTF.
func (s *bundleSource) dumpedStacks() {
	var user, kernel *bundleDump
	list, damage := s.dumps()
	s.stacksErr = errors.Join(s.stacksErr, damage)
	for i := range list {
		d := &list[i]
		inKernel := strings.Contains(d.name, "kern") || strings.Contains(d.name, "kstack")
		switch {
		case !stackmap.IsStacks(&d.header):
		case inKernel && kernel == nil:
			kernel = d
		case user == nil:
			user = d
		}
	}
	if user == nil {
		user, kernel = kernel, nil
	}
	if user == nil {
		return
	}
	o := &s.opts.Stacks
	opts := stackmap.Options{Key: o.Key, Value: o.Value, Depth: o.Depth, Packed: s.file.size}
	if kernel != nil {
		opts.Kernel = &kernel.input
	}
	opts.Counts, opts.BTF = s.countsOf(list)
	if o.BTF != "" {
		var err error
		if opts.BTF, err = btf.ReadFile(o.BTF, nil); err != nil {
			s.stacksErr = errors.Join(s.stacksErr, err)
			return
		}
	}
	s.setStacks(stackmap.Read(&user.input, &opts))
}

// countsOf finds the dump of the count map, and the BTF of its key, if there is any.
func (s *bundleSource) countsOf(list []bundleDump) (counts *stackmap.Input, types *btf.Types) {
	var btfs map[uint32]*btf.Types
	if s.sideBand != nil {
		btfs = sideband.Types(s.file.path, s.sideBand.data)
	}
	for i := range list {
		d := &list[i]
		t := btfs[d.header.BTFID]
		if stackmap.IsStacks(&d.header) || !stackmap.HasStacks(t, &d.header) && d.name != "counts" {
			continue
		}
		if counts == nil || d.name == "counts" {
			counts, types = &d.input, t
		}
	}
	return counts, types
}

// hasStacks reports whether the bundle has stacks, by the headers of their dumps if they
// were not read yet.
func (s *bundleSource) hasStacks() bool {
	switch {
	case s.stacksRead:
		return s.stacks != nil
	case len(s.bundle.Manifest.Samples) > 0:
		return slices.ContainsFunc(s.bundle.Manifest.Samples, func(m bundle.Samples) bool {
			x, err := s.sampled(&m)
			if err != nil {
				return false
			}
			_, err = rawdump.Open(x.Stacks.Name, x.Stacks.R, x.Stacks.Size)
			return err == nil
		})
	}
	list, _ := s.dumps()
	return slices.ContainsFunc(list, func(d bundleDump) bool {
		return stackmap.IsStacks(&d.header)
	})
}
