package advice

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"symbolize/ingest"
	"symbolize/ingest/texts"
)

// CoverageOptions are for NewCoverage.
type CoverageOptions struct {
	Count bool // weigh samples and frames by number instead of periods
	// Searched: files of this host were looked through for objects that nothing else had.
	Searched bool
	// Replaced reports whether the file that is now at an object's path is another one; nil where
	// that is not known.
	Replaced func(*ingest.Object) bool
	// Origin returns where the symbols of an object came from, "" for nowhere; nil where that is
	// not known.
	Origin func(*ingest.Object) string
}

// Coverage is how much of a profile is named, and why the rest is not. Samples and frames of all
// events count, by weight: each frame weighs as much as its sample. A frame with a function name is
// named, and a sample is if its innermost frame is: that is where its time was spent.
type Coverage struct {
	Captures []string        `json:"captures,omitempty"`
	Samples  uint64          `json:"samples"`
	Events   []EventCoverage `json:"events"`
	Named    float64         `json:"named_samples_percent"`
	Frames   uint64          `json:"frames"`
	// NamedFrames is a share by weight, as Named.
	NamedFrames float64          `json:"named_frames_percent"`
	Domains     []DomainCoverage `json:"domains"`
	BuildIDs    []IDCoverage     `json:"build_ids"`
	Objects     []Origin         `json:"objects,omitempty"`       // most frames first
	Missing     []Missing        `json:"missing"`                 // heaviest first
	Left        int              `json:"rows_left_off,omitempty"` // of Missing, by Cut
	Probable    []Probable       `json:"probable,omitempty"`
	Lost        uint64           `json:"lost"`
	Throttled   uint64           `json:"throttled"`
	CutChains   uint64           `json:"cut_chains"`
	Uncalled    *Uncalled        `json:"uncalled,omitempty"` // nil for none
	Unknown     uint64           `json:"unknown_records,omitempty"`
	Copied      *Copied          `json:"copied_stacks,omitempty"`
	Callers     *Callers         `json:"callers,omitempty"`
	Warnings    []string         `json:"warnings,omitempty"`
}

// EventCoverage counts the samples of one event.
type EventCoverage struct {
	Name    string `json:"name"`
	Samples uint64 `json:"samples"`
	Weight  uint64 `json:"weight"`
	Unit    string `json:"unit"`
}

// DomainCoverage is one kind of code.
type DomainCoverage struct {
	Domain string  `json:"domain"` // "user", "kernel", "bpf", "jit"
	Frames uint64  `json:"frames"`
	Share  float64 `json:"frames_percent"`       // of all frames, by weight
	Named  float64 `json:"named_frames_percent"` // of its own frames, by weight

	NamedFrames uint64 `json:"named_frames"`

	// Samples have their innermost frame in this kind of code.
	Samples      uint64  `json:"samples"`
	NamedSamples uint64  `json:"named_samples"`
	SampleShare  float64 `json:"samples_percent"`       // of all samples, by weight
	SamplesNamed float64 `json:"named_samples_percent"` // of its own samples, by weight
}

// IDCoverage is the share of objects with a build ID found this way.
type IDCoverage struct {
	Source  string  `json:"source"`
	Objects int     `json:"objects"`
	Frames  uint64  `json:"frames"`
	Share   float64 `json:"frames_percent"` // of the frames in files, by weight
}

// notFound is Origin.From of objects without symbols.
const notFound = "not found"

// Origin counts the objects with symbols from one source.
type Origin struct {
	From    string  `json:"from"` // "the store", "local files", "--with", notFound ...
	Objects int     `json:"objects"`
	Frames  uint64  `json:"frames"`
	Share   float64 `json:"frames_percent"` // of all frames, by weight
}

