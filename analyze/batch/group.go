package batch

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"symbolize/ingest"
	"symbolize/ingest/files"
	"symbolize/ingest/texts"
)

// The keys that captures have values of themselves.
const (
	KeyHost = "host" // of the recording
	KeyDay  = "day"  // of its first sample, UTC: 2026-11-22
	KeyMain = "main" // build ID of the main program
)

// KeyComm is the key of thread names, a key of samples: these are
// also the labels pid, tid, cpu and tags.
const KeyComm = "comm"

// unknownValue is the value, in the name of a group, of a key that a capture lacks.
const unknownValue = "unknown"

// Grouping selects the captures that become one profile: captures with equal values of all keys. By
// keys of samples they become one profile for each value.
type Grouping struct {
	Keys []string
	// Pattern reads values from the end of a capture's path: "{service}/{host}/{day}.data"; ""
	// reads none.
	Pattern string
	// Manifest has values by path, which override values of the pattern: see ReadManifest.
	Manifest map[string]map[string]string

	match   *regexp.Regexp
	samples []bool // by key: samples have its values
}

// Group is one profile to be made, or one for each value of the keys of samples.
type Group struct {
	Values    []string // of the keys, "" for keys of samples
	Collected []member // captures, sorted by path

	keys        []string           // of samples, "" for keys of captures
	captureKeys []string           // the others, "" for keys of samples
	parts       int                // that the locations were cut into
	state       string             // a digest of the captures' contents
	named       bool               // one came with names of its own
	warnings    [][]ingest.Warning // of the captures
}

// Packs returns the files that have the group's captures, sorted.
func (g *Group) Packs() []string {
	packs := make(map[string]bool)
	for _, m := range g.Collected {
		packs[m.pack] = true
	}
	return slices.Sorted(maps.Keys(packs))
}

// Accesses reports whether labels of the group's samples are of what they access: then Write needs
// Output.Session.
func (g *Group) Accesses() bool {
	return slices.ContainsFunc(g.Collected, func(m member) bool { return m.keep.Places() })
}

// warn passes on what was wrong with the group's captures.
func (g *Group) warn(h *Hooks) {
	for i := range g.Collected {
		h.warnCapture(g.Collected[i].capture, g.warnings[i])
	}
}

// ErrGrouping is wrapped by errors of keys, patterns and manifests.
var ErrGrouping = errors.New("captures cannot be grouped so")

var placeholder = regexp.MustCompile(`\{[a-z][a-z0-9_-]*\}`)

// compile checks the pattern and that each key has a source.
func (g *Grouping) compile() error {
	known := []string{KeyHost, KeyDay, KeyMain}
	for _, row := range g.Manifest {
		known = slices.AppendSeq(known, maps.Keys(row)) // each row has all
		break
	}
	if g.Pattern != "" {
		expr, keys := patternExpr(g.Pattern)
		known = append(known, keys...)
		slices.Sort(keys)
		if len(keys) == 0 || len(slices.Compact(keys)) < len(keys) {
			return fmt.Errorf("pattern %q: it has no key in braces, or one twice: %w", g.Pattern,
				ErrGrouping)
		}
		var err error
		if g.match, err = regexp.Compile(expr); err != nil {
			return fmt.Errorf("pattern %q: %w", g.Pattern, ErrGrouping)
		}
	}
	g.samples = make([]bool, len(g.Keys))
	for i, key := range g.Keys {
		if slices.Contains(known, key) {
			continue
		}
		if g.samples[i] = ofSamples(key); !g.samples[i] {
			slices.Sort(known)
			return fmt.Errorf("no capture has the key %q; known are %s, and of samples %s, pid, tid, cpu, "+
				"%s: %w", key, strings.Join(slices.Compact(known), ", "), KeyComm, ingest.TagWords(),
				ErrGrouping)
		}
	}
	return nil
}

