package input

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/format/rawdump"
	"symbolize/ingest/format/stackmap"
	"symbolize/ingest/object/bpf"
	"symbolize/ingest/object/btf"
	"symbolize/ingest/sideband"
	"symbolize/ingest/texts"
)

// kindBundle is the Kind of a capture bundle.
const kindBundle = "bundle"

// NoSamples is the end of the warning about a bundle without samples.
const NoSamples = "the bundle holds no samples"

// recordingHint is the hint of that warning: the recording that the bundle completes.
func (s *bundleSource) recordingHint() string {
	own := texts.ShellWord(s.file.path)
	if list := s.bundle.Manifest.Recordings; len(list) > 0 {
		r := &list[0]
		path := texts.ShellWord(r.Path)
		if _, changed := r.Find(s.file.path); changed {
			return fmt.Sprintf("its command wrote %s, where another recording is now: give that one, of %d "+
				"bytes: symbolize resolve FILE %s", path, r.Size, own)
		}
		return fmt.Sprintf("its command wrote %s: give that file, wherever it is now: symbolize resolve "+
			"%s %s", path, path, own)
	}
	return fmt.Sprintf("give the perf.data too: symbolize resolve perf.data %s", own)
}

// bundleSource is a capture bundle: a side band in the format of perf.data, and stacks.
type bundleSource struct {
	file     *file
	bundle   *bundle.Bundle
	opts     Options
	sideBand *perfSource // nil if it is missing or damaged, for the reason in damage
	damage   error

	// stacks are read by readStacks; nil if the bundle has none, or none can be read, for the
	// reason in stacksErr.
	stacks     *stackSource
	stacksRead bool
	stacksErr  error
	flagsErr   error    // of the files that StackOptions name
	leftOut    []string // stack maps of which the stacks are not read

	paths map[buildid.Key][]recordedFile // see recordedPath
}

// recordedBundle is a bundle with a side band.
type recordedBundle struct{ *bundleSource }

func (s recordedBundle) perfData() *perfdata.File { return s.sideBand.data }

func (s recordedBundle) scan(ctx context.Context) (*sideband.State, error) {
	return s.sideBand.scan(ctx)
}

// replay replays the side band; a bundle with stacks has no other samples.
func (s recordedBundle) replay(ctx context.Context,
	profile func(context.Context) (*ingest.Profile, error), visit func(*ReplaySample) error) error {
	if s.readStacks() != nil {
		return ErrNoReplay
	}
	return s.sideBand.replay(ctx, profile, visit)
}

// openBundle unpacks a bundle and opens its side band. A bundle with a missing or damaged side
// band still has kallsyms, modules and dumps.
func openBundle(f *file, opts *Options) (source, error) {
	b, err := bundle.Open(f.path, f.r, f.size)
	if err != nil {
		return nil, err
	}
	f.closers = append(f.closers, b)
	s := newBundleSource(f, b, opts)
	r, size, err := b.Entry(bundle.PerfDataName)
	var data *perfdata.File
	if err == nil {
		data, err = perfdata.Open(f.path+": "+bundle.PerfDataName, r, size)
	}
	if err != nil {
		s.damage = err
		return s, nil
	}
	x, m := &data.Features, &b.Manifest
	for _, f := range []struct {
		to   *string
		from string
	}{{&x.Arch, m.Machine}, {&x.Hostname, m.Host}, {&x.OSRelease, m.OSRelease}} {
		if *f.to == "" {
			*f.to = f.from
		}
	}
	if len(x.CmdLine) == 0 {
		x.CmdLine = m.Command
	}
	s.sideBand = &perfSource{file: f, data: data, opts: s.opts, missing: m.Missing}
	return recordedBundle{s}, nil
}

// newBundleSource returns a source of an unpacked bundle, without its side band.
func newBundleSource(f *file, b *bundle.Bundle, opts *Options) *bundleSource {
	s := &bundleSource{file: f, bundle: b, opts: *opts}
	s.opts.Bundles = nil // other bundles of its boot cannot add anything
	return s
}

// with returns a source of the same bundle with other options. It shares the decoded side
// band, on which no option has an effect.
func (s *bundleSource) with(f *file, opts *Options) source {
	n := newBundleSource(f, s.bundle, opts)
	n.damage = s.damage
	old := s.sideBand
	if old == nil {
		return n
	}
	n.sideBand = &perfSource{file: f, data: old.data, opts: n.opts, missing: old.missing,
		chunkSize: old.chunkSize, state: old.state}
	return recordedBundle{n}
}

