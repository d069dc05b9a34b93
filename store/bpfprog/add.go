package bpfprog

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/input"
	"symbolize/ingest/machine"
	"symbolize/ingest/object/bpf"
	"symbolize/ingest/object/btf"
	"symbolize/ingest/object/datatype"
	"symbolize/store"
	"symbolize/store/symtab"
	"symbolize/store/typetab"
)

// CaptureInfo describes where BPF programs were recorded.
type CaptureInfo struct {
	Machine string // as uname -m prints it; part of a function's identity
	BootID  string // of the kernel that ran them; "" if not known
	Host    string // "" if not known
	Path    string // of the capture
	// Maps are what Add makes tables of types with; nil for no tables.
	Maps map[uint32]datatype.BPFMap
}

// CaptureInfoOf returns where the programs of a capture ran. Its machine is the one that
// their identities in the capture's profile are made with.
func CaptureInfoOf(path string, c *input.Capture) CaptureInfo {
	info := CaptureInfo{Path: path}
	if f := c.PerfData(); f != nil {
		info.Machine, info.Host = f.Features.Arch, f.Features.Hostname
	}
	if b := c.Bundle(); b != nil {
		info.BootID = b.Manifest.BootID
	}
	return info
}

// MapsOf returns the maps of a capture's programs, with the types of their values; not nil.
func MapsOf(c *input.Capture) map[uint32]datatype.BPFMap {
	list := make(map[uint32]datatype.BPFMap)
	stats := c.BPFStats()
	if stats == nil {
		return list
	}
	types := c.Types()
	for _, m := range stats.Maps {
		if t := types[m.BTF]; t != nil {
			list[m.ID] = datatype.BPFMap{Types: t, Value: btf.ID(m.Value), Kind: m.Type, Size: m.ValueSize, Entries: m.Entries}
		}
	}
	return list
}

// Stats counts the results of Add.
type Stats struct {
	Programs  int            // with something to keep
	Functions int            // of those
	Images    int            // functions with code
	Lined     int            // functions that have lines
	Missing   map[string]int // programs without code, by why
	Problems  []error        // of damaged or too large programs
}

// Add merges the functions of BPF programs into a sink: each is an object of its own with a table
// (name, file and lines), and this load is a variant of it, with the program's entry and its BTF as
// blobs. A function with lines is entered under its symbols, too, as their probable object in a
// capture without its image.
//
// Errors of single programs are in the statistics; the error is the sink's or the context's.
// Programs merged before it stay merged.
func Add(ctx context.Context, sink store.Sink, capture CaptureInfo,
	programs []bpf.Program) (*Stats, error) {
	a := &programAdder{ctx: ctx, sink: sink, capture: capture,
		stats: &Stats{Missing: make(map[string]int)}}
	for i := range programs {
		err := a.add(&programs[i])
		if errors.Is(err, store.ErrTooLarge) {
			a.stats.Problems = append(a.stats.Problems, err)
			continue
		}
		if err != nil {
			return a.stats, err
		}
	}
	return a.stats, nil
}

// programAdder is the state of one Add.
type programAdder struct {
	ctx     context.Context
	sink    store.Sink
	capture CaptureInfo
	stats   *Stats
}

// add merges the functions of one program.
func (a *programAdder) add(p *bpf.Program) error {
	if p.Err != nil {
		a.stats.Problems = append(a.stats.Problems, fmt.Errorf("BPF program %d: %w", p.ID, p.Err))
	}
	if p.Missing != "" {
		a.stats.Missing[p.Missing]++
	}
	if !hasContent(p) {
		return nil
	}
	a.stats.Programs++
	load, err := a.load(p)
	if err != nil {
		return fmt.Errorf("BPF program %d: %w", p.ID, err)
	}
	for i := range p.Funcs {
		if f := &p.Funcs[i]; f.Length == 0 || len(f.Image) == 0 && len(f.Lines) == 0 {
			continue
		}
		if err := a.function(p, i, load); err != nil {
			return fmt.Errorf("BPF program %d, function %s: %w", p.ID, p.Funcs[i].Name, err)
		}
	}
	return nil
}

// hasContent reports whether there is something of a program to keep.
func hasContent(p *bpf.Program) bool {
	if len(p.Raw) == 0 {
		return false
	}
	for i := range p.Funcs {
		f := &p.Funcs[i]
		if f.Length > 0 && len(f.Image)+len(f.Lines) > 0 {
			return true
		}
	}
	return false
}

// load keeps the shared data of a program's functions, and returns the variant that
// they begin with.
func (a *programAdder) load(p *bpf.Program) (v store.Variant, err error) {
	if v.Entry, err = a.sink.PutBlob(a.ctx, p.Raw); err != nil {
		return v, err
	}
	if p.BTF != nil {
		if v.BTF, err = a.sink.PutBlob(a.ctx, p.BTF.Raw()); err != nil {
			return v, err
		}
	}
	v.BootID, v.Load, v.Program = a.capture.BootID, p.LoadTime, p.ID
	v.Type, v.Tag = p.Type, p.Tag
	return v, nil
}

