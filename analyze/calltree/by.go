package calltree

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"symbolize/ingest"
)

// By is a granularity: the attribute of frames or samples that makes a node. Those that are none
// of the constants are words of tags (ingest.ParseTag); the zero By is Function.
type By string

// The granularities, first of frames, then of samples.
const (
	Function By = ""
	File     By = "file"
	Line     By = "line"
	Object   By = "object"
	BuildID  By = "buildid"
	Comm     By = "comm"
	PID      By = "pid"
	TID      By = "tid"
	CPU      By = "cpu"
	Event    By = "event"
	Label    By = "label" // all labels that samples carry: comm, pid, tid, cpu and tags
)

const functionWord = "function"

// byWords has the words of the granularities, in their order, without tags.
var byWords = []string{functionWord, string(File), string(Line), string(Object),
	string(BuildID), string(Comm), string(PID), string(TID), string(CPU), string(Event),
	string(Label)}

// Words returns the words of ParseBy, without tags.
func Words() []string { return slices.Clone(byWords) }

// String returns the word of a granularity.
func (b By) String() string { return cmp.Or(string(b), functionWord) }

// OfSample reports whether a granularity is an attribute of samples and not of frames.
func (b By) OfSample() bool {
	switch b {
	case Function, File, Line, Object, BuildID:
		return false
	}
	return true
}

// OfTag reports whether a granularity is a tag of samples.
func (b By) OfTag() bool { return !slices.Contains(byWords, b.String()) }

// ParseBy parses a comma-separated list of granularities: any number of attributes of samples,
// which become the outermost frames in this order, and at most one attribute of frames.
func ParseBy(s string) ([]By, error) {
	var list []By
	ofFrames := 0
	for word := range strings.SplitSeq(s, ",") {
		b := By(ingest.CanonicalLabel(strings.TrimSpace(word)))
		if b == functionWord {
			b = Function
		} else if b == "" {
			return nil, fmt.Errorf("%q has an empty word", s)
		}
		if b.OfTag() && ingest.ParseTag(string(b)) != nil {
			return nil, fmt.Errorf("%q is not one of %s, %s", word, strings.Join(byWords, ", "),
				ingest.TagWords())
		}
		if !b.OfSample() {
			ofFrames++
		}
		if slices.Contains(list, b) || ofFrames > 1 {
			return nil, fmt.Errorf("%q: one of function, file, line, object, buildid, and each "+
				"of the others once", s)
		}
		list = append(list, b)
	}
	return list, nil
}

// commShare is the share of an event from which a comm counts as a process of its own: less are
// helpers, such as the shell that started the program.
const commShare = 0.01

// TreeBy returns the granularities of a tree of profiles, by the event of a number in the first one:
// by function, of several programs as outermost frames, as folded stacks have them. Functions of one
// name of several programs have nothing in common.
func TreeBy(event int, profiles ...*ingest.Profile) []By {
	for _, p := range profiles {
		at := slices.IndexFunc(p.Events, func(e ingest.Event) bool {
			return event < len(profiles[0].Events) && e.Name == profiles[0].Events[event].Name
		})
		if OfPrograms(p, at) {
			return []By{Comm, Function}
		}
	}
	return []By{Function}
}

// OfPrograms reports whether a profile is of several programs: more than one comm has at least 1 % of
// the weight of an event, or of a recording of a whole machine, any weight.
func OfPrograms(p *ingest.Profile, event int) bool {
	weights, total := make(map[ingest.StringID]uint64), uint64(0)
	for i := range p.Samples {
		if s := &p.Samples[i]; int(s.Event) == event {
			v := cmp.Or(s.Weight, s.Count)
			weights[s.Comm] += v
			total += v
		}
	}
	several := 0
	for _, v := range weights {
		if p.Meta.AllCPUs() || float64(v) >= commShare*float64(total) {
			several++
		}
	}
	return several > 1
}
