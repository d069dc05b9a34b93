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
	"symbolize/ingest/format/bpf"
	"symbolize/ingest/format/stackmap"
	"symbolize/ingest/object/btf"
	"symbolize/ingest/regular"
	"symbolize/ingest/sideband"
)

// StackOptions say what belongs to a stack map, and how to read it.
type StackOptions struct {
	Counts   string           // path of the dump of the map that counts; "" for none
	Kernel   string           // path of the dump of kernel stacks, where it is another
	Key      []stackmap.Field // fields of the count map's key
	Value    *stackmap.Field  // where the count lies in a value; nil: all of it
	BTF      string           // path of BTF, or of an object with it, of the key; "" for none
	Depth    int              // frames in a value of a bare concatenation; 0 not told
	Stride   int              // bytes of such a value; 0 not told
	Kallsyms string           // path of /proc/kallsyms of the same boot; "" for none
	// Maps are paths of /proc/PID/maps, by process; those of AnyProcess serve all stacks
	// of which it is not known whose they are.
	Maps map[int32]string
	// PathOf names the file of a build ID, where that is all that a stack map says; "" if it
	// is not known. nil knows none.
	PathOf func(buildid.ID) string
}

// AnyProcess is in StackOptions.Maps the process that unlabelled stacks are of.
const AnyProcess int32 = -1

// bare reports whether the options describe a bare concatenation of values.
func (o *StackOptions) bare() bool { return o.Depth > 0 || o.Stride > 0 }

// openStacks reads a stack map whole: nothing of it is large, as the kernel bounds the
// maps.
func (c *Capture) openStacks(form stackmap.Form) error {
	in := &stackmap.Input{Name: c.path, R: c.r, Size: c.size}
	o := &c.opts.Stacks
	opts := stackmap.Options{Key: o.Key, Value: o.Value, Depth: o.Depth, Stride: o.Stride}
	var files closers
	defer func() { files.Close() }()
	for _, x := range []struct {
		path string
		to   **stackmap.Input
	}{{o.Counts, &opts.Counts}, {o.Kernel, &opts.Kernel}} {
		if x.path == "" {
			continue
		}
		f, err := regular.Open(x.path)
		if err != nil {
			return err
		}
		files = append(files, f)
		fi, err := f.Stat()
		if err != nil {
			return err
		}
		*x.to = &stackmap.Input{Name: x.path, R: f, Size: fi.Size()}
	}
	if o.BTF != "" {
		var err error
		if opts.BTF, err = btf.ReadFile(o.BTF, nil); err != nil {
			return err
		}
	}
	set, err := stackmap.Read(in, &opts)
	if set == nil {
		if errors.Is(err, stackmap.ErrNotStacks) && form == stackmap.NoForm {
			err = fmt.Errorf("%w: %w", ErrNotCapture, err)
		}
		return err
	}
	c.stacks, c.stacksErr = set, err
	return nil
}

// Stacks returns what was read of a stack map; nil for other captures. After Profile the
// stacks and samples themselves are gone.
func (c *Capture) Stacks() *stackmap.Set {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.readStacks()
	return c.stacks
}

// foldStacks makes the profile of a stack map.
func (c *Capture) foldStacks(ctx context.Context) (*ingest.Profile, error) {
	sb, err := c.stackSideband(ctx)
	if err != nil {
		return nil, err
	}
	f := newStackFolder(c, sb)
	if err := f.checkFilters(); err != nil {
		return nil, err
	}
	for i := range f.set.Samples {
		f.sample(&f.set.Samples[i])
	}
	c.profile = f.profile()
	warnings := sb.Records.Warnings
	if c.bundle != nil && c.side != nil {
		warnings = slices.Concat(c.side.Records.Warnings, warnings)
	}
	for _, w := range warnings {
		c.profile.Stats.Warnings = append(c.profile.Stats.Warnings, w.Warning)
	}
	if c.bundle != nil {
		c.bundleProfile(c.profile)
	}
	return c.profile, nil
}

// stackSideband is what is known of address spaces: of the maps and kallsyms that the
// user names, and of the bundles that serve.
func (c *Capture) stackSideband(ctx context.Context) (*sideband.State, error) {
	sb := sideband.New()
	if err := c.addSpaces(ctx, sb); err != nil {
		return nil, err
	}
	sb.Build()
	c.stackSide = sb
	return sb, nil
}

// addSpaces enters the kernel's address space and those of processes.
func (c *Capture) addSpaces(ctx context.Context, sb *sideband.State) error {
	o := &c.opts.Stacks
	if c.takesList() {
		if err := sb.AddKallsyms(o.Kallsyms); err != nil {
			return err
		}
	}
	for _, pid := range slices.Sorted(maps.Keys(o.Maps)) {
		f, err := regular.Open(o.Maps[pid])
		if err != nil {
			return err
		}
		found := sb.AddProcessMaps(pid, f)
		if err := f.Close(); err != nil {
			return err
		}
		if !found {
			return fmt.Errorf("%s: no mapping of code in it: a copy of /proc/PID/maps is wanted",
				o.Maps[pid])
		}
	}
	if c.stacks != nil {
		sb.SeparatePrograms()
		for i := range c.stacks.Samples {
			sb.AddSampled(c.stacks.Samples[i].PID)
		}
	}
	return c.addBundles(ctx, sb)
}

