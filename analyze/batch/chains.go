package batch

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"symbolize/analyze"
	"symbolize/analyze/resolve"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/files"
	"symbolize/ingest/input/merge"
	"symbolize/ingest/texts"
	"symbolize/store"
)

// Chains is how Name treats stacks that were made of frame pointers, which Collect keeps as they were
// recorded: the zero Chains leaves them so.
type Chains struct {
	// Proven checks and completes them, see analyze.Naming.Callers.
	Proven bool `json:"proven"`
	// Gaps is analyze.Naming.Gaps.
	Gaps bool `json:"gaps,omitempty"`
}

// The records of a file of names with completed stacks.
const (
	chainsRecord = "chains" // chainsMade
	// With Head.state of a capture: its ingest.Profile, with completed stacks. Each capture is in the
	// file of one part.
	chainRecord = "chain:"
)

func chainName(state string) string { return chainRecord + state }

// chainsMade are the inputs of the completed stacks, of all captures.
type chainsMade struct {
	Needs []analyze.Dependency
	More  []places // locations of the completed stacks, of this part
}

// completer checks and completes the stacks of collected captures by the tables of a session's store.
// All parts of a batch may share one: what all need is found once.
type completer struct {
	session *analyze.Session
	chains  Chains
	packs   []string
	parts   int
	workers int

	found bool
	made  []chainsMade // by part
	trace *analyze.Trace
	view  store.View

	mu       sync.Mutex
	warnings []ingest.Warning
	reported int // of them
}

// newWarnings returns the warnings since the last call.
func (c *completer) newWarnings() []ingest.Warning {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := slices.Clone(c.warnings[c.reported:])
	c.reported = len(c.warnings)
	return list
}

// find completes the stacks of all captures, for the locations in them.
func (c *completer) find(ctx context.Context) error {
	if c.found {
		return nil
	}
	c.view, c.trace = c.session.Trace()
	all := newGathering()
	err := c.each(ctx, func(string) bool { return true }, func(_ string, p *ingest.Profile, own *ownNames) error {
		list := slices.DeleteFunc(placesOf(p), func(pl places) bool {
			return pl.Object.Kind != ingest.ELF && slices.Contains(own.Keys, pl.Key)
		})
		c.mu.Lock()
		defer c.mu.Unlock()
		all.add(list)
		return nil
	})
	if err != nil {
		return err
	}
	c.made = make([]chainsMade, c.parts)
	for _, g := range all.list {
		m := &c.made[partOf(g.Key, c.parts)]
		m.More = append(m.More, *g.union())
	}
	needs := c.trace.Dependencies()
	for i := range c.made {
		m := &c.made[i]
		m.Needs = needs
		slices.SortFunc(m.More, func(a, b places) int { // captures come in any order
			return strings.Compare(a.Key+facts(&a.Object)+a.Object.File.Path, b.Key+facts(&b.Object)+b.Object.File.Path)
		})
	}
	c.found = true
	return nil
}

// write puts the completed stacks of the captures with records in a part.
func (c *completer) write(ctx context.Context, part int, put func(name string, packed []byte) error) error {
	stacks := make(map[string][]byte)
	share := func(state string) bool { return partOf(state, c.parts) == part }
	err := c.each(ctx, share, func(state string, p *ingest.Profile, _ *ownNames) error {
		packed := pack(p)
		c.mu.Lock()
		defer c.mu.Unlock()
		stacks[state] = packed
		return nil
	})
	if err != nil {
		return err
	}
	for _, state := range slices.Sorted(maps.Keys(stacks)) {
		if err := put(chainName(state), stacks[state]); err != nil {
			return outputErr(err)
		}
	}
	return nil
}

// each calls do with the completed stacks of selected captures, from several goroutines. Captures with
// stacks that were made otherwise, or without known code, stay as they are.
func (c *completer) each(ctx context.Context, selected func(state string) bool,
	do func(state string, p *ingest.Profile, own *ownNames) error) error {
	done := make(map[string]bool) // captures of equal content
	for _, path := range c.packs {
		f, _, heads, err := readPack(path)
		if err != nil {
			return err
		}
		states := make([]string, len(heads))
		for i := range heads {
			if s := heads[i].state(); heads[i].FramePointers && !heads[i].Named && !done[s] && selected(s) {
				states[i], done[s] = s, true
			}
		}
		err = files.Each(ctx, c.workers, len(heads), func(ctx context.Context, i int) error {
			if states[i] == "" {
				return nil
			}
			p, own, err := readCapture(f, i)
			if err == nil {
				p, err = c.complete(ctx, p, &heads[i])
			}
			if err != nil || p.Stats.Callers.Samples == 0 {
				return err
			}
			return do(states[i], p, own)
		})
		if f.Close(); err != nil { // read only
			return err
		}
	}
	return nil
}

