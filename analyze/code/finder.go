package code

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"symbolize/analyze/annotate"
	"symbolize/analyze/disasm"
	"symbolize/analyze/resolve"
	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/input"
	"symbolize/ingest/object/bpf"
	"symbolize/ingest/sideband"
	"symbolize/ingest/texts"
	"symbolize/store"
	"symbolize/store/bpfprog"
)

// Options are for NewFinder.
type Options struct {
	View store.View
	// Bundles are open captures that may have vdso images; they stay open while the Finder is used.
	Bundles []*input.Capture
	// Paths are files and directories of users' choice, searched before recorded paths.
	Paths      []string
	SourceDirs []string // of source files
	// Recorded: files with the code and source files are looked for at their recorded paths, too.
	// Source files that are younger than the file with the code are not used.
	Recorded  bool
	Names     resolve.NamePolicy
	NoInlines bool
}

// Finder finds the code of functions: of BPF programs in captures and the store, of all others in
// files with the recorded build ID. It is a annotate.CodeSource.
type Finder struct {
	// Machine is the machine of the captures, as printed by uname -m.
	Machine string

	ctx      context.Context
	o        *Options
	sources  *sourceDirs
	captures []*input.Capture // added captures; they may be closed
	loads    map[buildid.Key][]bpfLoad
	files    map[buildid.Key]*fileCode
	objects  map[string]*bpfObject // BPF object files by path, nil for other files
	dumps    map[buildid.Key]*dumpCode
	kernels  map[buildid.Key]*symbolFinder // by build ID of the kernel or a module
	copies   map[buildid.Key]kernelCopy    // by build ID of the kernel
}

// bpfLoad is a load of a function of a BPF program.
type bpfLoad struct {
	program *bpf.Program
	fn      int
	machine string
	origin  string         // " in PATH" of the capture, or another origin
	capture *input.Capture // closed; nil for indexed functions
	maps    map[uint32]string
}

// NewFinder returns a Finder without captures.
func NewFinder(ctx context.Context, o Options) *Finder {
	return &Finder{ctx: ctx, o: &o, sources: newSourceDirs(o.SourceDirs, o.Recorded),
		loads: make(map[buildid.Key][]bpfLoad),
		dumps: make(map[buildid.Key]*dumpCode),
		files: make(map[buildid.Key]*fileCode), kernels: make(map[buildid.Key]*symbolFinder),
		copies: make(map[buildid.Key]kernelCopy)}
}

// Close closes the files that code was read from.
func (c *Finder) Close() error {
	var err error
	for _, f := range c.files {
		err = errors.Join(err, f.Close())
	}
	return errors.Join(err, c.sources.Close())
}

// Add adds the programs of a capture that was recorded on a machine. Damage among them has
// become warnings of the capture's profile. The capture may be closed afterwards.
func (c *Finder) Add(path, machine string, capture *input.Capture) {
	c.captures = append(c.captures, capture)
	programs, _ := capture.Programs()
	maps := mapNames(capture)
	for i := range programs {
		p := &programs[i]
		for fn := range p.Funcs {
			key := p.Identity(fn, machine).Key()
			c.loads[key] = append(c.loads[key],
				bpfLoad{program: p, fn: fn, machine: machine, origin: " in " + path,
					capture: capture, maps: maps})
		}
	}
}

// Code implements annotate.CodeSource.
func (c *Finder) Code(o *ingest.Object, f *annotate.HotFunction) (*annotate.Code, error) {
	switch o.Kind {
	case ingest.JIT:
		return c.program(o)
	case ingest.ELF, ingest.VDSO, ingest.Kernel, ingest.Module:
		return c.inFile(o, f)
	case ingest.JITDump:
		return c.inDump(o, f)
	case ingest.PerfMap:
		return nil, errors.New("run-time compiled code: a perf map has names, no bytes")
	}
	return nil, fmt.Errorf("no code is kept of %s", o.Kind)
}

// program returns the code of a BPF function: from the captures, of the load that the object is of if
// it is of one only, else from the store.
func (c *Finder) program(o *ingest.Object) (*annotate.Code, error) {
	if isImage(o) {
		return c.image(o)
	}
	loads := c.loads[o.ID.Key()]
	if o.RefSymbol != "" {
		loads = slices.DeleteFunc(slices.Clone(loads), func(l bpfLoad) bool {
			return ingest.LoadText(l.program.ID) != o.RefSymbol
		})
	}
	why := "its image was not captured"
	images := make(map[string]bool)
	var best *bpfLoad
	for i := range loads {
		l := &loads[i]
		if img := l.program.Funcs[l.fn].Image; len(img) > 0 {
			images[string(img)] = true
			if best == nil {
				best = l
			}
		} else if best == nil && l.program.Missing != "" {
			why = l.program.Missing
		}
	}
	if best != nil {
		code, err := c.bpfCode(best)
		if n := len(images) - 1; err == nil && n > 0 {
			code.Notes = append(code.Notes, fmt.Sprintf(
				"loads of it with other addresses in their code count here, too: %d", n))
		}
		return code, err
	}
	list, err := bpfprog.Variants(c.o.View, o.ID)
	for i := range list {
		v := &list[i]
		if len(v.Function().Image) == 0 {
			continue
		}
		code, err := c.bpfCode(&bpfLoad{program: v.Loaded, fn: int(v.Func), origin: " as indexed",
			machine: c.machineOf(o, v)})
		if err == nil && v.Probable {
			code.Notes = append(code.Notes, "found by name, tag and length: of another capture, "+
				"and its source may differ")
		}
		return code, err
	}
	if err != nil {
		return nil, err
	}
	return nil, texts.WithHint(errors.New("no image: "+why),
		"`symbolize capture` keeps the images of BPF programs while they live")
}