// takesList reports whether a kallsyms text says where the kernel lies. A bundle says that
// itself: to it a list tells names, and may be of another boot.
func (c *Capture) takesList() bool {
	located := c.bundle != nil && c.bundle.Manifest.Text != 0
	return c.opts.Stacks.Kallsyms != "" && !located
}

// addBundles takes what the bundles beside a stack map have, and the bundle that has it.
func (c *Capture) addBundles(ctx context.Context, sb *sideband.State) error {
	for _, b := range c.opts.Bundles {
		if err := ctx.Err(); err != nil {
			return err
		}
		sb.TakeAll(b.asBundle(b.Programs)) // the user vouches that they are of the same boot
	}
	if c.bundle == nil {
		return nil
	}
	own := func() ([]bpf.Program, error) { return nil, nil }
	if c.perf != nil {
		side, err := c.scan(ctx)
		if err != nil {
			return err
		}
		sb.Programs.Err = side.Programs.Err
		own = func() ([]bpf.Program, error) { return side.Programs.List, nil }
	}
	sb.TakeAll(c.asBundle(own))
	return nil
}

// stackWarnings says what is to be known of a stack map.
func (f *stackFolder) stackWarnings(p *ingest.Profile) {
	c, set := f.capture, f.set
	warn := func(partial bool, hint, format string, args ...any) {
		p.Stats.Warnings = append(p.Stats.Warnings, ingest.Warning{Partial: partial, Hint: hint,
			Text: fmt.Sprintf(format, args...)})
	}
	if c.stacksErr != nil {
		warn(true, "dump it again", "%v; all before it is used", c.stacksErr)
	}
	for _, err := range set.Warnings {
		warn(true, "", "%v", err)
	}
	if !set.Counted {
		warn(false, "name the map that counts them with --counts FILE",
			"%s: no counts: each stack counts 1", c.path)
	}
	if c.takesList() {
		p.Stats.KernelList = true
		f.listWarning(warn)
	}
	if set.Unused > 0 {
		warn(false, "", "%s: %d stacks of the dump are in no count and are left out", c.path,
			set.Unused)
	}
	if n := countObjects(p, func(o *ingest.Object) bool {
		return o.Kind == ingest.ELF && o.Reason == ingest.NoBuildID
	}); n > 0 {
		files, whose := fmt.Sprintf("%d files have", n), "their"
		if n == 1 {
			files, whose = "1 file has", "its"
		}
		warn(false, "`symbolize index --explain FILE…` says why the kernel saw none; --trust-paths "+
			"takes what is indexed of their paths",
			"%s: %s no build ID: %s frames came as addresses", c.path, files, whose)
	}
	if set.Form >= stackmap.Systing && set.Skipped > 0 {
		warn(false, "", "%s: %d records have no stack and are left out", c.path, set.Skipped)
	}
	if k := c.opts.Keep; k.CPU || k.PID && !set.Labels.PID || k.TID && !set.Labels.TID {
		warn(false, "", "%s: labels that it cannot carry: %s", c.path,
			strings.Join(set.Labels.Missing(), ", "))
	}
	c.lossWarning(warn)
}

// listWarning says what a kallsyms text was not good for.
func (f *stackFolder) listWarning(warn func(partial bool, hint, format string, args ...any)) {
	list := f.opts.Stacks.Kallsyms
	switch {
	case f.inKernel+f.inListed+f.inNothing == 0:
		warn(false, "", "%s: not used: %s has no kernel addresses", list, f.capture.path)
	case f.inKernel == 0 && f.inNothing > 0:
		warn(false, "copy /proc/kallsyms while the stacks are taken, or right after",
			"%s: of another boot, so that the kernel's functions have no names: none of %d kernel "+
				"addresses lies where it has the kernel", list, f.inNothing)
	}
}

// lossWarning tells of stacks that were lost.
func (c *Capture) lossWarning(warn func(partial bool, hint, format string, args ...any)) {
	lost := c.stacks.Totals().Lost
	var parts []string
	total := uint64(0)
	for _, cause := range slices.Sorted(maps.Keys(lost)) {
		parts = append(parts, fmt.Sprintf("%d %s", lost[cause], cause))
		total += lost[cause]
	}
	if total > 0 {
		warn(false, "a larger map loses fewer; `symbolize capture --stacks` loses next to none",
			"%s: stacks of %d samples were lost, which are shown as [lost: …]: %s", c.path, total,
			strings.Join(parts, ", "))
	}
}

func countObjects(p *ingest.Profile, is func(*ingest.Object) bool) (n int) {
	for i := range p.Objects {
		if is(&p.Objects[i]) {
			n++
		}
	}
	return n
}
