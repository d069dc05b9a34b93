package datatype

import (
	"cmp"
	stdelf "debug/elf"
	"errors"
	"slices"

	"symbolize/ingest/addr"
	"symbolize/ingest/object/cfi"
	"symbolize/ingest/object/elf"
	"symbolize/ingest/object/flow"
)

// errSections is the error of a debug file with other sections than the module's.
var errSections = errors.New("its sections are not those of the module that runs")

// place gives a module's sections addresses.
func (c *code) place(base addr.Addr) (err error) {
	if c.image, err = c.file.Image(base); err != nil {
		return err
	}
	for _, p := range c.image.Sections {
		s := &c.file.Sections[p.Index]
		if s.Type != stdelf.SHT_NOBITS {
			c.load = append(c.load, section{Range: addr.Range{Start: p.Addr, End: p.Addr + addr.Addr(p.Size)}, header: s,
				index: p.Index})
		}
	}
	slices.SortStableFunc(c.load, func(a, b section) int { return cmp.Compare(a.Start, b.Start) })
	return nil
}

// moduleNames reads the unwind rules and the effects of functions of a module.
func (c *code) moduleNames(debug *elf.File, base addr.Addr) error {
	image := c.image
	if debug != c.file {
		var err error
		if image, err = debug.Image(base); err != nil {
			return err
		}
		same := func(a, b elf.PlacedSection) bool { return a.Name == b.Name && a.Addr == b.Addr && a.Size == b.Size }
		if !slices.EqualFunc(image.Sections, c.image.Sections, same) {
			return errSections
		}
	}
	if err := c.moduleRules(debug, image); err != nil {
		return err
	}
	return c.image.Entries(func(e elf.Entry) bool {
		if x := effectOf(e.Name); x != flow.ByABI && e.Code != 0 {
			c.effects[e.Code] = x
		}
		return true
	})
}

// moduleRules reads .debug_frame: modules are linked without .eh_frame.
func (c *code) moduleRules(debug *elf.File, image *elf.ModuleImage) error {
	arch := cfi.ArchOf(c.file.Machine)
	i := slices.IndexFunc(debug.Sections, func(s elf.Section) bool { return s.Name == ".debug_frame" })
	if arch == nil || i < 0 {
		return nil
	}
	b, err := debug.Data(&debug.Sections[i], maxSection)
	if err != nil {
		return err
	}
	_ = image.Apply(i, b)
	rules := cfi.NewBuilder(arch)
	frames := cfi.EHFrame{Name: debug.Name, Data: b, Offset: int64(debug.Sections[i].Offset), Debug: true,
		Class64: true}
	_, _ = frames.Rules(rules) // functions without rules have fewer answers
	rules.NextSource()
	c.addRules(rules)
	return nil
}
