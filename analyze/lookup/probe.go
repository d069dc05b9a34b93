package lookup

import (
	"context"
	stdelf "debug/elf"
	"errors"
	"fmt"
	"strings"

	"symbolize/analyze/probe"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/machine"
	"symbolize/ingest/object/dwarfvar"
	"symbolize/ingest/object/elf"
	"symbolize/ingest/sideband"
	"symbolize/ingest/texts"
	"symbolize/store/indexer"
)

// Probes returns the text of the probes of definitions, see package probe, with an error of those that it leaves out.
func Probes(ctx context.Context, obj *Object, definitions []string, o *Options) ([]byte, error) {
	var list []*probe.Query
	for _, d := range definitions {
		q, err := probe.Parse(d)
		if err != nil {
			return nil, err
		}
		list = append(list, q)
	}
	var err error
	m := obj.manifest
	p := &probe.Program{Path: obj.path(), Arch: machine.Of(stdelf.Machine(m.Machine)), NoInlines: o.NoInlines, Linked: obj.base,
		Kernel:     m.Kind == ingest.Kernel || m.Kind == ingest.Module,
		FileOffset: func(a addr.Addr) (uint64, bool) { return fileOffset(obj, a) }, Code: obj.code}
	if m.Kind == ingest.Module {
		p.Module = sideband.ModuleName(p.Path)
	}
	if p.Symbols, err = obj.functions(); err != nil {
		return nil, err
	}
	v, err := obj.readVariables(ctx, selection(list, obj.base))
	switch {
	case err == nil:
		defer v.Close()
		v.Frames = obj.files
		p.Vars, p.Base = v, v.Base
	case !errors.Is(err, indexer.ErrNoDebugInfo):
		return nil, err
	}
	text, err := p.Text(list)
	return text, hinted(err, obj, p)
}

// hinted adds hints to an error of probes.
func hinted(err error, obj *Object, p *probe.Program) error {
	none := (*probe.NoPlaceError)(nil)
	switch {
	case !errors.As(err, &none):
		return err
	case p.Vars == nil:
		return texts.WithHint(fmt.Errorf("%s: %w", obj.Module, err), "lines and variables need DWARF: install or "+
			"`symbolize fetch` its debug file, and name it with -e")
	case p.Vars.FromBTF():
		return texts.WithHint(fmt.Errorf("%s: %w", obj.Module, err), "functions with a suffix (.isra.0), or of a name that "+
			"several have, need DWARF: name the debug file with -e")
	}
	return fmt.Errorf("%s: %w", obj.Module, err)
}

// selection returns what is read of the debug information for probes.
func selection(list []*probe.Query, base addr.Addr) (sel dwarfvar.Options) {
	for _, q := range list {
		switch {
		case q.Function != "":
			sel.Names, sel.Inlined = append(sel.Names, q.Function), true
		case q.Line > 0:
			sel.Lines = append(sel.Lines, dwarfvar.SourceLine{File: q.File, Line: q.Line})
		default:
			sel.Addrs = append(sel.Addrs, addr.Addr(q.Offset)-base)
		}
		for _, a := range q.Args {
			if !a.Raw && !strings.HasPrefix(a.Var, "$") {
				sel.Variables = append(sel.Variables, a.Var)
			}
		}
	}
	return sel
}

// path returns the file of an object, of one named by a build ID as it was indexed.
func (obj *Object) path() string {
	for _, s := range obj.manifest.Sources {
		if f, err := obj.openFile(s.Path); err == nil && f.HasCode() && f.ID.Matches(obj.manifest.ID) {
			return s.Path
		}
	}
	return obj.Module
}

// files returns the files that an object's tables were made from, as far as they still exist. They are opened once.
func (obj *Object) files() []*elf.File {
	if obj.opened != nil {
		return obj.opened
	}
	obj.opened = make([]*elf.File, 0, len(obj.manifest.Sources))
	seen := make(map[string]bool)
	for _, s := range obj.manifest.Sources {
		if seen[s.Path] {
			continue
		}
		seen[s.Path] = true
		f, err := obj.openFile(s.Path)
		if err != nil {
			continue
		}
		if id, err := identify(f); err == nil && id.Matches(obj.manifest.ID) {
			obj.opened = append(obj.opened, f)
		}
	}
	return obj.opened
}

// code returns up to n bytes at an address of an object's tables, as far as one of its files has them.
func (obj *Object) code(a addr.Addr, n int) []byte {
	for _, f := range obj.files() {
		if f.IsModule() || !f.HasCode() {
			continue // sections of modules have no addresses yet
		}
		if off, left, ok := f.Mapped(a + obj.base); ok {
			b := make([]byte, min(uint64(n), left))
			if f.ReadBytes(off, b) == nil {
				return b
			}
		}
	}
	return nil
}

// functions returns the functions of the symbol tables of an object's files, by addresses of its tables.
func (obj *Object) functions() (list probe.Symbols, err error) {
	for _, f := range obj.files() {
		if f.IsModule() {
			continue // their sections have no addresses yet
		}
		for _, table := range []elf.Table{elf.Symtab, elf.Dynsym} {
			err := f.Symbols(table, func(s elf.Symbol) bool {
				list = append(list, probe.Symbol{Name: s.Name, Start: s.Addr - obj.base, End: s.End - obj.base,
					Global: stdelf.SymBind(s.Bind) != stdelf.STB_LOCAL})
				return true
			})
			if err != nil {
				return nil, err
			}
			if len(list) > 0 {
				list.Sort()
				return list, nil
			}
		}
	}
	return nil, nil
}

// fileOffset returns the offset of a table address in an object's file.
func fileOffset(obj *Object, a addr.Addr) (uint64, bool) {
	for _, s := range obj.manifest.Layout {
		if a >= s.Addr && a-s.Addr < addr.Addr(s.FileSize) {
			return uint64(s.Offset) + uint64(a-s.Addr), true
		}
	}
	return 0, false
}
