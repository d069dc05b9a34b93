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
// (locate.go). profileparts.go makes one Profile of the tables of all workers, by ingest/input/merge.
// Stack maps are folded into the same tables by stackfold.go.
package input

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/format/stackmap"
	"symbolize/ingest/input/container"
	"symbolize/ingest/object/bpf"
	"symbolize/ingest/object/btf"
	"symbolize/ingest/sideband"
)

// ErrNoReplay is the error of Replay for captures that hold only counts of stacks.
var ErrNoReplay = errors.New("this kind of capture holds no single samples")

// Capture is an opened capture. Its methods may be called one after another from any
// goroutine. Damage of the capture is reported as warnings of its Profile.
type Capture struct {
	file    *file
	mu      sync.Mutex // guards profile and the state of source
	source  source
	profile *ingest.Profile // once it was made
	stacks  StackOptions    // that it was opened with
	callers func(p *ingest.Profile, whole bool) (*ingest.Profile, Chain)
	// chain is of the profile, nil if its stacks are as recorded; then recorded has the locations and
	// events of those, and no stacks.
	chain    Chain
	recorded *ingest.Profile
}

// Chain converts a stack of locations, innermost first, to the locations of a completed profile.
type Chain func([]ingest.LocationID) []ingest.LocationID

// source is the content of a capture of one kind. Sources implement the optional interfaces below
// that apply to their content. The Capture's lock is held during all calls except replay.
type source interface {
	kind() string // the result of Capture.Kind
	// fold reads the samples and folds them. It is called until it succeeds.
	fold(ctx context.Context) (*ingest.Profile, error)
}

// eventSource is a source with records in the format of perf.data.
type eventSource interface {
	perfData() *perfdata.File
	scan(ctx context.Context) (*sideband.State, error) // the first pass, once
}

// replaySource is a source that can read its samples one by one. replay returns ErrNoReplay if the
// samples are counted stacks; p is only called otherwise.
type replaySource interface {
	replay(ctx context.Context, p func(context.Context) (*ingest.Profile, error),
		visit func(*ReplaySample) error) error
}

// stackMapSource is a source that may have stacks which its recorder counted: nil if not.
type stackMapSource interface {
	stackMap() *stackmap.Set
	checkOptions() error // see Capture.CheckStackOptions
}

// stateSource is a source with a sideband.State, which is nil until it is first used.
type stateSource interface{ sideBandState() *sideband.State }

// bundledSource is a capture bundle.
type bundledSource interface {
	opened() *bundle.Bundle
	hasStacks() bool
	with(f *file, opts *Options) source // the same bundle with other options
}

// framePointerSource is a source with stacks that may be made of frame pointers.
type framePointerSource interface {
	// framePointers reports whether all of a profile's stacks are, and whether all mappings of the
	// processes are known.
	framePointers(p *ingest.Profile) (all, whole bool)
}

// Path returns the path that the capture was opened by.
func (c *Capture) Path() string { return c.file.path }

// Size returns the number of bytes of the capture's files.
func (c *Capture) Size() int64 { return c.file.size }

// Kallsyms returns the path of the copy of /proc/kallsyms in a recording of perf record --kcore,
// "" for other captures.
func (c *Capture) Kallsyms() string { return container.Kallsyms(c.file.path) }

// CheckStackOptions returns an error if Options.Stacks has options that only dumps of stack maps
// have, and the capture has no such dump.
func (c *Capture) CheckStackOptions() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s, ok := c.source.(stackMapSource); ok {
		return s.checkOptions()
	}
	return c.stacks.refuse(c.file.path, "it is a "+c.source.kind()+" file", true)
}

// CheckKallsyms compares a copy of /proc/kallsyms with the capture's kernel, of that build ID. The
// list of another one is a *sideband.KernelListError. Profile is called before.
func (c *Capture) CheckKallsyms(list *sideband.KernelList, kernel buildid.ID) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s, ok := c.source.(stateSource); ok {
		if sb := s.sideBandState(); sb != nil {
			return sb.Kernel.CheckKallsyms(list, kernel)
		}
	}
	return sideband.New().Kernel.CheckKallsyms(list, kernel)
}

