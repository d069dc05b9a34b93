package diff

import (
	"fmt"
	"regexp"
	"strings"
	"sync"

	"symbolize/analyze/calltree"
	"symbolize/analyze/demangle"
	"symbolize/ingest"
	"symbolize/ingest/object/bpf"
	"symbolize/ingest/texts"
)

// matcher gives nodes of different profiles one key where they are the same thing.
type matcher struct {
	full  *demangle.Demangler
	mains []string // by profile: path of the main program, where it was renamed
	// stems that several objects of one profile have: their full names distinguish them
	shared map[string]bool
}

func newMatcher(profiles []*ingest.Profile) *matcher {
	m := &matcher{full: demangle.New(demangle.Full), shared: make(map[string]bool)}
	for _, p := range profiles {
		m.full.Warm(p)
		bases := make(map[string]string)
		for i := range p.Objects {
			base := ingest.BaseName(texts.Printable(p.Objects[i].File.Path))
			s := stem(base)
			if first, ok := bases[s]; ok && first != base {
				m.shared[s] = true
			}
			bases[s] = base
		}
	}
	m.findMains(profiles)
	return m
}

// findMains notes the main programs if they are one that was renamed: all others are matched by
// their names. Of profiles of a whole host the main program is whichever was busiest: one that
// another profile has, too, has no other name there.
func (m *matcher) findMains(profiles []*ingest.Profile) {
	stems := make(map[string]bool)
	m.mains = make([]string, len(profiles))
	for i, p := range profiles {
		m.mains[i] = texts.Printable(p.Meta.MainProgram)
		stems[stem(ingest.BaseName(m.mains[i]))] = true
	}
	for i, p := range profiles {
		own := stem(ingest.BaseName(m.mains[i]))
		for k := range p.Objects {
			s := stem(ingest.BaseName(texts.Printable(p.Objects[k].File.Path)))
			if s != own && stems[s] {
				m.mains = make([]string, len(profiles))
				return
			}
		}
	}
}

// versions are patterns of the parts of names that depend on a version.
type versions struct{ library, other *regexp.Regexp }

var versionParts = sync.OnceValue(func() *versions {
	return &versions{
		library: regexp.MustCompile(`\.so(\.[0-9.]+)?$`),
		other:   regexp.MustCompile(`([-_.]v?[0-9]+|[0-9]+\.[0-9]+)([-_.][0-9]+)*$`),
	}
})

// stem is the name of an object without its version: "libc" of "libc-2.31.so" and "libc.so.6".
func stem(base string) string {
	v := versionParts()
	s := v.library.ReplaceAllString(base, "")
	if short := v.other.ReplaceAllString(s, ""); short != "" {
		return short
	}
	return s
}

// object is the key of a node's object.
func (m *matcher) object(profile int, n *calltree.Node) string {
	if n.Object != "" && n.Object == m.mains[profile] {
		return "main program"
	}
	base := ingest.BaseName(n.Object)
	if s := stem(base); !m.shared[s] {
		return s
	}
	return base
}

// key identifies a node across profiles and builds. In results by line, unresolved frames of
// an object are one, since their offsets move.
func (m *matcher) key(profile int, n *calltree.Node) string {
	parts := []string{n.By.String()}
	switch {
	case n.By.OfSample():
		return n.By.String() + "\x00" + n.Name
	case n.By == calltree.BuildID:
		return n.By.String() + "\x00" + n.Name
	case n.Unresolved:
		n.Name = unresolvedName(n.Name)
		return "unresolved\x00" + m.object(profile, n)
	}
	if _, name, ok := bpf.SplitSymbol(n.SystemName); ok {
		parts = append(parts, "bpf", name)
	} else {
		parts = append(parts, m.object(profile, n), m.full.Name(n.SystemName))
	}
	switch n.By {
	case calltree.Line:
		if n.StartLine > 0 && n.Line > 0 {
			parts = append(parts, fmt.Sprintf("+%d", n.Line-n.StartLine))
		} else {
			parts = append(parts, ingest.BaseName(n.File), fmt.Sprint(n.Line))
		}
	case calltree.File:
		parts = append(parts, fileTail(n.File))
	}
	return strings.Join(parts, "\x00")
}

// unresolvedName is the name of all unresolved frames of an object: "[libc.so.6]".
func unresolvedName(name string) string {
	if at := strings.LastIndex(name, "+0x"); at > 0 && strings.HasSuffix(name, "]") {
		return name[:at] + "]"
	}
	return name
}

// fileTail is a source file with its directory; the directories above depend on the build.
func fileTail(file string) string {
	parts := strings.Split(file, "/")
	return strings.Join(parts[max(0, len(parts)-2):], "/")
}