// machineOf returns the machine of a variant. It is part of the function's identity, which
// has it where no capture does, as with a pprof file.
func (c *Finder) machineOf(o *ingest.Object, v *bpfprog.Variant) string {
	for _, m := range disasm.Machines {
		full := v.Loaded.Identity(int(v.Func), m)
		bare := bpf.SymbolIdentity(m, v.Symbol(), uint64(v.Function().Length))
		if full.Matches(o.ID) || bare.Matches(o.ID) {
			return m
		}
	}
	return c.Machine
}

// bpfCode describes the code of a function of a BPF program.
func (c *Finder) bpfCode(l *bpfLoad) (*annotate.Code, error) {
	f := &l.program.Funcs[l.fn]
	code := &annotate.Code{
		Machine: l.machine, PC: f.Start, Bytes: f.Image,
		Origin: fmt.Sprintf("image of BPF program %d%s", l.program.ID, l.origin),
	}
	if why := l.program.NoLines(l.fn); why != "" {
		code.Notes = append(code.Notes, "no source lines: "+why)
	} else {
		code.Lines = func(offsets []int) []annotate.CodeLine { return bpfLines(f, offsets) }
		if l.program.BTF == nil {
			code.Notes = append(code.Notes, "no files and no text of the lines: the capture lacks "+
				"the program's BTF")
		}
	}
	in, missing := l.program.Instructions(l.fn)
	code.BPF = func() (*annotate.BPFCode, error) {
		if missing != nil {
			return nil, missing
		}
		return c.bpfInstructions(l, in, code.Symbols), nil
	}
	code.Program = programOf(l, in)
	if f.Start == 0 {
		return code, nil
	}
	kernel, err := c.kernelOf(l)
	if err != nil {
		return nil, err
	}
	code.Symbols = func(pcs []addr.PC) []annotate.CodeSymbol {
		names := make([]annotate.CodeSymbol, len(pcs))
		for i, pc := range pcs {
			names[i] = c.bpfSymbol(l.program, kernel, pc)
		}
		return names
	}
	return code, nil
}

// kernelOf returns the kernel's address space when a program was loaded: by its capture,
// or, of a program that was indexed, by the one that has it at the same place. It is nil
// where none does.
func (c *Finder) kernelOf(l *bpfLoad) (*sideband.KernelMap, error) {
	if l.capture != nil {
		return l.capture.KernelMap(c.ctx, l.program)
	}
	start := l.program.Funcs[l.fn].Start
	for _, capture := range c.captures {
		m, err := capture.KernelMap(c.ctx, l.program)
		if err != nil {
			return nil, err
		}
		o, off, ok := m.Find(start)
		if ok && off == 0 && (o.Symbol == l.program.Symbol(l.fn) ||
			o.Symbol == l.program.PerfSymbol(l.fn)) {
			return m, nil
		}
	}
	return nil, nil
}

// bpfLines gives the source of instructions by the line info of their program.
func bpfLines(f *bpf.Func, offsets []int) []annotate.CodeLine {
	lines := make([]annotate.CodeLine, len(offsets))
	for i, at := range offsets {
		if l := f.LineAt(uint32(at)); l != nil {
			lines[i] = annotate.CodeLine{File: l.File, Line: l.Line, Column: l.Column,
				Source: l.Source}
		}
	}
	return lines
}

// bpfSymbol names the targets in the code of a program: its own functions, other JITed
// ones by the capture's names, the kernel and its modules by their tables.
func (c *Finder) bpfSymbol(p *bpf.Program, m *sideband.KernelMap, pc addr.PC) (
	s annotate.CodeSymbol) {
	for i := range p.Funcs {
		f := &p.Funcs[i]
		if f.Start != 0 && pc >= f.Start && pc-f.Start < addr.PC(f.Length) {
			return annotate.CodeSymbol{Name: p.Symbol(i), Offset: uint64(pc - f.Start)}
		}
	}
	o, off, ok := m.Find(pc)
	switch {
	case !ok:
	case o.Symbol != "":
		return annotate.CodeSymbol{Name: o.Symbol, Offset: uint64(off)}
	case o.Kind == ingest.Kernel || o.Kind == ingest.Module:
		return c.symbols(&o).at(&o, off)
	}
	return s
}

// symbolFinder names offsets in the kernel or a module.
type symbolFinder struct {
	finder   *resolve.Finder // nil if the object is not known
	manifest *store.Manifest
}

// symbols returns the finder of an object, made once.
func (c *Finder) symbols(o *ingest.Object) *symbolFinder {
	s := c.kernels[o.ID.Key()]
	if s == nil {
		s = &symbolFinder{}
		if m, _, _ := store.FindOne(c.o.View, o.ID); m != nil {
			s.manifest, s.finder = m, resolve.NewFinder(c.o.View, m)
		}
		c.kernels[o.ID.Key()] = s
	}
	return s
}

// at names an offset; a module's is that in its layout.
func (s *symbolFinder) at(o *ingest.Object, off addr.Offset) (sym annotate.CodeSymbol) {
	if s.finder != nil {
		addrs, reason := resolve.NewAddresses(o, s.manifest)
		at, ok := addrs.Of(off)
		if reason != ingest.ReasonNone || !ok {
			return sym
		}
		s.finder.Join([]addr.Addr{at})
		name, start := s.finder.Function(s.finder.Place(0), resolve.SymbolNames)
		sym = annotate.CodeSymbol{Name: s.finder.Text(name), Offset: uint64(at - start)}
	}
	if sym.Name == "" && o.Kind == ingest.Module {
		return annotate.CodeSymbol{Name: o.File.Path, Offset: uint64(off)}
	}
	return sym
}
