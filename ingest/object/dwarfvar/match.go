package dwarfvar

import (
	"slices"
	"strings"
)

// nameSet is a set of names and patterns, as Options.Names.
type nameSet struct {
	exact    map[string]bool
	patterns []string
}

func newNameSet(names []string) (s nameSet) {
	for _, n := range names {
		if IsPattern(n) {
			s.patterns = append(s.patterns, n)
			continue
		}
		if s.exact == nil {
			s.exact = make(map[string]bool)
		}
		s.exact[n] = true
	}
	return s
}

func (s *nameSet) empty() bool { return s.exact == nil && s.patterns == nil }

// has reports whether something with a qualified and a linkage name is in the set.
func (s *nameSet) has(qualified, linkage string) bool {
	for _, n := range Names(qualified, linkage) {
		if s.exact[n] || slices.ContainsFunc(s.patterns, func(p string) bool { return matches(p, n) }) {
			return true
		}
	}
	return false
}

// IsPattern reports whether a name has "*" or "?", which match any text and any character.
func IsPattern(name string) bool { return strings.ContainsAny(name, "*?") }

// Called reports whether something with a qualified and a linkage name is called name: one of them, or the last part
// of the qualified one.
func Called(qualified, linkage, name string) bool {
	if !IsPattern(name) {
		return slices.Contains(Names(qualified, linkage), name)
	}
	return slices.ContainsFunc(Names(qualified, linkage), func(n string) bool { return matches(name, n) })
}

// Names returns the names for which Called is true.
func Names(qualified, linkage string) (list []string) {
	for _, n := range []string{qualified, simple(qualified), linkage} {
		if n != "" && !slices.Contains(list, n) {
			list = append(list, n)
		}
	}
	return list
}

// matches reports whether a text matches a pattern.
func matches(pattern, text string) bool {
	at, star, mark := 0, -1, 0
	for i := 0; i < len(text); {
		switch {
		case at < len(pattern) && (pattern[at] == '?' || pattern[at] == text[i] && pattern[at] != '*'):
			at++
			i++
		case at < len(pattern) && pattern[at] == '*':
			star, mark = at, i
			at++
		case star >= 0:
			at, mark = star+1, mark+1
			i = mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[at:], "*") == ""
}
