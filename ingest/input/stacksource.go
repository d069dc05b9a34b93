package input

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/files"
	"symbolize/ingest/format/stackmap"
	"symbolize/ingest/object/btf"
	"symbolize/ingest/sideband"
)

// StackOptions are the files that belong to a stack map, and its layout.
type StackOptions struct {
	Counts   string           // path of the dump of the count map; "" for none
	Kernel   string           // path of the dump of kernel stacks, if they have their own
	Key      []stackmap.Field // fields of the count map's key
	Value    *stackmap.Field  // the count in a value; nil for the whole value
	BTF      string           // path of BTF of the key, or of an object with it; "" for none
	Depth    int              // frames in a bare value; 0 if unknown
	Kallsyms string           // path of /proc/kallsyms of the same boot; "" for none
	KernelID buildid.ID       // of the kernel of Kallsyms; zero if the notes beside it have it
	// Maps are paths of copies of /proc/PID/maps, by process; AnyProcess is the key for all stacks
	// of unknown processes.
	Maps map[int32]string
	// PathOf returns the path of the file with a build ID, which stack maps lack; "" if it is
	// unknown. May be nil.
	PathOf func(buildid.ID) string
}

// AnyProcess is the key in StackOptions.Maps for stacks of unknown processes.
const AnyProcess int32 = -1

// checkOptions implements stackMapSource: all options are of use.
func (s *stackSource) checkOptions() error { return nil }

// refuse returns an error if there are options of stack maps for a capture that is none; maps: those
// of mappings, too.
func (o *StackOptions) refuse(path, why string, maps bool) error {
	if flag := o.Given(); flag != "" && (maps || flag != "--maps") {
		return fmt.Errorf("%s: %s is for dumps of stack maps: %s", path, flag, why)
	}
	return nil
}

// Given returns the flag of the first option that only dumps of stack maps have, "" for none.
func (o *StackOptions) Given() string {
	for _, x := range []struct {
		set  bool
		name string
	}{
		{o.Counts != "", "--counts"}, {o.Key != nil, "--key"}, {o.BTF != "", "--btf"},
		{o.Value != nil, "--value"}, {o.Kernel != "", "--kernel-stacks"}, {o.Depth > 0, "--depth"},
		{len(o.Maps) > 0, "--maps"},
	} {
		if x.set {
			return x.name
		}
	}
	return ""
}

// bare reports whether the options describe bare values.
func (o *StackOptions) bare() bool { return o.Depth > 0 }

// stackSource is a stack map: stacks that were counted when they were recorded.
type stackSource struct {
	file     *file
	set      *stackmap.Set
	opts     Options
	damage   error           // after the stacks that were read
	kallsyms string          // path of the list with the kernel's address; "" for none
	state    *sideband.State // of the profile, once it was made
}

// openStacks reads a whole stack map: the kernel bounds the size of maps.
func openStacks(ctx context.Context, f *file, form stackmap.Form, o *Options) (*stackSource, error) {
	opts, files, err := readOptions(ctx, &o.Stacks)
	defer func() { files.Close() }()
	if err != nil {
		return nil, err
	}
	set, err := stackmap.Read(&stackmap.Input{Name: f.path, R: f.r, Size: f.size}, opts)
	if set == nil {
		if errors.Is(err, stackmap.ErrNotStacks) && form == stackmap.NoForm {
			err = fmt.Errorf("%w: %w", ErrNotCapture, err)
		}
		return nil, err
	}
	return &stackSource{file: f, set: set, opts: *o, damage: err,
		kallsyms: o.Stacks.Kallsyms}, nil
}

// readOptions opens the files that belong to a stack map. The caller must close them, also after an
// error.
func readOptions(ctx context.Context, o *StackOptions) (*stackmap.Options, closers, error) {
	opts := &stackmap.Options{Key: o.Key, Value: o.Value, Depth: o.Depth}
	var files closers
	for _, x := range []struct {
		path string
		to   **stackmap.Input
	}{{o.Counts, &opts.Counts}, {o.Kernel, &opts.Kernel}} {
		if x.path == "" {
			continue
		}
		in, opened, err := openStackFile(ctx, x.path)
		files = append(files, opened)
		if err != nil {
			return nil, files, err
		}
		*x.to = in
	}
	var err error
	if o.BTF != "" {
		opts.BTF, err = btf.ReadFile(o.BTF, nil)
	}
	return opts, files, err
}

func (s *stackSource) kind() string                   { return s.set.Form.String() }
func (s *stackSource) stackMap() *stackmap.Set        { return s.set }
func (s *stackSource) sideBandState() *sideband.State { return s.state }

func (s *stackSource) fold(ctx context.Context) (*ingest.Profile, error) {
	sb, err := s.newState(ctx)
	if err != nil {
		return nil, err
	}
	return s.foldWith(sb, nil)
}

// foldWith makes the profile of the stacks with the address spaces of sb. warnings are the warnings
// of their bundle's side band.
func (s *stackSource) foldWith(sb *sideband.State, warnings []sideband.Warning) (
	*ingest.Profile, error) {
	sb.AddJIT(s.opts.JIT)
	sb.Build()
	s.state = sb
	f := newStackFolder(s, sb)
	if err := f.checkFilters(); err != nil {
		return nil, err
	}
	f.samples()
	p, _ := f.profile()
	addWarnings(p, warnings)
	addWarnings(p, sb.Records.Warnings)
	return p, nil
}