// Missing counts the unnamed frames of one object for one reason, and the samples that end in them.
type Missing struct {
	Object  string  `json:"object"`
	Kind    string  `json:"kind"`
	BuildID string  `json:"build_id,omitempty"`
	Found   string  `json:"found_build_id,omitempty"` // of the file at that path
	Reason  string  `json:"reason"`
	Why     string  `json:"why,omitempty"` // more of the reason: why a program's code is not there
	Samples uint64  `json:"samples"`       // of which this is the innermost frame
	Frames  uint64  `json:"frames"`        // unresolved frames of all samples
	Places  int     `json:"locations"`     // distinct unresolved locations
	Total   uint64  `json:"total_frames"`
	Share   float64 `json:"frames_percent"` // of all frames, by weight
	// SampleShare is the share of all samples, by weight.
	SampleShare float64 `json:"samples_percent"`
	Hint        string  `json:"hint,omitempty"`
	Package     string  `json:"debug_package,omitempty"` // the command that installs it
}

// Cut leaves the n heaviest rows of Missing; 0 leaves all.
func (c *Coverage) Cut(n int) {
	if n > 0 && len(c.Missing) > n {
		c.Left, c.Missing = len(c.Missing)-n, c.Missing[:n]
	}
}

// Probable is a function captured with name, tag and length only: its lines come from a function of
// another capture with these three.
type Probable struct {
	Object  string  `json:"object"`
	BuildID string  `json:"build_id"`
	From    string  `json:"lines_of_build_id"`
	Frames  uint64  `json:"frames"`
	Share   float64 `json:"frames_percent"` // of all frames, by weight
}

var domainText = [...]string{
	ingest.UserDomain: "user", ingest.KernelDomain: "kernel", ingest.BPFDomain: "bpf",
	ingest.JITDomain: "jit",
}

// NewCoverage sums up a profile. Without Names all locations count as not indexed.
func NewCoverage(p *ingest.Profile, opts CoverageOptions) *Coverage {
	c := &Coverage{Lost: p.Stats.Lost, Throttled: p.Stats.Throttled, CutChains: p.Stats.CutChains,
		Unknown: p.Stats.UnknownRecords,
		Missing: []Missing{}, Copied: NewCopied(&p.Stats.Copied),
		Callers: NewCallers(&p.Stats.Callers)}
	for _, path := range p.Meta.Captures {
		c.Captures = append(c.Captures, texts.Printable(path))
	}
	for _, w := range p.Stats.Warnings {
		c.Warnings = append(c.Warnings, texts.Printable(w.Text))
	}
	if p.Names != nil {
		for _, w := range p.Names.Warnings {
			c.Warnings = append(c.Warnings, texts.Printable(w.Text))
		}
	}
	c.countEvents(p)
	locations := p.WeighFrames(opts.Count)
	innermost, samples := p.WeighInnermost(opts.Count)
	named, all := p.NamedFrames(locations)
	namedSamples, _ := p.NamedFrames(innermost)
	var domains, domainsNamed, ends, endsNamed [len(domainText)]ingest.FrameSum
	objects := make([]ingest.FrameSum, len(p.Objects))
	hasNames := make([]bool, len(p.Objects))
	for l, w := range locations {
		object := p.Locations[l].Object
		d := p.Objects[object].Domain()
		objects[object].Add(w)
		domains[d].Add(w)
		ends[d].Add(innermost[l])
		if p.IsNamed(ingest.LocationID(l)) {
			hasNames[object] = true
			domainsNamed[d].Add(w)
			endsNamed[d].Add(innermost[l])
		}
	}
	c.Frames, c.NamedFrames, c.Named = all.Frames, share(named, all), share(namedSamples, samples)
	for d := range domains {
		if domains[d].Frames > 0 {
			c.Domains = append(c.Domains, DomainCoverage{Domain: domainText[d],
				Frames: domains[d].Frames,
				Share:  share(domains[d], all),
				Named:  share(domainsNamed[d], domains[d]), NamedFrames: domainsNamed[d].Frames,
				Samples: ends[d].Frames, NamedSamples: endsNamed[d].Frames,
				SampleShare: share(ends[d], samples), SamplesNamed: share(endsNamed[d], ends[d])})
		}
	}
	c.countIDs(p, objects)
	if opts.Origin != nil {
		c.countOrigins(p, opts.Origin, hasNames, objects, all)
	}
	c.findMissing(p, &opts, &weights{locations: locations, objects: objects, all: all,
		innermost: innermost, samples: samples})
	c.findProbable(p, objects, all)
	c.Uncalled = newUncalled(p, opts.Count, all)
	return c
}

