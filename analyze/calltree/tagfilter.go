package calltree

import (
	"fmt"
	"math/bits"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"symbolize/ingest"
)

// TagFilter selects samples by their labels, as pprof's -tagfocus and -tagignore do.
type TagFilter struct {
	// Key is the label that counts, "" for all.
	Key string

	text    string // as it was parsed
	value   string // of text, without the key
	regexps []*regexp.Regexp
	numbers *numberRange // nil if value is no range
}

// maxTagRegexps bounds the expressions of a filter: bits of a word.
const maxTagRegexps = 64

// ParseTagFilter parses "VALUE" or "KEY=VALUE". A VALUE of digits with an optional unit is a
// number, "4kb:", ":4kb" and "1kb:4kb" are ranges of numbers; any other is a list of regular
// expressions with commas between them. With a key one of them has to match a value of that
// label, without one each has to match a text "KEY:VALUE" of any label.
//
// There are two differences to pprof. A number or range without a unit is compared with labels of
// any unit, and a number also matches a label with that text, as "netns=4026531840" does.
func ParseTagFilter(text string) (*TagFilter, error) {
	f := &TagFilter{text: text, value: text}
	if key, value, ok := strings.Cut(text, "="); ok {
		f.Key, f.value = key, value
	}
	if f.numbers = parseNumberRange(f.value); f.numbers != nil {
		return f, nil
	}
	for word := range strings.SplitSeq(f.value, ",") {
		re, err := regexp.Compile(word)
		if err != nil {
			return nil, err
		}
		f.regexps = append(f.regexps, re)
	}
	if len(f.regexps) > maxTagRegexps {
		return nil, fmt.Errorf("more than %d expressions", maxTagRegexps)
	}
	return f, nil
}

// match returns the expressions that match a label, as bits; a range is bit 0.
func (f *TagFilter) match(t ingest.Tag) (matched uint64) {
	switch {
	case f.Key != "" && f.Key != t.Key:
	case f.numbers != nil:
		if t.Numeric && f.numbers.has(t.Number, t.Unit) || !t.Numeric && t.Text == f.value {
			return 1
		}
	case t.Numeric:
	default:
		text := t.Text
		if f.Key == "" {
			text = t.Key + ":" + text
		}
		for i, re := range f.regexps {
			if re.MatchString(text) {
				matched |= 1 << i
			}
		}
	}
	return matched
}

// enough reports whether a sample with labels that match these expressions matches.
func (f *TagFilter) enough(matched uint64) bool {
	if f.Key != "" || f.numbers != nil {
		return matched != 0
	}
	return bits.OnesCount64(matched) == len(f.regexps)
}

// tagMatcher applies a filter to the samples of a profile, with the results for comms and tags by
// their strings.
type tagMatcher struct {
	name   string // of the filter, for messages
	filter *TagFilter
	drops  bool // samples that match
	comms  map[ingest.StringID]uint64
	tags   map[ingest.StringID]uint64
	any    bool // a sample matched
}

// tagMatchers returns the filters by labels that are set.
func (f *Filter) tagMatchers() (list []*tagMatcher) {
	for _, m := range []*tagMatcher{{name: "tag-focus", filter: f.TagFocus},
		{name: "tag-ignore", filter: f.TagIgnore, drops: true}} {
		if m.filter != nil {
			m.comms, m.tags = make(map[ingest.StringID]uint64), make(map[ingest.StringID]uint64)
			list = append(list, m)
		}
	}
	return list
}

// filterTags sets the filters by labels up, with which of them match any sample.
func (f *Folder) filterTags() {
	f.tags = f.opts.Filter.tagMatchers()
	for i := range f.Profile.Samples {
		for _, m := range f.tags {
			m.matches(f.Profile, &f.Profile.Samples[i])
		}
	}
}

// keeps reports whether the filters by labels keep a sample.
func (f *Folder) keeps(s *ingest.Sample) bool {
	for _, m := range f.tags {
		if m.matches(f.Profile, s) == m.drops {
			return false
		}
	}
	return true
}