// function merges function i of a program.
func (a *programAdder) function(p *bpf.Program, i int, v store.Variant) error {
	f := &p.Funcs[i]
	v.Func, v.FuncTag, v.Name = uint32(i), f.Tag, f.Name
	a.stats.Functions++
	if len(f.Image) > 0 {
		v.Image, v.Size = store.NewBlobID(f.Image), uint32(len(f.Image))
		a.stats.Images++
	}
	table, err := LineTable(p.Symbol(i), f)
	if err != nil {
		return err
	}
	m := a.manifest(p, p.Identity(i, a.capture.Machine))
	m.Variants = []store.Variant{v}
	if i == 0 && len(f.Lines) == 0 && p.Name != "" {
		// An object file may have the lines, see readBPFObject.
		m.Probable = []buildid.ID{bpf.CountIdentity(p.Name, p.XlatedLen/bpf.InsnSize)}
	}
	c := &store.Contribution{Manifest: m, Sources: []store.NewSource{store.SourceOf(store.JIT, a.capture.Path, table)}}
	if a.capture.Maps != nil {
		a.types(c, p, i)
	}
	err = a.sink.Merge(a.ctx, c)
	if err != nil || len(f.Lines) == 0 {
		return err
	}
	a.stats.Lined++
	return a.probable(p, i, m.ID)
}

// types adds the table of what the code of function i accesses.
func (a *programAdder) types(c *store.Contribution, p *bpf.Program, i int) {
	t, err := datatype.ReadBPF(p, i, elf.Machine(c.Manifest.Machine), a.capture.Maps)
	if err != nil {
		a.stats.Problems = append(a.stats.Problems, fmt.Errorf("BPF program %d, function %s: types: %w", p.ID, p.Funcs[i].Name,
			err))
	}
	if t == nil {
		return
	}
	if table := typetab.Encode(t); table != nil {
		c.Sources = append(c.Sources, store.SourceOf(store.Types, a.capture.Path, table))
	}
}

// probable enters a function with lines under the facts known of it where its image was not
// captured: machine and one of its two symbols, with its length or, as text has it, without; or its
// tag alone.
func (a *programAdder) probable(p *bpf.Program, i int, id buildid.ID) error {
	f := &p.Funcs[i]
	symbols := []string{p.Symbol(i)}
	if s := p.PerfSymbol(i); s != symbols[0] {
		symbols = append(symbols, s)
	}
	var aliases []buildid.ID
	for _, s := range symbols {
		aliases = append(aliases, bpf.SymbolIdentity(a.capture.Machine, s, uint64(f.Length)),
			bpf.SymbolIdentity(a.capture.Machine, s, 0))
		if tag, name, ok := bpf.SplitSymbol(s); ok && name != "" {
			aliases = append(aliases, bpf.TagIdentity(tag))
		}
	}
	for _, alias := range aliases {
		m := a.manifest(p, alias)
		m.Probable = []buildid.ID{id}
		if err := a.sink.Merge(a.ctx, &store.Contribution{Manifest: m}); err != nil {
			return err
		}
	}
	return nil
}

func (a *programAdder) manifest(p *bpf.Program, id buildid.ID) store.Manifest {
	m := store.Manifest{ID: id, Kind: ingest.JIT, BigEndian: p.BigEndian}
	if arch, kernel := machine.Named(a.capture.Machine); arch != nil {
		m.Machine, m.Class = uint16(arch.ELF), uint8(kernel.Class)
	}
	return m
}

// LineTable makes the table of a function under a name: one function from 0 to its length. It
// begins with the line of its first instruction, which compilers copy from the function's head.
func LineTable(name string, f *bpf.Func) (*symtab.Encoded, error) {
	b := symtab.NewBuilder(symtab.Options{Columns: true})
	sub := symtab.Subprogram{Name: []byte(name)}
	if f.Begin.Line > 0 {
		sub.File, sub.Line = b.File([]byte(f.Begin.File)), f.Begin.Line
	}
	fn := symtab.DebugFunc{
		Ranges: []addr.Range{{Start: 0, End: addr.Addr(f.Length)}},
		Lines:  make([]symtab.Line, 0, len(f.Lines)),
	}
	for k := range f.Lines {
		l := &f.Lines[k]
		file := b.File([]byte(l.File))
		if k == 0 {
			sub.File, sub.Line = file, l.Line
		}
		fn.Lines = append(fn.Lines, symtab.Line{
			Addr: addr.Addr(l.Offset), File: file, Line: l.Line, Column: l.Column,
		})
	}
	fn.Sub = b.Sub(sub)
	b.AddFunction(&fn)
	if b.Losses().Large > 0 {
		return nil, fmt.Errorf("%d lines: %w", len(f.Lines), store.ErrTooLarge)
	}
	return b.Encode(), nil
}
