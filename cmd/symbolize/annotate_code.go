package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"symbolize/analyze/report"
	"symbolize/analyze/resolve"
	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/bpf"
	"symbolize/store"
	"symbolize/store/indexer"
)

// codeFinder finds the code of functions: of BPF programs in the captures and the
// store, of all others in files. It is a report.CodeSource.
type codeFinder struct {
	ctx     context.Context
	s       *session
	sources *sourceDirs
	loads   map[buildid.Key][]bpfLoad // functions of the captures' programs
	files   map[buildid.Key]*fileCode
	kernels map[buildid.Key]*symbolFinder // by build ID of the kernel or a module
}

// bpfLoad is a load of a function of a BPF program.
type bpfLoad struct {
	program *bpf.Program
	fn      int
	capture string
	kernel  *ingest.KernelMap // of the capture, when the program was there; nil if not known
}

func newCodeFinder(ctx context.Context, s *session, sourceDirs []string) *codeFinder {
	return &codeFinder{ctx: ctx, s: s, sources: newSourceDirs(sourceDirs),
		loads: make(map[buildid.Key][]bpfLoad), files: make(map[buildid.Key]*fileCode),
		kernels: make(map[buildid.Key]*symbolFinder)}
}

// Close closes the files that code was read from.
func (c *codeFinder) Close() error {
	var err error
	for _, f := range c.files {
		err = errors.Join(err, f.Close())
	}
	return errors.Join(err, c.sources.Close())
}

// load reads the captures, remembers their programs and names what can be named. Names
// that a pprof file came with are not used: they tell no function's bounds.
func (c *codeFinder) load(paths []string) (*ingest.Profile, error) {
	var profiles []*ingest.Profile
	opts := c.s.ingestOptions(ingest.Keep{})
	err := c.s.forEach(c.ctx, paths, opts,
		func(path string, capture *ingest.Capture, p *ingest.Profile) error {
			p.Names = nil
			profiles = append(profiles, p)
			return c.addPrograms(path, capture)
		})
	if err != nil {
		return nil, err
	}
	return c.s.merge(c.ctx, profiles)
}

// addPrograms remembers the programs of a capture. What is damaged among them has
// become warnings of its profile.
func (c *codeFinder) addPrograms(path string, capture *ingest.Capture) error {
	programs, _ := capture.Programs()
	machine := captureInfoOf(path, capture).Machine
	for i := range programs {
		p := &programs[i]
		for fn := range p.Funcs {
			load := bpfLoad{program: p, fn: fn, capture: path}
			if p.Funcs[fn].Start != 0 {
				var err error
				load.kernel, err = capture.KernelMap(c.ctx, p.Funcs[fn].Start, p.Symbol(fn))
				if err != nil {
					return err
				}
			}
			key := p.Identity(fn, machine).Key()
			c.loads[key] = append(c.loads[key], load)
		}
	}
	return nil
}

// noCode is why the code of a function cannot be had.
type noCode struct {
	error
	hint string
}

// Hint returns what would mend it.
func (n *noCode) Hint() string { return n.hint }

// Code implements report.CodeSource.
func (c *codeFinder) Code(o *ingest.Object, f *report.HotFunction) (*report.Code, error) {
	switch o.Kind {
	case ingest.JIT:
		return c.program(o)
	case ingest.ELF, ingest.VDSO, ingest.Kernel, ingest.Module:
		return c.inFile(o, f)
	case ingest.PerfMap:
		return nil, &noCode{errors.New("run-time compiled code: a perf map has names, no bytes"), ""}
	}
	return nil, fmt.Errorf("no code is kept of %s", o.Kind)
}

// program returns the code of a BPF function: that of the captures at hand, else of the
// store.
func (c *codeFinder) program(o *ingest.Object) (*report.Code, error) {
	loads := c.loads[o.ID.Key()]
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
		code := c.bpfCode(best)
		if n := len(images) - 1; n > 0 {
			code.Notes = append(code.Notes, fmt.Sprintf("%d more loads of it, with other addresses in "+
				"their code, count here", n))
		}
		return code, nil
	}
	list, err := indexer.Variants(c.s.view, o.ID)
	for i := range list {
		v := &list[i]
		if len(v.Function().Image) == 0 {
			continue
		}
		code := c.bpfCode(&bpfLoad{program: v.Loaded, fn: int(v.Func), capture: "the store"})
		if v.Probable {
			code.Notes = append(code.Notes, "found by name, tag and length: of another capture, "+
				"and its source may differ")
		}
		return code, nil
	}
	if err != nil {
		return nil, err
	}
	return nil, &noCode{errors.New("no image: " + why),
		"`symbolize capture` keeps the images of BPF programs while they live"}
}

// bpfMachine is what a program's byte order cannot tell.
func (c *codeFinder) bpfCode(l *bpfLoad) *report.Code {
	f := &l.program.Funcs[l.fn]
	code := &report.Code{
		Machine: c.machine(l), PC: f.Start, Bytes: f.Image,
		Origin: fmt.Sprintf("image of BPF program %d in %s", l.program.ID, l.capture),
	}
	if len(f.Lines) > 0 {
		code.Lines = func(offsets []int) []report.CodeLine { return bpfLines(f, offsets) }
	}
	if l.kernel != nil {
		code.Symbols = func(pcs []addr.PC) []report.CodeSymbol { return c.kernelSymbols(l.kernel, pcs) }
	}
	return code
}