// Kcore returns the path of the copy of the kernel's code in such a recording, "" for others.
func (c *Capture) Kcore() string { return container.Kcore(c.file.path) }

// Kind returns "perf.data", "bundle", "pprof", or the form of a stack map as named by
// stackmap.Form: "bpftool dump".
func (c *Capture) Kind() string { return c.source.kind() }

// PerfData returns the decoded file of a perf.data capture or of a bundle's side band, which
// stays open until Close; nil for other captures.
func (c *Capture) PerfData() *perfdata.File {
	if s, ok := c.source.(eventSource); ok {
		return s.perfData()
	}
	return nil
}

// Stacks returns the stacks of a stack map or of a bundle with stacks; nil for other
// captures. Profile discards the stacks and samples in it.
func (c *Capture) Stacks() *stackmap.Set {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s, ok := c.source.(stackMapSource); ok {
		return s.stackMap()
	}
	return nil
}

// Bundle returns the opened bundle of a capture of kind "bundle", which stays open
// until Close; nil for others.
func (c *Capture) Bundle() *bundle.Bundle {
	if s, ok := c.source.(bundledSource); ok {
		return s.opened()
	}
	return nil
}

// HasSamples reports whether a capture has samples to resolve. A bundle has samples if it has
// stacks; before the Profile is made this is determined by the headers of their dumps.
func (c *Capture) HasSamples() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.source.(bundledSource)
	return !ok || s.hasStacks()
}

// With returns the capture of a bundle with other options, for another profile of it. It shares
// the open files and the decoded side band with c: closing it does nothing, and it must not be
// used after c is closed. It panics if c is not of kind "bundle".
func (c *Capture) With(opts Options) *Capture {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := *c.file
	f.closers = nil
	return &Capture{file: &f, source: c.source.(bundledSource).with(&f, &opts), stacks: opts.Stacks,
		callers: opts.Callers}
}

// Close closes the file. The Profile stays usable.
func (c *Capture) Close() error { return c.file.closers.Close() }

// Profile reads the samples and folds them, once.
func (c *Capture) Profile(ctx context.Context) (*ingest.Profile, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.profile == nil {
		p, err := c.source.fold(ctx)
		if err != nil {
			return nil, err
		}
		if err := c.ReadError(); err != nil {
			p.Stats.Warnings = append(p.Stats.Warnings, ingest.Warning{Partial: true,
				Text: fmt.Sprintf("%s: not read whole: %v", c.file.path, err),
				Hint: "the file system could not read it: run it again when it can"})
		}
		if c.callers != nil {
			if all, whole := c.framePointers(p); all {
				recorded := *p
				recorded.Samples, recorded.Callers, recorded.Leaves = nil, nil, nil
				if p, c.chain = c.callers(p, whole); c.chain != nil {
					c.recorded = &recorded
				}
			}
		}
		c.profile = p
	}
	return c.profile, nil
}

// FramePointers reports whether all stacks of the profile that Profile made are of frame pointers, and
// whether all mappings of the processes are known.
func (c *Capture) FramePointers() (all, whole bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.profile == nil {
		return false, false
	}
	return c.framePointers(c.profile)
}

func (c *Capture) framePointers(p *ingest.Profile) (all, whole bool) {
	if s, ok := c.source.(framePointerSource); ok {
		return s.framePointers(p)
	}
	return false, false
}

// ReadError returns the first error of reading that is of this machine, not of the capture: what was
// read is not to be kept then. Decoders may have taken the error for damage.
func (c *Capture) ReadError() error { return c.file.reads.Err() }

