package advice

import (
	"path"
	"slices"
	"strings"

	"symbolize/ingest"
)

// stackEnds is the code in which copied stacks end that could not be unwound further, by the
// object of the frame that has the reason.
type stackEnds map[ingest.ObjectID]*endsIn

type endsIn struct {
	programs []string // in Go, sorted
	other    bool     // also in other code
}

func newStackEnds(p *ingest.Profile) stackEnds {
	if !slices.ContainsFunc(p.Objects, func(o ingest.Object) bool { return o.Kind == ingest.NoStack }) {
		return nil
	}
	ends, goes := make(stackEnds), goPrograms(p)
	for s, caller := range p.Callers {
		if caller == 0 || p.Callers[caller] != 0 {
			continue // not the second frame from the end
		}
		why, last := p.Locations[p.Leaves[caller]].Object, p.Locations[p.Leaves[s]].Object
		if p.Objects[why].Kind != ingest.NoStack {
			continue
		}
		e := ends[why]
		if e == nil {
			e = new(endsIn)
			ends[why] = e
		}
		if !goes[last] {
			e.other = true
			continue
		}
		name := path.Base(p.Objects[last].File.Path)
		if at, ok := slices.BinarySearch(e.programs, name); !ok {
			e.programs = slices.Insert(e.programs, at, name)
		}
	}
	return ends
}

// goPrograms returns the objects that have functions of Go: known by the file, which debug
// information and Go's own table have, or by functions of the runtime's package, which symbols have
// in the same form.
func goPrograms(p *ingest.Profile) map[ingest.ObjectID]bool {
	goes := make(map[ingest.ObjectID]bool)
	if p.Names == nil {
		return goes
	}
	for i := range p.Names.Functions {
		f := &p.Names.Functions[i]
		if p.Objects[f.Object].Kind == ingest.ELF &&
			(strings.HasSuffix(f.File, ".go") || strings.HasPrefix(f.SystemName, "runtime.")) {
			goes[f.Object] = true
		}
	}
	return goes
}

// mostPrograms is how many programs a hint names.
const mostPrograms = 3

// describe fills in the facts that hints need about the frames of an object.
func (s stackEnds) describe(o ingest.ObjectID, c *Case) {
	if e := s[o]; e != nil {
		c.GoPrograms, c.OtherCode = e.programs, e.other
		if n := len(e.programs); n > mostPrograms {
			c.GoPrograms = append(slices.Clone(e.programs[:mostPrograms]), "…")
		}
	}
}