// patternExpr returns the regular expression of a pattern, and the keys in it.
func patternExpr(pattern string) (expr string, keys []string) {
	expr = "(?:^|/)"
	at := 0
	for _, m := range placeholder.FindAllStringIndex(pattern, -1) {
		key := pattern[m[0]+1 : m[1]-1]
		keys = append(keys, key)
		expr += regexp.QuoteMeta(pattern[at:m[0]]) + "(?P<" + groupName(key) + ">[^/]+?)"
		at = m[1]
	}
	return expr + regexp.QuoteMeta(pattern[at:]) + "$", keys
}

// groupName returns the name of a key in a regular expression, where a dash cannot be.
func groupName(key string) string { return strings.ReplaceAll(key, "-", "_") }

// values returns the values of a capture, and the keys without a value.
func (g *Grouping) values(h *Head) (values, missing []string) {
	var found []string
	if g.match != nil {
		found = g.match.FindStringSubmatch(filepath.ToSlash(h.Path))
	}
	for n, key := range g.Keys {
		if g.samples[n] {
			values = append(values, "")
			continue
		}
		v := g.Manifest[h.Path][key]
		if i := -1; v == "" && found != nil {
			if i = g.match.SubexpIndex(groupName(key)); i >= 0 {
				v = found[i]
			}
		}
		if v == "" {
			v = h.value(key)
		}
		if v == "" {
			v = unknownValue
			missing = append(missing, key)
		}
		values = append(values, v)
	}
	return values, missing
}

// mayHave reports whether a group may have a capture that is known by its path alone: no key has a value
// by path that differs from the group's.
func (g *Grouping) mayHave(gr *Group, path string) bool {
	values, _ := g.values(&Head{Path: path})
	for i, v := range values {
		if v != unknownValue && v != gr.Values[i] {
			return false
		}
	}
	return true
}

// value returns a capture's own value of a key.
func (h *Head) value(key string) string {
	switch key {
	case KeyHost:
		return h.Meta.Host
	case KeyDay:
		if h.Meta.StartNanos != 0 {
			return time.Unix(0, h.Meta.StartNanos).UTC().Format(time.DateOnly)
		}
	case KeyMain:
		return h.Main
	}
	return ""
}

// Grouped are the groups of collected captures.
type Grouped struct {
	Groups []*Group // in the order of their values
	// Lacking are the captures without a value of some key, with the keys.
	Lacking []string
	// Equal are pairs of captures of a group with equal content, which counts once: both paths.
	Equal [][2]string
}

// grouped is a capture with the values of its group.
type grouped struct {
	member
	values, missing       []string
	key, content, reading string // of Head
	state                 string // see Head.state
	named                 bool
	warnings              []ingest.Warning
}

// Groups reads the heads of packs of collected captures and sorts the captures into groups.
func (g *Grouping) Groups(packs []string) (*Grouped, error) {
	list, parts, err := g.heads(packs)
	if err != nil {
		return nil, err
	}
	out := &Grouped{}
	index := make(map[string]*Group)
	first := make(map[string]*grouped) // by group and content
	for i := range list {
		c := &list[i]
		key := strings.Join(c.values, "\x00")
		gr := index[key]
		if gr == nil {
			gr = &Group{Values: c.values, keys: g.keysOf(true), captureKeys: g.keysOf(false), parts: parts}
			index[key] = gr
			out.Groups = append(out.Groups, gr)
		}
		if i > 0 && c.key == list[i-1].key && c.state != list[i-1].state {
			return nil, c.twice(&list[i-1], "run `symbolize batch collect` to its end")
		}
		id := key + "\x00" + c.content
		if same := first[id]; same != nil {
			if same.reading != c.reading {
				return nil, c.twice(same, "remove the older one: the options were others then")
			}
			if same.capture != c.capture {
				out.Equal = append(out.Equal, [2]string{c.capture, same.capture})
			}
			continue
		}
		first[id] = c
		if len(c.missing) > 0 {
			out.Lacking = append(out.Lacking, c.capture+": "+strings.Join(c.missing, ", "))
		}
		gr.Collected = append(gr.Collected, c.member)
		gr.named = gr.named || c.named
		gr.warnings = append(gr.warnings, c.warnings)
		gr.state = digest(gr.state + c.key + c.state)
	}
	slices.SortFunc(out.Groups, func(a, b *Group) int { return slices.Compare(a.Values, b.Values) })
	return out, nil
}

