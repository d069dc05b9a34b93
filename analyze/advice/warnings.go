package advice

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"symbolize/analyze/table"
	"symbolize/ingest"
	"symbolize/ingest/texts"
)

// shallowShare is the share of samples without a stack, in percent, from which totals by caller
// are misleading.
const shallowShare = 30

// unnamedRows is how many of the heaviest functions may not contain a file's unnamed code, for a
// table to be without a warning.
const unnamedRows = 10

// adviceShare is the share of the samples, in percent, that a warning concerns at least: of less,
// `symbolize missing` alone tells.
const adviceShare = 0.5

// finding is a warning with its share of the samples, in percent.
type finding struct {
	ingest.Warning
	share float64
}

// Warnings returns warnings for readers of a table of functions of a profile, those first that concern
// most samples: that many samples have no stack, that code without a name is among the heaviest
// functions, that callers did not call, and that some names are made of addresses.
//
// elsewhere says that another host recorded it, which has files that this one lacks.
func Warnings(p *ingest.Profile, elsewhere bool) (list []ingest.Warning) {
	var found []finding
	named := func(p *ingest.Profile) *finding { return unnamed(p, elsewhere) }
	for _, find := range []func(*ingest.Profile) *finding{shallow, named, uncalled, made} {
		if a := find(p); a != nil {
			found = append(found, *a)
		}
	}
	slices.SortStableFunc(found, func(a, b finding) int { return cmp.Compare(b.share, a.share) })
	for i := range found {
		list = append(list, found[i].Warning)
	}
	return list
}

// made is the warning about functions that are named by their addresses.
func made(p *ingest.Profile) *finding {
	if p.Names == nil {
		return nil
	}
	functions := make(map[ingest.FuncID]bool)
	is := make([]bool, len(p.Locations))
	for l := range p.Locations {
		if p.Names.Made(ingest.LocationID(l), ingest.MadePrefix) {
			frames := p.Names.At(ingest.LocationID(l))
			functions[frames[len(frames)-1].Func] = true
			is[l] = true
		}
	}
	if len(functions) == 0 {
		return nil
	}
	has := make([]bool, len(p.Callers)) // stacks with such a frame
	for s := 1; s < len(has); s++ {
		has[s] = has[p.Callers[s]] || is[p.Leaves[s]]
	}
	var with, all uint64
	for i := range p.Samples {
		s := &p.Samples[i]
		all += s.Count
		if has[s.Stack] {
			with += s.Count
		}
	}
	part := percent(float64(with), float64(all))
	if part < adviceShare {
		return nil
	}
	return &finding{share: part, Warning: ingest.Warning{
		Text: table.Count(len(functions), "function of a file without symbols is named by the address "+
			"of its start", "functions of files without symbols are named by the addresses of their "+
			"starts") + ", as fun_1234: unwind tables alone show them",
		Hint: "`symbolize missing" + args(p) + "` lists the files, and where to get their symbols"}}
}

// unnamed is the warning about files among the heaviest functions: their code without a name is
// one row of a table.
func unnamed(p *ingest.Profile, elsewhere bool) *finding {
	type row struct {
		object   ingest.ObjectID
		function ingest.FuncID
		file     bool // all unnamed code of the object
	}
	innermost, all := p.WeighInnermost(false)
	sums := make(map[row]float64)
	for l, w := range innermost {
		r := row{object: p.Locations[l].Object, file: true}
		if p.Names != nil {
			if frames := p.Names.At(ingest.LocationID(l)); len(frames) > 0 {
				r = row{function: frames[0].Func}
			}
		}
		if w.Frames > 0 {
			sums[r] += w.Weight
		}
	}
	heaviest := slices.SortedFunc(maps.Keys(sums), func(a, b row) int {
		return cmp.Or(cmp.Compare(sums[b], sums[a]), cmp.Compare(a.object, b.object),
			cmp.Compare(a.function, b.function))
	})
	var files []string
	for _, r := range heaviest[:min(len(heaviest), unnamedRows)] {
		if r.file && 100*sums[r] >= adviceShare*all.Weight {
			files = append(files, "["+ingest.ShortName(&p.Objects[r.object])+"]")
		}
	}
	if len(files) == 0 {
		return nil
	}
	hint := "`symbolize missing" + args(p) + "` lists the reasons, and what gets the names"
	if elsewhere && lacksFiles(p) {
		hint = FromHost(p)
	}
	named, _ := p.NamedFrames(innermost)
	part := 100 - share(named, all)
	return &finding{share: part, Warning: ingest.Warning{
		Text: fmt.Sprintf("%s of the samples end in code without a name; among the ten heaviest "+
			"functions: %s", share100(part), strings.Join(files, ", ")),
		Hint: hint}}
}

// lacksFiles reports whether the file of code is in no store, and not on this host.
func lacksFiles(p *ingest.Profile) bool {
	for l := range p.Locations {
		if p.Names != nil && p.Names.Reasons[l] == ingest.NotIndexed && len(p.Names.At(ingest.LocationID(l))) == 0 {
			return true
		}
	}
	return false
}

// FromHost is the hint that gets the symbols of a recording from the host that recorded, "" if it
// lacks no files.
func FromHost(p *ingest.Profile) string {
	if !lacksFiles(p) {
		return ""
	}
	var captures strings.Builder
	for _, c := range p.Meta.Captures {
		captures.WriteString(" --for " + texts.ShellWord(c))
	}
	return "on " + texts.Printable(p.Meta.Host) + ": `symbolize store export" + captures.String() +
		" -o symbols.zst`, here: `symbolize store import symbols.zst`"
}

// shallow is the warning about samples that have no stack: one location, or none that was
// unwound. It names the events that it is about, if others have stacks.
func shallow(p *ingest.Profile) *finding {
	alone, all := make([]uint64, len(p.Events)), make([]uint64, len(p.Events))
	for i := range p.Samples {
		s := &p.Samples[i]
		all[s.Event] += s.Count
		if unwound(p, s.Stack) <= 1 {
			alone[s.Event] += s.Count
		}
	}
	var names []string
	var without, total uint64
	others := false
	for e := range all {
		if all[e] > 0 && 100*float64(alone[e]) >= shallowShare*float64(all[e]) {
			names = append(names, texts.Printable(p.Events[e].Name))
			without, total = without+alone[e], total+all[e]
		} else if all[e] > 0 {
			others = true
		}
	}
	if total == 0 {
		return nil
	}
	which := ""
	if others {
		which = " of " + strings.Join(names, ", ")
	}
	w := &finding{share: percent(float64(without), float64(total))}
	w.Text = fmt.Sprintf("%s of the samples%s have no stack: who called is not known, and cum is flat "+
		"for them", share100(w.share), which)
	w.Hint = "perf record -g"
	c := p.Meta.Command + " "
	if strings.Contains(c, " -g ") || strings.Contains(c, "--call-graph") {
		w.Hint = "perf record --call-graph dwarf, for code that keeps no frame pointers"
	}
	return w
}

// unwound counts the locations of a stack that are places in code.
func unwound(p *ingest.Profile, s ingest.StackID) (n int) {
	for l := range p.Frames(s) {
		if p.Objects[p.Locations[l].Object].Kind != ingest.NoStack {
			n++
		}
	}
	return n
}

// args are the captures of a profile as arguments of a command.
func args(p *ingest.Profile) string {
	var b strings.Builder
	for _, c := range p.Meta.Captures {
		b.WriteString(" " + texts.ShellWord(c))
	}
	return b.String()
}