// matches reports whether a sample matches.
func (m *tagMatcher) matches(p *ingest.Profile, s *ingest.Sample) bool {
	matched, ok := m.comms[s.Comm]
	if !ok {
		if s.Comm != 0 {
			matched = m.filter.match(ingest.Tag{Key: "comm", Text: p.Strings[s.Comm]})
		}
		m.comms[s.Comm] = matched
	}
	ofTags, ok := m.tags[s.Tags]
	if !ok {
		for t := range p.AllTags(s) {
			ofTags |= m.filter.match(t)
		}
		m.tags[s.Tags] = ofTags
	}
	matched |= ofTags
	if m.filter.numbers != nil {
		for name, n := range sampleNumbers(s) {
			matched |= m.filter.match(ingest.Tag{Key: name, Numeric: true, Number: int64(n)})
		}
	}
	ok = m.filter.enough(matched)
	m.any = m.any || ok
	return ok
}

// numberRange holds numbers from one to another, in a unit.
type numberRange struct {
	from, to       float64 // in bytes or nanoseconds, if the unit is one of those
	unit           string  // "" for any
	hasFrom, hasTo bool
}

var numberWithUnit = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([+-]?[0-9]+)([[:alpha:]]*)$`)
})

// parseNumberRange parses "N", "N:", ":N" and "N:M" with units; it returns nil for other texts.
func parseNumberRange(text string) *numberRange {
	first, second, isRange := strings.Cut(text, ":")
	r := &numberRange{}
	var ok bool
	if first != "" {
		if r.from, r.unit, ok = parseNumber(first); !ok {
			return nil
		}
		r.hasFrom = true
	}
	switch {
	case !isRange:
		r.to, r.hasTo = r.from, r.hasFrom
	case second != "":
		to, unit, ok := parseNumber(second)
		_, dimension := unitFactor(unit)
		if _, of := unitFactor(r.unit); !ok || r.hasFrom && dimension != of {
			return nil
		}
		if r.to, r.hasTo = to, true; !r.hasFrom {
			r.unit = unit
		}
	}
	if !r.hasFrom && !r.hasTo {
		return nil
	}
	return r
}

func parseNumber(text string) (n float64, unit string, ok bool) {
	m := numberWithUnit().FindStringSubmatch(text)
	if m == nil {
		return 0, "", false
	}
	v, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil {
		return 0, "", false
	}
	factor, _ := unitFactor(m[2])
	return float64(v) * factor, m[2], true
}

// has reports whether the range has a number in a unit. As in pprof, a number in a unit that is
// not known is one in the unit of the range.
func (r *numberRange) has(number int64, unit string) bool {
	v := float64(number)
	if r.unit != "" {
		ours, want := unitFactor(r.unit)
		factor, dimension := unitFactor(unit)
		if dimension == "" {
			factor, dimension = ours, want
		}
		if dimension != want {
			return false
		}
		v *= factor
	}
	return (!r.hasFrom || v >= r.from) && (!r.hasTo || v <= r.to)
}

// unitFactor returns the size of a unit of memory in bytes or of time in nanoseconds, and which
// of the two it is, with pprof's names.
func unitFactor(unit string) (factor float64, dimension string) {
	unit = strings.ToLower(unit)
	if len(unit) > 2 {
		unit = strings.TrimSuffix(unit, "s")
	}
	for i, names := range [...][2]string{{"b", "byte"}, {"kb", "kilobyte"}, {"mb", "megabyte"},
		{"gb", "gigabyte"}, {"tb", "terabyte"}, {"pb", "petabyte"}} {
		if unit == names[0] || unit == names[1] || i > 0 && unit == names[0]+"yte" {
			return float64(uint64(1) << (10 * i)), "bytes"
		}
	}
	switch unit {
	case "ns", "nanosecond":
		return 1, "time"
	case "us", "μs", "microsecond":
		return 1e3, "time"
	case "ms", "millisecond":
		return 1e6, "time"
	case "s", "sec", "second":
		return 1e9, "time"
	case "hour", "hr":
		return 3600e9, "time"
	}
	return 1, ""
}