// addWarnings appends warnings of a side band to the profile's.
func addWarnings(p *ingest.Profile, list []sideband.Warning) {
	for _, w := range list[:min(len(list), sideband.MaxWarnings)] {
		p.Stats.Warnings = append(p.Stats.Warnings, w.Warning)
	}
	if len(list) > sideband.MaxWarnings {
		p.Stats.Warnings = append(p.Stats.Warnings,
			ingest.Warning{Text: "there are more warnings of this kind, the first are shown", Partial: true})
	}
}

// newState returns a State with the unapplied changes of the maps and kallsyms in StackOptions and
// of Options.Bundles.
func (s *stackSource) newState(ctx context.Context) (*sideband.State, error) {
	sb, o := sideband.New(), &s.opts.Stacks
	sb.UseTimes(s.file.times, s.opts.Now)
	sb.SeparateLoads(s.opts.Loads)
	if s.kallsyms != "" {
		if err := sb.Kernel.AddKallsyms(s.kallsyms, o.KernelID); err != nil {
			return nil, err
		}
	}
	for _, pid := range slices.Sorted(maps.Keys(o.Maps)) {
		if err := addMaps(sb, pid, o.Maps[pid]); err != nil {
			return nil, err
		}
	}
	sb.SeparatePrograms()
	for i := range s.set.Samples {
		sb.AddSampled(s.set.Samples[i].PID)
	}
	for i := range s.set.Wakers {
		sb.AddSampled(s.set.Wakers[i].PID)
	}
	for _, b := range bundlesOf(s.opts.Bundles) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		sb.AddBundle(b) // unchecked: a stack map has no boot to compare
	}
	return sb, nil
}

// addMaps adds the mappings of a copy of /proc/PID/maps.
func addMaps(sb *sideband.State, pid int32, path string) error {
	f, err := files.Open(path)
	if err != nil {
		return err
	}
	found := sb.AddProcessMaps(pid, f)
	if err := f.Close(); err != nil {
		return err
	}
	if !found {
		return fmt.Errorf("%s: no mapping of code in it: expected a copy of /proc/PID/maps", path)
	}
	return nil
}

// stackWarnings adds the warnings about a stack map to the profile.
func (f *stackFolder) stackWarnings(p *ingest.Profile) {
	s, set := f.source, f.set
	warn := func(partial bool, hint, format string, args ...any) {
		p.Stats.Warnings = append(p.Stats.Warnings, ingest.Warning{Partial: partial, Hint: hint,
			Text: fmt.Sprintf(format, args...)})
	}
	if s.damage != nil {
		warn(true, "dump it again", "%v; all stacks before it are used", s.damage)
	}
	for _, err := range set.Warnings {
		warn(true, "", "%v", err)
	}
	much, _ := p.Stats.LostWarning(p.Stats.Samples + p.Stats.FilteredOut)
	for _, text := range set.Losses {
		warn(much.Partial, "", "%s", text)
	}
	if !set.Counted {
		warn(false, "name the map that counts them with --counts FILE",
			"%s: no counts: each stack counts 1", s.file.path)
	}
	if s.kallsyms != "" {
		p.Stats.KernelList = true
		f.listWarning(warn)
	}
	if set.Unused > 0 {
		warn(false, "", "%s: %d stacks of the dump are in no count and are left out", s.file.path,
			set.Unused)
	}
	n := 0
	for i := range p.Objects {
		if o := &p.Objects[i]; o.Kind == ingest.ELF && o.Reason == ingest.NoBuildID {
			n++
		}
	}
	if n > 0 && set.Form != stackmap.Memleak { // it prints no build IDs
		files, their := fmt.Sprintf("%d files have", n), "their"
		if n == 1 {
			files, their = "1 file has", "its"
		}
		warn(false, "`symbolize index --explain FILE…` shows why the kernel found none; --trust-paths "+
			"uses the indexed files of their paths",
			"%s: %s no build ID: %s frames came as addresses", s.file.path, files, their)
	}
	if set.Reports > 1 {
		warn(false, "", "%s: %d reports: the last one is used", s.file.path, set.Reports)
	}
	if set.Form.Records() && set.Skipped > 0 {
		warn(false, "", "%s: %d records have no stack and are left out", s.file.path, set.Skipped)
	}
	if k := s.opts.Keep; k.CPU || k.PID && !set.Labels.PID || k.TID && !set.Labels.TID {
		warn(false, "", "%s: labels that it cannot have: %s", s.file.path,
			strings.Join(set.Labels.Missing(), ", "))
	}
	s.lossWarning(warn)
}

// listWarning warns about a kallsyms text that is of no use.
func (f *stackFolder) listWarning(warn func(partial bool, hint, format string, args ...any)) {
	list := f.source.kallsyms
	switch {
	case f.inKernel+f.inListed+f.inNothing == 0:
		warn(false, "", "%s: not used: %s has no kernel addresses", list, f.file.path)
	case f.inKernel == 0 && f.inNothing > 0:
		warn(false, "copy /proc/kallsyms while the stacks are taken, or right after",
			"%s: of another boot, so that the kernel's functions have no names: none of %d kernel "+
				"addresses is in its kernel", list, f.inNothing)
	}
}

// lossWarning warns about lost stacks.
func (s *stackSource) lossWarning(warn func(partial bool, hint, format string, args ...any)) {
	lost := s.set.Totals().Lost
	var parts []string
	total := uint64(0)
	for _, cause := range slices.Sorted(maps.Keys(lost)) {
		parts = append(parts, fmt.Sprintf("%d %s", lost[cause], cause))
		total += lost[cause]
	}
	if total > 0 {
		warn(false, "a larger map loses fewer; `symbolize capture --stacks` loses next to none",
			"%s: stacks of %d samples were lost, which are shown as [lost: …]: %s", s.file.path, total,
			strings.Join(parts, ", "))
	}
}
