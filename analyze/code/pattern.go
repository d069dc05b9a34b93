package code

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"

	"symbolize/analyze/annotate"
	"symbolize/analyze/report"
	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/format/bpf"
)

// Pattern selects functions: by name, glob or regular expression, by the ID of a BPF program or
// by a tag.
type Pattern struct {
	text string
	id   uint32         // of id:N or N, with isID
	tag  string         // of tag:HEX or HEX
	re   *regexp.Regexp // nil if text is none
	isID bool
	glob bool // text is one
}

// Prefixes of patterns that only match BPF programs. Without them a number and
// the digits of a tag may be a function's name as well.
const (
	idPattern  = "id:"
	tagPattern = "tag:"
)

// ParsePattern parses a Pattern. A text that is both a glob and a regular expression matches as
// either.
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
	_, globErr := path.Match(text, "")
	p.glob = globErr == nil
	if p.re, err = regexp.Compile("^(?:" + text + ")$"); err != nil && !p.glob {
		return p, fmt.Errorf("pattern %q is neither a glob nor a regular expression: %v", text, err)
	}
	return p, nil
}

// tagDigits returns a tag in its printed form, "" if text is not a tag.
func tagDigits(text string) string {
	if raw, err := hex.DecodeString(text); err != nil || len(raw) != len(bpf.Tag{}) {
		return ""
	}
	return strings.ToLower(text)
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

// Idle describes a function of the captures' programs that a pattern selects and that has no
// samples: the one that was loaded first, "" for none.
func (c *Finder) Idle(patterns []Pattern) string {
	var first *bpfLoad
	for _, loads := range c.loads {
		for i := range loads {
			l := &loads[i]
			if first != nil && cmp.Or(cmp.Compare(first.program.ID, l.program.ID),
				cmp.Compare(first.fn, l.fn), cmp.Compare(first.origin, l.origin)) <= 0 {
				continue
			}
			for k := range patterns {
				p := &patterns[k]
				if p.program(l.program, l.fn) || p.Name(l.program.Symbol(l.fn)) ||
					p.Name(l.program.Funcs[l.fn].Name) {
					first = l
					break
				}
			}
		}
	}
	if first == nil {
		return ""
	}
	return fmt.Sprintf("%s of BPF program %d%s has no samples", first.program.Symbol(first.fn),
		first.program.ID, first.origin)
}

// Matcher returns a filter of the functions that any of the patterns selects, and remembers
// the requested programs.
func (c *Finder) Matcher(p *ingest.Profile, patterns []Pattern,
	d *report.Demangler) func(*annotate.HotFunction) bool {
	for i := range patterns {
		if patterns[i].isID {
			c.asked[patterns[i].id] = true
		}
	}
	matched := make(map[buildid.Key]bool) // functions of programs
	for key, loads := range c.loads {
		for i := range patterns {
			for _, l := range loads {
				matched[key] = matched[key] || patterns[i].program(l.program, l.fn)
			}
		}
	}
	return func(f *annotate.HotFunction) bool {
		o := &p.Objects[f.Object]
		if o.Kind == ingest.JIT && matched[o.ID.Key()] {
			return true
		}
		tag, short, isBPF := bpf.SplitSymbol(f.SystemName)
		for i := range patterns {
			pt := &patterns[i]
			if pt.Name(f.SystemName) || pt.Name(d.Name(f.SystemName)) ||
				isBPF && (pt.Name(short) || pt.tag == tag.String()) {
				return true
			}
		}
		return false
	}
}