func (s *bundleSource) kind() string           { return kindBundle }
func (s *bundleSource) opened() *bundle.Bundle { return s.bundle }

func (s *bundleSource) stackMap() *stackmap.Set {
	if stacks := s.readStacks(); stacks != nil {
		return stacks.set
	}
	return nil
}

func (s *bundleSource) sideBandState() *sideband.State {
	switch {
	case s.stacks != nil && s.stacks.state != nil:
		return s.stacks.state
	case s.sideBand != nil:
		return s.sideBand.state
	}
	return nil
}

// fold folds the stacks of a bundle, else the samples of its side band.
func (s *bundleSource) fold(ctx context.Context) (p *ingest.Profile, err error) {
	switch {
	case s.readStacks() != nil:
		p, err = s.foldStacks(ctx)
	case s.flagsErr != nil:
		err = s.flagsErr
	case s.sideBand != nil:
		p, err = s.sideBand.fold(ctx)
	default:
		p = s.noProfile()
	}
	if err != nil {
		return nil, err
	}
	s.describe(p)
	return p, nil
}

// checkOptions returns an error if options of stack maps are of no use for the bundle.
func (s *bundleSource) checkOptions() error {
	switch stacks := s.readStacks(); {
	case len(s.bundle.Manifest.Samples) > 0:
		return s.opts.Stacks.refuse(s.file.path, "its stacks are described by the bundle", false)
	case stacks == nil && s.stacksErr == nil:
		return s.opts.Stacks.refuse(s.file.path, "the bundle has none", true)
	}
	return nil
}

// noProfile makes the profile of a bundle without a side band and without stacks.
func (s *bundleSource) noProfile() *ingest.Profile {
	p := &ingest.Profile{Strings: []string{""},
		Events: []ingest.Event{{Name: "samples", Unit: "count"}}}
	p.Stats.Warnings = []ingest.Warning{{Text: s.damage.Error(), Partial: true,
		Hint: "BPF programs are named by the data of other captures"}}
	return p
}

// describe adds the facts and warnings of the manifest to the profile.
func (s *bundleSource) describe(p *ingest.Profile) {
	m, meta := &s.bundle.Manifest, &p.Meta
	meta.Captures = []string{s.file.path}
	meta.Host, meta.OSRelease, meta.Arch = m.Host, m.OSRelease, m.Machine
	meta.Recorder, meta.Command = m.Recorder, strings.Join(m.Command, " ")
	if meta.StartNanos == 0 {
		meta.StartNanos = int64(m.Begin.Realtime)
	}
	if meta.Duration == 0 && m.End.Perf > m.Begin.Perf {
		meta.Duration = int64(m.End.Perf - m.Begin.Perf)
	}
	warn := func(w ingest.Warning) { p.Stats.Warnings = append(p.Stats.Warnings, w) }
	for _, err := range s.bundle.Warnings {
		warn(ingest.Warning{Text: err.Error(), Partial: true,
			Hint: "copy the bundle or capture it again"})
	}
	for _, text := range m.Warnings {
		warn(ingest.Warning{Text: s.file.path + ": " + text})
	}
	if len(m.Lost) > 0 {
		var parts []string
		for _, cause := range slices.Sorted(maps.Keys(m.Lost)) {
			parts = append(parts, fmt.Sprintf("%d %s", m.Lost[cause], cause))
		}
		warn(ingest.Warning{Text: s.file.path + ": lost while it was captured: " +
			strings.Join(parts, ", ")})
	}
	if s.stacks == nil && s.stacksErr != nil {
		w := ingest.Warning{Text: s.stacksErr.Error() + "; its stacks are not used", Partial: true}
		if errors.Is(s.stacksErr, stackmap.ErrKey) || errors.Is(s.stacksErr, stackmap.ErrTypes) {
			w.Partial, w.Hint = false, keyHint // nothing is damaged
		}
		warn(w)
	}
	if len(s.leftOut) > 0 {
		warn(ingest.Warning{Text: s.file.path + ": the stacks of the first stack map are used, and not of " +
			strings.Join(s.leftOut, ", "), Hint: "`symbolize capture --maps ID` dumps one map of several"})
	}
	if p.Stats.Samples == 0 && p.Stats.FilteredOut == 0 {
		w := ingest.Warning{Text: s.file.path + ": " + NoSamples}
		if len(m.Samples) == 0 { // else sampling was requested
			w.Hint = s.recordingHint()
		}
		warn(w)
	}
}