// twice refuses two captures of which nothing decides which one counts.
func (c *grouped) twice(same *grouped, hint string) error {
	return texts.WithHint(fmt.Errorf("%s was collected twice, as %s and %s", c.capture, same.pack,
		c.pack), "%s", hint)
}

// heads reads the heads of packs, which have to agree on the number of parts, and to have the
// labels that are keys, and returns the captures in the order of their paths.
func (g *Grouping) heads(packs []string) (list []grouped, parts int, err error) {
	if err := g.compile(); err != nil {
		return nil, 0, err
	}
	if _, parts, err = inputsOf(packs); err != nil {
		return nil, 0, err
	}
	for _, path := range packs {
		heads, err := ReadHeads(path)
		if err != nil {
			return nil, 0, err
		}
		for i := range heads {
			h := &heads[i]
			if err := g.kept(h); err != nil {
				return nil, 0, err
			}
			c := grouped{member: member{h.Path, path, i, h.state(), h.Keep}, key: h.Key, content: h.Content, reading: h.Reading,
				named: h.Named, warnings: h.Warnings}
			c.values, c.missing = g.values(h)
			list = append(list, c)
		}
	}
	slices.SortFunc(list, func(a, b grouped) int {
		return cmp.Or(strings.Compare(a.capture, b.capture), strings.Compare(a.key, b.key),
			strings.Compare(a.content, b.content), strings.Compare(a.pack, b.pack))
	})
	return list, parts, nil
}

// name returns the path of a profile below the output, without an extension: a directory for each
// value but the last, which names the file.
func name(values []string) string {
	if len(values) == 0 {
		return "all"
	}
	path := make([]string, len(values))
	for i, v := range values {
		path[i] = safeName(v)
	}
	return filepath.Join(path...)
}

// maxName bounds the bytes of an element of a path, without additions: extensions, and
// the words of a hidden file. File systems allow 255.
const maxName = 200

// safeName makes an element of a path of a value.
func safeName(v string) string {
	name, _ := files.SafeName(v, maxName)
	return name
}

// tooLong reports whether the name of a value is shortened.
func tooLong(v string) bool {
	_, cut := files.SafeName(v, maxName)
	return cut
}

// ReadManifest reads values by path: lines of fields with tabs between them, of which the first
// line names the keys, the first one being "path".
func ReadManifest(path string) (map[string]map[string]string, error) {
	f, err := files.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readManifest(f, path)
}

func readManifest(f *os.File, path string) (map[string]map[string]string, error) {
	in := bufio.NewScanner(f)
	var keys []string
	rows := make(map[string]map[string]string)
	for line := 1; in.Scan(); line++ {
		fields := strings.Split(strings.TrimSuffix(in.Text(), "\r"), "\t")
		switch {
		case line == 1 && fields[0] != "path":
			return nil, fmt.Errorf("%s:1: the first column is %q, not \"path\": %w", path, fields[0],
				ErrGrouping)
		case line == 1:
			keys = fields[1:]
		case len(fields) == 1 && fields[0] == "":
		case len(fields) != len(keys)+1:
			return nil, fmt.Errorf("%s:%d: %d fields, not %d: %w", path, line, len(fields), len(keys)+1,
				ErrGrouping)
		default:
			row := make(map[string]string, len(keys))
			for i, key := range keys {
				row[key] = fields[i+1]
			}
			rows[fields[0]] = row
		}
	}
	return rows, in.Err()
}
