package indexcmd

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"symbolize/analyze"
	"symbolize/analyze/table"
	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/ingest"
	"symbolize/ingest/input"
	"symbolize/ingest/record/sys"
	"symbolize/ingest/texts"
	"symbolize/store"
	"symbolize/store/indexer"
	"symbolize/store/local"
)

// captureFiles are the files that captures need, of `index --for`.
type captureFiles struct {
	found      []string // files to be indexed
	paths      []string // … and the captures themselves
	kernel     bool
	debugRoots []string
	objects    []local.Object
	jit        []analyze.JITLink // lists of code that processes compiled
	frames     map[string]uint64 // by build ID
}

// filesFor reads the captures of --for, and looks for the files that the store lacks.
func filesFor(ctx context.Context, a *cli.App, o *indexOptions, storePath string) (
	*captureFiles, error) {
	need := &captureFiles{frames: make(map[string]uint64)}
	if len(o.captures) == 0 {
		return need, nil
	}
	find := a.Places(o.symfs, true)
	find.FindOnly = true
	if o.types {
		find.Tables = append(find.Tables, store.Types)
	}
	if o.calls {
		find.Tables = append(find.Tables, store.Calls)
	}
	opened := analyze.OpenInputs(ctx, o.captures)
	defer opened.Close()
	s, err := analyze.Open(ctx, analyze.Options{
		Store:    storePath,
		StoreUse: analyze.StoreUse{MarkUses: true},
		Local:    find,
		Bundles:  opened.Bundles,
		Inputs:   opened,
		Samples:  analyze.Samples{Stacks: o.stacks.Parsed},
		Naming:   analyze.Naming{Clocks: sys.ReadClocks},
		Limits:   analyze.Limits{Workers: o.jobs, MaxMemory: int64(o.maxMemory)},
		Warn:     a.SessionWarning,
		Handlers: analyze.Handlers{Problems: a.PrintProblems, Taken: a.PrintTaken},
	})
	if err != nil {
		return nil, cli.SessionError(err)
	}
	defer s.Close()
	err = s.Each(ctx, opened.Captures, func(_ *input.Capture, p *ingest.Profile) error {
		a.PrintWarnings(p)
		for l, sum := range p.WeighFrames(true) {
			need.frames[p.Objects[p.Locations[l].Object].ID.String()] += sum.Frames
		}
		return nil
	})
	if err != nil {
		return nil, cli.SessionError(err)
	}
	state := s.State()
	a.Partial = a.Partial || state.Partial
	need.found, need.kernel = state.Found.Paths, state.Found.Kernel
	need.debugRoots = state.Found.DebugRoots
	programs, _ := analyze.SplitCaptures(o.captures) // stack maps and profiles have none
	need.paths = append(slices.Clip(need.found), programs...)
	need.objects, need.jit = state.Local, state.JITFiles
	return need, nil
}

// apply adds the results to the options of an index run.
func (n *captureFiles) apply(opts *indexer.Options) {
	opts.Kernel = opts.Kernel || n.kernel
	if opts.DebugRoots == nil {
		opts.DebugRoots = n.debugRoots
	}
}

// unname marks problems of files that were found for captures: no PATH names them.
func (n *captureFiles) unname(problems []indexer.Problem) {
	for i := range problems {
		if slices.Contains(n.found, problems[i].Path) {
			problems[i].Named = false
		}
	}
}

// report prints which objects of the captures were found, and which not. err is the result of the
// index run.
func (n *captureFiles) report(a *cli.App, o *indexOptions, err error) error {
	if len(n.objects) == 0 || err != nil {
		return err
	}
	var lacking []local.Object
	known := 0
	for _, obj := range n.objects {
		switch obj.Place {
		case local.Nowhere:
			lacking = append(lacking, obj)
		case local.Known:
			known++
		}
	}
	slices.SortStableFunc(lacking, func(x, y local.Object) int {
		return cmp.Compare(n.frames[y.ID.String()], n.frames[x.ID.String()])
	})
	a.Note(table.Join(", ", fmt.Sprintf("the captures need %s",
		table.Count(len(n.objects), "object", "objects")),
		table.Some(known, "was in the store", "were in the store"), local.Found(n.objects),
		table.Some(len(lacking), "was not found", "were not found")))
	if o.brief {
		return nil
	}
	cli.WarnEach(a, lacking, func(obj local.Object) (text, hint string) {
		return fmt.Sprintf("not found: %s  %s, %s", texts.OneLine(obj.Path), obj.ID,
			table.Count(n.frames[obj.ID.String()], "frame", "frames")), ""
	}, func(left int) (text, hint string) {
		return fmt.Sprintf("… and %d more", left), "`symbolize missing` lists them all"
	})
	a.Partial = a.Partial || o.strict && len(lacking) > 0
	return nil
}

// indexJIT keeps the lists of compiled code that named the captures, with their processes.
func (n *captureFiles) indexJIT(ctx context.Context, open func() (store.Sink, error),
	sum *indexer.Summary) error {
	for i := range n.jit {
		sink, err := open()
		if err != nil {
			return err
		}
		link := &n.jit[i]
		if err := indexer.AddJITFile(ctx, sink, link.Path, link.Host, link.PID,
			link.Process); err != nil {
			if ctx.Err() != nil {
				return err
			}
			sum.Problems = append(sum.Problems, indexer.Problem{Path: link.Path, Err: err,
				Named: true})
			continue
		}
		sum.Read++
		sum.JIT++
	}
	return ctx.Err()
}