// bundleDump is a dump of a map in a bundle.
type bundleDump struct {
	name   string // of the map
	header rawdump.Header
	input  stackmap.Input
}

// dumps opens the dumps of a bundle; of a map that was dumped at intervals the last one, which has
// all counts. One that cannot be opened is left out.
func (s *bundleSource) dumps() (list []bundleDump, damage error) {
	last := make(map[string]int) // by series
	for _, entry := range s.bundle.Names() {
		if series, n, ok := bundle.CutSeries(entry); ok {
			last[series] = max(last[series], n)
		}
	}
	for _, entry := range s.bundle.Names() {
		name, ok := bundle.CutDump(entry)
		if !ok {
			continue
		}
		series, n, inSeries := bundle.CutSeries(entry)
		if inSeries && n != last[series] {
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
		if inSeries {
			name = d.Header.Name
		}
		list = append(list, bundleDump{name: name, header: d.Header, input: stackmap.Input{
			Name: s.file.path + ": " + entry, R: r, Size: size}})
	}
	return list, damage
}

// readStacks reads the stacks of a bundle, once: the dumps that the manifest lists, otherwise all
// dumps. It returns nil if there are none. The profile reports damage of them.
func (s *bundleSource) readStacks() *stackSource {
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

// setStacks makes the source of stacks; err is the damage after them.
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
	if s.bundle.Manifest.Text == 0 { // else the list only has names, possibly of another boot
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
	sb.AddBundle(own)
	return s.stacks.foldWith(sb, warnings)
}

// sampledStacks reads the stacks listed in the manifest.
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

// recordedPath returns the path of a build ID in stacks by the manifest, [vdso] for a vdso, and ""
// for unknown IDs.
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

// recordedFile is a file with a build ID in a bundle's manifest.
type recordedFile struct {
	id   buildid.ID
	path string
}

// sampled opens the dumps of the samples of an event.
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

// dumpedStacks reads the stack maps among the dumps of a bundle. The first one has all stacks, or
// the user stacks if another one, with "kern" or "kstack" in its name, has the kernel stacks; others
// are left out. The count map is named "counts", or else is the first map with stacks in its key by
// BTF, or else the first one with IDs of stacks as keys.
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
		default:
			s.leftOut = append(s.leftOut, fmt.Sprintf("%s (id %d)", d.name, d.header.MapID))
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
	opts.Counts, opts.BTF = s.countsOf(list, &user.input)
	named, files, err := readOptions(context.Background(), o)
	defer func() { files.Close() }()
	if err != nil {
		s.flagsErr = err
		return
	}
	opts.BTF = cmp.Or(named.BTF, opts.BTF)
	if named.Counts != nil {
		opts.Counts = named.Counts
	}
	if named.Kernel != nil {
		opts.Kernel = named.Kernel
	}
	s.setStacks(stackmap.Read(&user.input, &opts))
}

// countsOf finds the dump of the map that counts stacks, and the BTF of its key, if there is any.
func (s *bundleSource) countsOf(list []bundleDump, stacks *stackmap.Input) (
	counts *stackmap.Input, types *btf.Types) {
	var btfs map[uint32]*btf.Types
	var byID *stackmap.Input // the first map with IDs of stacks as keys
	var its *btf.Types
	if s.sideBand != nil {
		btfs = sideband.Types(s.file.path, s.sideBand.data)
	}
	named := false // counts is the first map of this name, as the stacks are of the first stack map
	for i := range list {
		d := &list[i]
		t := btfs[d.header.BTFID]
		if stackmap.IsStacks(&d.header) || !stackmap.HasStacks(t, &d.header) && d.name != "counts" {
			if byID == nil && stackmap.Counts(&d.input, stacks) {
				byID, its = &d.input, t
			}
			continue
		}
		if counts == nil || d.name == "counts" && !named {
			counts, types, named = &d.input, t, d.name == "counts"
		}
	}
	if counts == nil {
		return byID, its
	}
	return counts, types
}

// hasStacks reports whether the bundle has stacks, by the headers of their dumps if the dumps were
// not read yet.
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
