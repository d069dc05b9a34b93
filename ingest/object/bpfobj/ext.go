package bpfobj

import (
	"cmp"
	"slices"
	"sort"

	"symbolize/ingest/object/bpf"
	"symbolize/ingest/object/btf"
)

// readTypes reads .BTF, and the lines and the CO-RE relocations of .BTF.ext.
func (r *linker) readTypes() {
	var err error
	if r.types, r.ext, err = btf.FromELF(r.f); err != nil {
		r.errs = append(r.errs, err)
	}
	if r.types != nil {
		r.readKconfig()
	}
}

// readKconfig lists the variables of the section .kconfig.
func (r *linker) readKconfig() {
	id, ok := r.types.ByName(btf.KindDatasec, ".kconfig")
	if !ok {
		return
	}
	r.kconfig = make(map[string]bool)
	for _, v := range r.types.Sections(id) {
		if r.types.Kind(v.Type) == btf.KindVar {
			r.kconfig[r.types.Name(v.Type)] = true
		}
	}
}

// takeExts gives the sections and the functions their parts of .BTF.ext.
func (r *linker) takeExts() {
	if r.ext == nil {
		return
	}
	for i := range r.ext.Sections {
		x := &r.ext.Sections[i]
		s := r.named(x.Name)
		if s == nil {
			continue
		}
		for _, l := range x.Lines {
			s.lines = append(s.lines, bpf.Line{Offset: l.Offset, Insn: l.Offset / insnSize,
				Line: l.Line, Column: l.Column, File: l.File, Source: l.Source})
		}
		slices.SortStableFunc(s.lines, func(a, b bpf.Line) int {
			return cmp.Compare(a.Offset, b.Offset)
		})
		for _, c := range x.Cores {
			s.core = append(s.core, c.Offset)
		}
		slices.Sort(s.core)
	}
	for _, fn := range r.functions {
		fn.takeExt()
	}
}

// named returns the section of code with a name.
func (r *linker) named(name string) *sectionData {
	var found *sectionData
	for _, s := range r.sections {
		if s.name == name && (found == nil || s.index < found.index) {
			found = s
		}
	}
	return found
}

// takeExt gives a function its part of its section's lines and CO-RE relocations.
// Records of line 0 are the compiler's own; of several at one offset the last counts.
func (fn *function) takeExt() {
	s := fn.section
	first := sort.Search(len(s.lines), func(i int) bool { return s.lines[i].Offset >= fn.start })
	for _, l := range s.lines[first:] {
		if l.Offset >= fn.end {
			break
		}
		l.Offset -= fn.start
		l.Insn = l.Offset / insnSize
		fn.Records = append(fn.Records, l)
		if l.Line == 0 {
			continue
		}
		if n := len(fn.Lines); n == 0 {
			fn.Line, fn.File = l.Line, l.File
			l.Offset = 0
		} else if fn.Lines[n-1].Offset == l.Offset {
			fn.Lines = fn.Lines[:n-1]
		}
		fn.Lines = append(fn.Lines, l)
	}
	at := sort.Search(len(s.core), func(i int) bool { return s.core[i] >= fn.start })
	if at < len(s.core) && s.core[at] < fn.end && fn.Uncertain == "" {
		fn.Uncertain = uncertainCORE
	}
}
