package code

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"symbolize/analyze/annotate"
	"symbolize/analyze/demangle"
	"symbolize/analyze/resolve"
	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/object/bpf"
)

// Pattern selects functions: by name, glob or regular expression, by the ID of a BPF program or
// by a tag.
type Pattern struct {
	text string
	id   uint32         // of id:N or N, with isID
	tag  string         // of tag:HEX or HEX
	re   *regexp.Regexp // of whole names; nil if text is none
	part *regexp.Regexp // of parts of names
	isID bool
	glob bool // text is one
}

// Prefixes of patterns that only match BPF programs. Without them a number and
// the digits of a tag may be a function's name as well.
const (
	idPattern  = "id:"
	tagPattern = bpf.TagPrefix
)

// ParsePattern parses a Pattern. A text that is both a glob and a regular expression matches as
// either, one that is neither, as "operator[]", only as a name or a part of it.
func ParsePattern(text string) (p Pattern, err error) {
	p.text = text
	if digits, ok := strings.CutPrefix(text, idPattern); ok {
		id, err := strconv.ParseUint(digits, 10, 32)
		if err != nil {
			return p, fmt.Errorf("pattern %q: the ID of a program is a number", text)
		}
		p.id, p.isID = uint32(id), true
		return p, nil
	}
	if digits, ok := strings.CutPrefix(text, tagPattern); ok {
		if p.tag = tagDigits(digits); p.tag == "" {
			return p, fmt.Errorf("pattern %q: a tag has 16 hexadecimal digits", text)
		}
		return p, nil
	}
	if id, err := strconv.ParseUint(text, 10, 32); err == nil {
		p.id, p.isID = uint32(id), true
	}
	p.tag = tagDigits(text)
	_, err = path.Match(text, "")
	p.glob = err == nil
	if p.part, err = regexp.Compile(text); err == nil {
		p.re = regexp.MustCompile("^(?:" + text + ")$")
	}
	return p, nil
}

// tagDigits returns a tag in its printed form, "" if text is not the digits of a tag.
func tagDigits(text string) string {
	if t, ok := bpf.ParseTag(text); ok && len(text) == len(t.String()) {
		return t.String()
	}
	return ""
}

// String returns the text that was parsed.
func (p *Pattern) String() string { return p.text }

// ByProgram reports whether p selects BPF programs, by ID or tag.
func (p *Pattern) ByProgram() bool { return p.isID || p.tag != "" }

// Name reports whether a function's name matches.
func (p *Pattern) Name(name string) bool {
	if name == p.text || p.re != nil && p.re.MatchString(name) {
		return true
	}
	if !p.glob {
		return false
	}
	// In names '/' is a letter like any other, as in the package paths of Go.
	slash := strings.NewReplacer("/", "\x00")
	ok, _ := path.Match(slash.Replace(p.text), slash.Replace(name))
	return ok
}

// program reports whether function i of a BPF program matches by ID or tag. The tag of a program
// matches all its functions.
func (p *Pattern) program(prog *bpf.Program, i int) bool {
	if p.isID && prog.ID == p.id {
		return true
	}
	return p.tag != "" && (prog.Tag.String() == p.tag || prog.Funcs[i].Tag.String() == p.tag)
}

// Loads are the IDs of BPF programs among patterns: each names one load.
func Loads(patterns []Pattern) (ids []uint32) {
	for i := range patterns {
		if patterns[i].isID {
			ids = append(ids, patterns[i].id)
		}
	}
	return ids
}

// Matching returns the functions of the captures' programs that patterns select, whether they have
// samples or not, in the order of their programs: by ID of one load, else once for all loads. Their
// objects are numbered from first on.
func (c *Finder) Matching(patterns []Pattern, first ingest.ObjectID) (objects []ingest.Object,
	list []annotate.HotFunction) {
	var found []*bpfLoad
	symbols := make(map[*bpfLoad]string)
	for _, loads := range c.loads {
		for i := range loads {
			l := &loads[i]
			symbol := resolve.WholeSymbol(c.o.View, l.program.Symbol(l.fn))
			_, name, _ := bpf.SplitSymbol(symbol)
			if slices.ContainsFunc(patterns, func(p Pattern) bool {
				return p.program(l.program, l.fn) || p.Name(symbol) || p.Name(name) ||
					p.Name(l.program.Funcs[l.fn].Name)
			}) {
				found, symbols[l] = append(found, l), symbol
			}
		}
	}
	slices.SortFunc(found, func(a, b *bpfLoad) int {
		return cmp.Or(cmp.Compare(a.program.ID, b.program.ID), cmp.Compare(a.fn, b.fn),
			cmp.Compare(a.origin, b.origin))
	})
	known := make(map[string]bool)
	ids := Loads(patterns)
	for _, l := range found {
		o := ingest.Object{Kind: ingest.JIT, ID: l.program.Identity(l.fn, l.machine), Kernel: ingest.NoObject,
			File: ingest.FileRef{Path: l.program.Symbol(l.fn)}, Symbol: l.program.Symbol(l.fn)}
		if slices.Contains(ids, l.program.ID) {
			o.RefSymbol = ingest.LoadText(l.program.ID)
		}
		if key := o.ID.String() + o.RefSymbol; !known[key] {
			known[key] = true
			list = append(list, annotate.HotFunction{Object: first + ingest.ObjectID(len(objects)),
				SystemName: symbols[l]})
			objects = append(objects, o)
		}
	}
	return objects, list
}