// findProbable lists the objects with uncertain lines, in their order.
func (c *Coverage) findProbable(p *ingest.Profile, objects []ingest.FrameSum, all ingest.FrameSum) {
	if p.Names == nil {
		return
	}
	for _, o := range slices.Sorted(maps.Keys(p.Names.Probable)) {
		c.Probable = append(c.Probable, Probable{Object: objectText(&p.Objects[o]),
			BuildID: p.Objects[o].ID.String(), From: p.Names.Probable[o].String(),
			Frames: objects[o].Frames, Share: share(objects[o], all)})
	}
}

// share is a percentage by weight; by frames where none has a weight. Of no frames it is 0.
func share(part, all ingest.FrameSum) float64 {
	if all.Weight > 0 {
		return percent(part.Weight, all.Weight)
	}
	return percent(float64(part.Frames), float64(all.Frames))
}

// percent is 0 of nothing.
func percent(part, all float64) float64 {
	if all == 0 {
		return 0
	}
	return 100 * part / all
}

// countEvents sums the samples by event.
func (c *Coverage) countEvents(p *ingest.Profile) {
	c.Events = make([]EventCoverage, len(p.Events))
	for i := range p.Events {
		c.Events[i].Name = texts.Printable(p.Events[i].Name)
		c.Events[i].Unit = texts.Printable(p.Events[i].Unit)
	}
	for i := range p.Samples {
		s := &p.Samples[i]
		c.Samples += s.Count
		c.Events[s.Event].Samples += s.Count
		c.Events[s.Event].Weight += s.Weight
	}
	c.Events = slices.DeleteFunc(c.Events, func(e EventCoverage) bool { return e.Samples == 0 })
}

// countIDs sums the objects that are files by where their build ID came from.
func (c *Coverage) countIDs(p *ingest.Profile, objects []ingest.FrameSum) {
	var sums [ingest.IDNamed + 1]ingest.FrameSum
	var counts [ingest.IDNamed + 1]int
	var all ingest.FrameSum
	for i := range p.Objects {
		o := &p.Objects[i]
		if o.Kind > ingest.Module || objects[i].Frames == 0 || int(o.IDSource) >= len(sums) {
			continue
		}
		counts[o.IDSource]++
		sums[o.IDSource].Add(objects[i])
		all.Add(objects[i])
	}
	for s := range sums {
		if counts[s] > 0 {
			c.BuildIDs = append(c.BuildIDs, IDCoverage{Source: ingest.IDSource(s).String(),
				Objects: counts[s],
				Frames:  sums[s].Frames, Share: share(sums[s], all)})
		}
	}
	slices.SortStableFunc(c.BuildIDs, func(a, b IDCoverage) int {
		return cmp.Compare(b.Share,
			a.Share)
	})
}

// countOrigins sums the objects by where their symbols came from.
func (c *Coverage) countOrigins(p *ingest.Profile, origin func(*ingest.Object) string,
	hasNames []bool, objects []ingest.FrameSum, all ingest.FrameSum) {
	sums := make(map[string]ingest.FrameSum)
	counts := make(map[string]int)
	for i := range p.Objects {
		if o := &p.Objects[i]; objects[i].Frames > 0 && !o.Kind.Collapsed() {
			from := origin(o)
			switch {
			case from == "" && hasNames[i]: // a profile with names, BPF symbols
				from = "the captures"
			case from == "":
				from = notFound
			}
			sum := sums[from]
			sum.Add(objects[i])
			sums[from] = sum
			counts[from]++
		}
	}
	for from, sum := range sums {
		c.Objects = append(c.Objects, Origin{From: from, Objects: counts[from], Frames: sum.Frames,
			Share: share(sum, all)})
	}
	slices.SortFunc(c.Objects, func(a, b Origin) int {
		return cmp.Or(cmp.Compare(b.Frames, a.Frames), cmp.Compare(a.From, b.From))
	})
}

// weights are the sums of a profile.
type weights struct {
	locations, objects []ingest.FrameSum // of frames
	all                ingest.FrameSum
	innermost          []ingest.FrameSum // of samples, by location
	samples            ingest.FrameSum
}

