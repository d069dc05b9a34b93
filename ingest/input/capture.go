// Package input turns any capture into a Profile: stacks of (object, offset).
//
// Open recognizes the kind of a file and returns a Capture, which is either folded into a
// Profile (the default) or replayed sample by sample in order of time. Each kind has an
// implementation of source: perfSource, bundleSource (which contains a perfSource for its side
// band and a stackSource for its stacks), stackSource and pprofSource. This package does not know
// the store: analyze/resolve adds names later, by a join on Locations.
//
// A perf.data is read twice. The first pass, in ingest/sideband, reads the changes of state of
// processes and kernel. The second pass (worker.go) reads the samples in parallel chunks: it
// splits their chains (split.go), counts equal ones (chains.go) and locates their addresses
// (locate.go). assembly.go makes one Profile of the tables of all workers, by ingest/fold/merge.
// Stack maps are folded into the same tables by stackfold.go.
package input

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"symbolize/ingest"
	"symbolize/ingest/format/bpf"
	"symbolize/ingest/format/container"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/format/stackmap"
	"symbolize/ingest/object/btf"
	"symbolize/ingest/sideband"
)

// ErrNoReplay is the error of Replay for captures that hold counts of stacks alone.
var ErrNoReplay = errors.New("this kind of capture holds no single samples")

// Capture is an opened capture. Its methods may be called one after another from any
// goroutine. Damage in it becomes a warning of its Profile.
type Capture struct {
	file    *file
	mu      sync.Mutex // guards profile and the state of source
	source  source
	profile *ingest.Profile // once it was made
}

// source is the content of a capture of one kind. The Capture's lock is held when its
// methods are called.
type source interface {
	kind() string // as Capture.Kind returns it
	// profile reads the samples and folds them. It is called until it succeeds.
	profile(ctx context.Context) (*ingest.Profile, error)
	// replayed returns the perf.data whose samples the profile has, if it can be read
	// sample by sample; else nil.
	replayed() *perfSource
	// records returns the perf.data that has the side band; nil if there is none.
	records() *perfSource
	// stackMap returns the stacks that were counted when they were recorded; nil if there
	// are none.
	stackMap() *stackSource
	// taken is Capture.Taken.
	taken() []sideband.Taken
}

// Path returns the path that the capture was opened by.
func (c *Capture) Path() string { return c.file.path }

// Size returns the number of bytes of the capture's files.
func (c *Capture) Size() int64 { return c.file.size }

// Kallsyms returns the path of the copy of /proc/kallsyms that a recording of perf record
// --kcore has, "" for others.
func (c *Capture) Kallsyms() string { return container.Kallsyms(c.file.path) }

// Kcore returns the path of the copy of the kernel's code that such a recording has, "" for others.
func (c *Capture) Kcore() string { return container.Kcore(c.file.path) }

// Kind returns "perf.data", "bundle", "pprof", or the form of a stack map, as
// stackmap.Form names it: "bpftool dump".
func (c *Capture) Kind() string { return c.source.kind() }

// PerfData returns the decoded file of a perf.data capture, or the side band of a
// bundle, which stays open until Close; nil for others.
func (c *Capture) PerfData() *perfdata.File {
	if s := c.source.records(); s != nil {
		return s.data
	}
	return nil
}

// Stacks returns the stacks of a stack map or of a bundle that has any; nil for other
// captures. After Profile the stacks and samples themselves are gone.
func (c *Capture) Stacks() *stackmap.Set {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.source.stackMap(); s != nil {
		return s.set
	}
	return nil
}

// Close closes the file. The Profile stays usable.
func (c *Capture) Close() error { return c.file.closers.Close() }

// Profile reads the samples and folds them. It is computed once.
func (c *Capture) Profile(ctx context.Context) (*ingest.Profile, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.profile == nil {
		p, err := c.source.profile(ctx)
		if err != nil {
			return nil, err
		}
		c.profile = p
	}
	return c.profile, nil
}

// Replay reads the samples again, one after another in order of time, with the same
// filters, and calls visit for each. Samples of one time, and all samples of captures
// without times, come in the order of the file. It calls Profile first, if that was not
// done. An error of visit ends it and is returned. Captures that hold no single samples
// give ErrNoReplay.
func (c *Capture) Replay(ctx context.Context, visit func(*ReplaySample) error) error {
	c.mu.Lock()
	s := c.source.replayed()
	c.mu.Unlock()
	if s == nil {
		return fmt.Errorf("%s: %w", c.file.path, ErrNoReplay)
	}
	p, err := c.Profile(ctx)
	if err != nil {
		return err
	}
	return s.replay(ctx, p, visit)
}

// FileSymbols returns the functions of files that simpleperf noted in the capture; none of another
// recorder's. With an error come those before the damage.
func (c *Capture) FileSymbols() ([]perfdata.FileSymbols, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.source.records(); s != nil {
		return s.data.FileSymbols()
	}
	return nil, nil
}

// Programs returns the BPF programs of the capture, by ID: those whose information was
// recorded, and those that only records name, with the reason why no more is known
// (bpf.Program.Missing, Raw nil). They are decoded once and shared; nobody may change
// them. With an error come the programs that were whole: those of the features alone where
// the records cannot be read. A capture of another kind has none.
func (c *Capture) Programs() ([]bpf.Program, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.source.records()
	if s == nil {
		return nil, nil
	}
	sb, err := s.scan(context.Background())
	if err != nil {
		programs, damage := sideband.ReadPrograms(s.data)
		return programs, errors.Join(err, damage)
	}
	return sb.Programs.List, sb.Programs.Err
}

// Types returns the BTF of a perf.data or a bundle, by its id in the kernel; none for other
// captures. Damage of it is reported with the programs.
func (c *Capture) Types() map[uint32]*btf.Types {
	if s := c.source.records(); s != nil {
		return sideband.Types(c.file.path, s.data)
	}
	return nil
}

// Taken returns the counts of facts taken from each bundle of Options.Bundles, in their order.
// It is known after Profile or Programs.
func (c *Capture) Taken() []sideband.Taken {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.source.taken()
}

// KernelMap returns the kernel's address space at the last time at which all functions of a BPF
// program were mapped at their addresses; at the end if they never were. The objects in it have the
// build IDs that Profile found. It is nil for captures without records of the kernel. It may be
// called after Close, if Profile was before.
func (c *Capture) KernelMap(ctx context.Context, p *bpf.Program) (*sideband.KernelMap, error) {
	if _, err := c.Profile(ctx); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.source.records()
	if s == nil {
		return nil, nil
	}
	sb, err := s.scan(ctx)
	if err != nil {
		return nil, err
	}
	return sb.KernelMap(p), nil
}

// bundlesOf returns the captures of Options.Bundles in the form of the side band's.
func bundlesOf(captures []*Capture) []sideband.Bundle {
	list := make([]sideband.Bundle, 0, len(captures))
	for _, c := range captures {
		list = append(list, sideband.Bundle{Path: c.Path(), Bundle: c.Bundle(),
			Records: c.PerfData(), Programs: c.Programs})
	}
	return list
}