// A Chooser chooses the functions that patterns select: those with a whole name that matches, and
// the places where a function of exactly that name was inlined. If there are none, it chooses the
// hottest function whose name ends in a pattern, as "run" in "app::run", otherwise the hottest one
// with a part that matches, as --focus does.
type Chooser struct {
	Count bool // the hottest by samples, not by weight
	Names int  // how many functions with a matching part are chosen; 0 for all
	// Others are the printed names of such functions that were not chosen, hottest first.
	Others []string
	// All are the printed names of all functions with samples, hottest first.
	All []string

	p        *ingest.Profile
	d        *demangle.Demangler
	patterns []Pattern
	programs map[buildid.Key]bool // that match by tag
	loads    []string             // ingest.LoadText of those that match by ID
}

// Chooser returns a Chooser for the functions of a profile, of which the loads that patterns name are
// objects of their own.
func (c *Finder) Chooser(p *ingest.Profile, patterns []Pattern, d *demangle.Demangler) *Chooser {
	programs := make(map[buildid.Key]bool)
	for key, loads := range c.loads {
		for i := range patterns {
			for _, l := range loads {
				programs[key] = programs[key] || patterns[i].tag != "" && patterns[i].program(l.program, l.fn)
			}
		}
	}
	x := &Chooser{p: p, d: d, patterns: patterns, programs: programs}
	for _, id := range Loads(patterns) {
		x.loads = append(x.loads, ingest.LoadText(id))
	}
	return x
}

// Choose implements annotate.Options.Choose.
func (c *Chooser) Choose(list []annotate.HotFunction) []annotate.HotFunction {
	c.All = c.names(list)
	if chosen := filter(list, c.whole); len(chosen) > 0 {
		return chosen
	}
	for _, matches := range []func(p *Pattern, name string) bool{
		func(p *Pattern, name string) bool {
			return strings.HasSuffix(name, "::"+p.text) || strings.HasSuffix(name, "."+p.text)
		},
		func(p *Pattern, name string) bool {
			return strings.Contains(name, p.text) || p.part != nil && p.part.MatchString(name)
		},
	} {
		found := filter(list, func(f *annotate.HotFunction) bool {
			name := c.d.Name(f.Name())
			return slices.ContainsFunc(c.patterns, func(p Pattern) bool { return matches(&p, name) })
		})
		if len(found) == 0 {
			continue
		}
		names := c.names(found)
		n := len(names)
		if c.Names > 0 {
			n = min(n, c.Names)
		}
		c.Others = names[n:]
		return filter(found, func(f *annotate.HotFunction) bool {
			return slices.Contains(names[:n], c.d.Name(f.Name()))
		})
	}
	return nil
}

func filter(list []annotate.HotFunction, keep func(*annotate.HotFunction) bool) (
	kept []annotate.HotFunction) {
	for i := range list {
		if keep(&list[i]) {
			kept = append(kept, list[i])
		}
	}
	return kept
}

// names returns the printed names of functions, hottest first: a function may be in several places.
func (c *Chooser) names(list []annotate.HotFunction) (names []string) {
	sums := make(map[string]uint64)
	for i := range list {
		name := c.d.Name(list[i].Name())
		if _, ok := sums[name]; !ok {
			names = append(names, name)
		}
		sums[name] += list[i].Value(c.Count)
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(sums[b], sums[a]) })
	return names
}

// whole reports whether a pattern selects a function by its whole name, or by its program.
func (c *Chooser) whole(f *annotate.HotFunction) bool {
	name := c.d.Name(f.Name())
	if f.Inlined != "" {
		return slices.ContainsFunc(c.patterns, func(p Pattern) bool {
			return p.text == name || p.text == f.Inlined
		})
	}
	if o := &c.p.Objects[f.Object]; o.Kind == ingest.JIT &&
		(c.programs[o.ID.Key()] || slices.Contains(c.loads, o.RefSymbol)) {
		return true
	}
	tag, short, isBPF := bpf.SplitSymbol(f.SystemName)
	for i := range c.patterns {
		pt := &c.patterns[i]
		if pt.Name(f.SystemName) || pt.Name(name) ||
			isBPF && (pt.Name(short) || pt.tag == tag.String()) {
			return true
		}
	}
	return false
}