// complete returns the profile of a capture with completed stacks.
func (c *completer) complete(ctx context.Context, p *ingest.Profile, h *Head) (*ingest.Profile, error) {
	if _, err := c.session.Need(ctx, p.Objects); err != nil {
		return nil, err
	}
	exact, undecided := resolve.Exact(c.view), make(map[ingest.ObjectID][]addr.Offset)
	for _, l := range p.Locations {
		if p.Objects[l.Object].Undecided {
			undecided[l.Object] = append(undecided[l.Object], addr.Return(l.Offset, true))
		}
	}
	err := decideAll(p, func(id ingest.ObjectID) ([]addr.Offset, error) {
		return exact(&p.Objects[id], undecided[id]), nil
	})
	if err == nil {
		p, err = merge.Profiles([]*ingest.Profile{p}) // in order again
	}
	if err != nil {
		return nil, err
	}
	return c.trace.CompleteCallers(p, h.WholeMappings, c.chains.Gaps, c.damaged), nil
}

// damaged notes the error of a table of calls: what was made without it is not to be used again.
func (c *completer) damaged(err error) {
	c.trace.Spoil()
	c.mu.Lock()
	defer c.mu.Unlock()
	w := ingest.Warning{Text: err.Error(), Hint: analyze.DamagedHint(err), Partial: true}
	if !slices.Contains(c.warnings, w) {
		c.warnings = append(c.warnings, w)
	}
}

// readCapture reads a capture of a pack, and the names that it came with.
func readCapture(f *recordFile, n int) (*ingest.Profile, *ownNames, error) {
	p, own := &ingest.Profile{}, &ownNames{}
	ok1, err1 := f.Get(stacksName(n), p)
	ok2, err2 := f.Get(ownName(n), own)
	switch {
	case err1 != nil:
		return nil, nil, err1
	case err2 != nil:
		return nil, nil, err2
	case !ok1 || !ok2 || check(p) != nil:
		return nil, nil, f.Fail("no collected capture %d", n)
	}
	return p, own, nil
}

// keptChains returns what a run before found of all stacks, nil unless it had the same captures, and
// the store still has the same answers.
func (n *namer) keptChains(ctx context.Context, head *namesHead) (*chainsMade, error) {
	if n.old == nil || n.oldHead != *head || !head.Chains.Proven {
		return nil, nil
	}
	m := &chainsMade{}
	if ok, err := n.old.Get(chainsRecord, m); !ok || err != nil {
		return nil, nil // damaged: it is made again
	}
	for _, e := range n.old.index {
		if strings.HasPrefix(e.Name, chainRecord) {
			if _, err := n.old.packed(e); err != nil {
				return nil, nil
			}
		}
	}
	changed, err := n.session.Changed(ctx, m.Needs)
	if changed || err != nil {
		return nil, err
	}
	return m, nil
}

// putChains writes the completed stacks of a part: those of the run before if that is kept.
func (n *namer) putChains(ctx context.Context, c *completer, part int, kept *chainsMade) error {
	if kept == nil {
		if err := n.out.Put(chainsRecord, pack(&c.made[part])); err != nil {
			return outputErr(err)
		}
		return c.write(ctx, part, n.out.Put)
	}
	for _, e := range n.old.index {
		if e.Name != chainsRecord && !strings.HasPrefix(e.Name, chainRecord) {
			continue
		}
		packed, err := n.old.packed(e)
		if err != nil {
			return err
		}
		if err := n.out.Put(e.Name, packed); err != nil {
			return outputErr(err)
		}
	}
	return nil
}

// sameChains returns an error for files of names of which some have stacks as recorded.
func (a *Answers) sameChains(head *namesHead, f *recordFile) error {
	if len(a.parts) > 0 && head.Chains != a.chains {
		return texts.WithHint(fmt.Errorf("%s: stacks are completed in another way than in the other parts",
			f.path), "run `symbolize batch name` with the same --chains and --gaps for each part")
	}
	a.chains = head.Chains
	return nil
}

// completed returns the completed stacks of a capture; nil for one with stacks as recorded.
func (a *Answers) completed(state string) (*ingest.Profile, error) {
	for _, f := range a.files {
		p := &ingest.Profile{}
		ok, err := f.Get(chainName(state), p)
		if ok && err == nil && check(p) != nil {
			err = f.Fail("no stacks of a capture")
		}
		if ok || err != nil {
			return p, err
		}
	}
	return nil, nil
}
