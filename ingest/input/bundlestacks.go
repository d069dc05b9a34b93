package input

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"symbolize/buildid"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/rawdump"
	"symbolize/ingest/format/stackmap"
	"symbolize/ingest/object/btf"
)

// bundleDump is a dump of a map in a bundle.
type bundleDump struct {
	name   string // of the map
	header rawdump.Header
	input  stackmap.Input
}

// dumps opens the dumps of a bundle. One that cannot be opened is left out.
func (c *Capture) dumps() (list []bundleDump, damage error) {
	for _, entry := range c.bundle.Names() {
		name, ok := bundle.CutDump(entry)
		if !ok {
			continue
		}
		r, size, err := c.bundle.Entry(entry)
		if err != nil {
			continue // Bundle.Warnings say so
		}
		d, err := rawdump.Open(c.path+": "+entry, r, size)
		if err != nil {
			damage = errors.Join(damage, err)
			continue
		}
		list = append(list, bundleDump{name: name, header: d.Header, input: stackmap.Input{
			Name: c.path + ": " + entry, R: r, Size: size}})
	}
	return list, damage
}

// readStacks reads the stacks in a bundle, once; they make it a capture with samples:
// those that the manifest tells of, else those of the dumps. What cannot be read of them is
// told by the profile. It is called with the capture's lock held.
func (c *Capture) readStacks() {
	if c.bundle == nil || c.stacksRead {
		return
	}
	c.stacksRead = true
	if len(c.bundle.Manifest.Samples) == 0 {
		c.dumpedStacks()
	} else {
		c.sampledStacks()
	}
	if c.perfErr != nil && c.stacks != nil {
		c.stacksErr = errors.Join(c.stacksErr, c.perfErr)
	}
}

// sampledStacks reads the stacks that the manifest tells of.
func (c *Capture) sampledStacks() {
	var list []stackmap.Sampled
	for i := range c.bundle.Manifest.Samples {
		x, err := c.sampled(&c.bundle.Manifest.Samples[i])
		if err != nil {
			c.stacksErr = errors.Join(c.stacksErr, fmt.Errorf("%s: samples of %q: %w", c.path,
				c.bundle.Manifest.Samples[i].Event, err))
			continue
		}
		list = append(list, *x)
	}
	if len(list) > 0 {
		set, err := stackmap.ReadSampled(list)
		c.stacks, c.stacksErr = set, errors.Join(c.stacksErr, err)
	}
}

// recordedPath returns the path of a file of which stacks in a bundle have the build ID, if
// the recorder knew it, and what all call the vdso.
func (c *Capture) recordedPath(id buildid.ID) string {
	if c.bundle == nil {
		return ""
	}
	if c.bundle.Has(bundle.VDSOName(id.Hex())) {
		return "[vdso]"
	}
	if c.files == nil {
		c.files = make(map[buildid.Key][]recordedFile)
		for i := range c.bundle.Manifest.Samples {
			for _, f := range c.bundle.Manifest.Samples[i].Files {
				if file, err := buildid.Parse(f.BuildID); err == nil {
					key := file.Key()
					c.files[key] = append(c.files[key], recordedFile{file, f.Path})
				}
			}
		}
	}
	for _, f := range c.files[id.Key()] {
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

// sampled opens what the manifest tells of the samples of an event.
func (c *Capture) sampled(m *bundle.Samples) (*stackmap.Sampled, error) {
	x := &stackmap.Sampled{Event: stackmap.Event{Name: m.Event, Unit: m.Unit, Period: m.Period}}
	if m.Period == 0 && m.Weight == "" {
		return nil, errors.New("neither a period nor a weight")
	}
	open := func(entry string) (*stackmap.Input, error) {
		r, size, err := c.bundle.Entry(entry)
		return &stackmap.Input{Name: c.path + ": " + entry, R: r, Size: size}, err
	}
	user, err := open(m.Stacks)
	if err != nil {
		return nil, err
	}
	x.Stacks = *user
	o := &x.Options
	o.Packed = c.size
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

// dumpedStacks reads the stack maps among the dumps of a bundle: the first is of all
// stacks, or of those of the user where another, with "kern" or "kstack" in its name, is
// of the kernel's. The dump that counts them is the one called "counts", else the first
// whose key has stacks by its BTF, which the bundle has.
func (c *Capture) dumpedStacks() {
	var user, kernel *bundleDump
	list, damage := c.dumps()
	c.stacksErr = errors.Join(c.stacksErr, damage)
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
	o := &c.opts.Stacks
	opts := stackmap.Options{Key: o.Key, Value: o.Value, Depth: o.Depth, Packed: c.size}
	if kernel != nil {
		opts.Kernel = &kernel.input
	}
	opts.Counts, opts.BTF = c.countsOf(list)
	if o.BTF != "" {
		var err error
		if opts.BTF, err = btf.ReadFile(o.BTF, nil); err != nil {
			c.stacksErr = errors.Join(c.stacksErr, err)
			return
		}
	}
	set, err := stackmap.Read(&user.input, &opts)
	c.stacks, c.stacksErr = set, errors.Join(c.stacksErr, err)
}

// countsOf finds the dump that counts stacks, and the BTF of its key, if there is any.
func (c *Capture) countsOf(list []bundleDump) (counts *stackmap.Input, types *btf.Types) {
	btfs := c.Types()
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

// HasSamples reports whether a bundle has stacks that can be resolved: it then is a
// capture, besides what others take from it. Other captures have. Before the Profile is
// made it goes by the headers of the dumps.
func (c *Capture) HasSamples() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.bundle == nil:
		return true
	case c.stacksRead:
		return c.stacks != nil
	case len(c.bundle.Manifest.Samples) > 0:
		return slices.ContainsFunc(c.bundle.Manifest.Samples, func(m bundle.Samples) bool {
			x, err := c.sampled(&m)
			if err != nil {
				return false
			}
			_, err = rawdump.Open(x.Stacks.Name, x.Stacks.R, x.Stacks.Size)
			return err == nil
		})
	}
	list, _ := c.dumps()
	return slices.ContainsFunc(list, func(d bundleDump) bool {
		return stackmap.IsStacks(&d.header)
	})
}