// findMissing groups the unresolved locations by object and reason, heaviest first: by the samples
// that end in them, then by frames.
func (c *Coverage) findMissing(p *ingest.Profile, opts *CoverageOptions, weights *weights) {
	type key struct {
		object ingest.ObjectID
		reason ingest.Reason
		signal bool // where signal handlers return to
	}
	type sum struct {
		key
		ingest.FrameSum
		samples ingest.FrameSum
		places  int
	}
	index := make(map[key]int)
	var sums []sum
	for l, w := range weights.locations {
		// A function with a name and no image is missing too: it lacks lines and instructions.
		if w.Frames == 0 || p.IsNamed(ingest.LocationID(l)) &&
			p.Names.Reasons[l] == ingest.ReasonNone {
			continue
		}
		k := key{object: p.Locations[l].Object, reason: ingest.NotIndexed}
		if p.Names != nil {
			k.reason = p.Names.Reasons[l]
			k.signal = p.Names.Made(ingest.LocationID(l), ingest.SignalPrefix)
		}
		i, ok := index[k]
		if !ok {
			i = len(sums)
			index[k] = i
			sums = append(sums, sum{key: k})
		}
		sums[i].Add(w)
		sums[i].samples.Add(weights.innermost[l])
		sums[i].places++
	}
	slices.SortFunc(sums, func(a, b sum) int {
		return cmp.Or(cmp.Compare(b.samples.Weight, a.samples.Weight),
			cmp.Compare(b.Weight, a.Weight), cmp.Compare(b.Frames, a.Frames),
			cmp.Compare(a.object, b.object), cmp.Compare(a.reason, b.reason),
			cmp.Compare(a.places, b.places))
	})
	recorded := p.Meta.MapsIDs || slices.ContainsFunc(p.Objects, func(o ingest.Object) bool {
		return o.Kind == ingest.ELF && o.IDSource == ingest.IDRecorded
	})
	ends := newStackEnds(p)
	runtime := Runtime(p)
	for _, s := range sums {
		o := &p.Objects[s.object]
		m := Missing{Object: objectText(o), Kind: o.Kind.String(), BuildID: o.ID.String(),
			Reason: s.reason.String(), Frames: s.Frames, Places: s.places,
			Total: weights.objects[s.object].Frames, Share: share(s.FrameSum, weights.all),
			Samples: s.samples.Frames, SampleShare: share(s.samples, weights.samples)}
		fix := Case{Reason: s.reason, Object: o, Captures: p.Meta.Captures, BuildIDs: recorded,
			Searched: opts.isElsewhere(o, s.reason), SignalReturn: s.signal, Runtime: runtime,
			Copied: copiedBytes(p), Counted: strings.HasPrefix(p.Meta.Recorder, "symbolize")}
		ends.describe(s.object, &fix)
		m.Hint, m.Package = fix.Step(), fix.Package()
		if s.reason == ingest.ImageNotCaptured {
			m.Why = texts.Printable(o.WhyNoImage)
		}
		if p.Names != nil && s.reason == ingest.Mismatch {
			m.Found = p.Names.Found[s.object].String()
		}
		c.Missing = append(c.Missing, m)
	}
}

// isElsewhere reports whether the file of an object that is not indexed is not where it was.
func (opts *CoverageOptions) isElsewhere(o *ingest.Object, reason ingest.Reason) bool {
	if opts.Searched || opts.Replaced == nil {
		return opts.Searched
	}
	return (reason == ingest.NotIndexed || reason == ingest.LayoutUnknown) && opts.Replaced(o)
}

// copiedBytes is how much of each stack was recorded; of a profile that was written as a pprof file
// only that some was is known.
func copiedBytes(p *ingest.Profile) uint64 {
	if n := p.Stats.Copied.Bytes; n > 0 || !strings.Contains(p.Meta.Command, "--call-graph dwarf") {
		return n
	}
	return 1
}

func objectText(o *ingest.Object) string {
	text := texts.Printable(o.File.Path)
	switch {
	case text == "":
		return "[" + ingest.ShortName(o) + "]"
	case o.File.Deleted:
		return text + " (deleted)"
	case o.Kind == ingest.Anonymous && o.PID > 0:
		return text + " of process " + strconv.Itoa(int(o.PID))
	}
	return text
}