// Replay reads the samples again, in order of time, with the same filters, and calls visit for
// each. Samples of the same time, and all samples of captures without times, come in the order of
// the file. It calls Profile first, if that was not done. An error of visit ends the replay and is
// returned. For captures that hold no single samples it returns ErrNoReplay.
func (c *Capture) Replay(ctx context.Context, visit func(*ReplaySample) error) error {
	err := ErrNoReplay
	if s, ok := c.source.(replaySource); ok {
		err = s.replay(ctx, c.recordedProfile, func(s *ReplaySample) error {
			if c.chain != nil {
				s.complete(c.chain)
			}
			return visit(s)
		})
	}
	if errors.Is(err, ErrNoReplay) {
		return fmt.Errorf("%s: %w", c.file.path, err)
	}
	return err
}

// recordedProfile returns the profile of which replays have the locations.
func (c *Capture) recordedProfile(ctx context.Context) (*ingest.Profile, error) {
	p, err := c.Profile(ctx)
	if c.recorded != nil {
		p = c.recorded
	}
	return p, err
}

// FileSymbols returns the functions of files that simpleperf listed in the capture; none for other
// recorders. With an error it returns the functions before the damage.
func (c *Capture) FileSymbols() ([]perfdata.FileSymbols, error) {
	if f := c.PerfData(); f != nil {
		return f.FileSymbols()
	}
	return nil, nil
}

// Programs returns the BPF programs of the capture, by ID: programs with recorded information, and
// programs that only records name, with the reason why no more is known (bpf.Program.Missing, Raw
// nil). They are decoded once and shared, and must not be changed. With an error it returns the
// undamaged programs; if the records cannot be read, only the features' programs. Captures of other
// kinds have none.
func (c *Capture) Programs() ([]bpf.Program, error) {
	sb, err := c.scan(context.Background())
	switch {
	case err != nil:
		programs, damage := sideband.ReadPrograms(c.PerfData())
		return programs, errors.Join(err, damage)
	case sb == nil:
		return nil, nil
	}
	return sb.Programs.List, sb.Programs.Err
}

// scan returns the state of the records; nil for captures without records.
func (c *Capture) scan(ctx context.Context) (*sideband.State, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s, ok := c.source.(eventSource); ok {
		return s.scan(ctx)
	}
	return nil, nil
}

// Types returns the BTF of a perf.data or a bundle, by its ID in the kernel; none for other
// captures. Damage of it is reported with the programs.
func (c *Capture) Types() map[uint32]*btf.Types {
	if f := c.PerfData(); f != nil {
		return sideband.Types(c.file.path, f)
	}
	return nil
}

// BPFStats returns how BPF programs were used; nil if the capture does not have it, or if it cannot be read, which
// `info` reports.
func (c *Capture) BPFStats() *bpf.Stats {
	b := c.Bundle()
	if b == nil {
		return nil
	}
	stats, err := b.BPFStats()
	if err != nil {
		return nil
	}
	return stats
}

// Contributions counts the facts that came from each bundle of Options.Bundles, in their order.
// They are known after Profile or Programs.
func (c *Capture) Contributions() []sideband.Contribution {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s, ok := c.source.(stateSource); ok {
		return s.sideBandState().Contributions()
	}
	return nil
}

// KernelMap returns the kernel's address space at the last time at which all functions of a BPF
// program were mapped at their addresses; at the end if they never were. The objects in it have the
// build IDs that Profile found. It is nil for captures without records of the kernel. It may be
// called after Close, if Profile was called before.
func (c *Capture) KernelMap(ctx context.Context, p *bpf.Program) (*sideband.KernelMap, error) {
	if _, err := c.Profile(ctx); err != nil {
		return nil, err
	}
	sb, err := c.scan(ctx)
	if sb == nil || err != nil {
		return nil, err
	}
	return sb.KernelMap(p), nil
}

// bundlesOf returns the bundles of Options.Bundles in the form of ingest/sideband.
func bundlesOf(captures []*Capture) []sideband.Bundle {
	list := make([]sideband.Bundle, 0, len(captures))
	for _, c := range captures {
		list = append(list, sideband.Bundle{Path: c.Path(), Bundle: c.Bundle(),
			Records: c.PerfData(), Programs: c.Programs})
	}
	return list
}
