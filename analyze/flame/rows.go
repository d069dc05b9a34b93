package flame

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"symbolize/analyze/calltree"
	"symbolize/ingest"
)

// maxLabelColumns bounds how many combinations of labels an event has; the lightest share one.
const maxLabelColumns = 200

// Label is an attribute of samples that a page can choose by.
type Label struct {
	Name   string   `json:"name"` // "comm", "pid", "tid" or "cpu"
	Values []string `json:"values"`
}

// column is an event with one value of each label.
type column struct {
	Event  int   `json:"event"`
	Values []int `json:"values"` // indices into Label.Values; -1 for the shared last column
}

// row is a distinct stack of frames of one column.
type row struct {
	from, to uint32 // in rows.frames, outermost first
	column   uint16
	value    uint64
}

// rows holds the stacks of all events.
type rows struct {
	nodes   []calltree.Node
	events  []*calltree.Stacks // by number in the page
	shown   int                // the event that is shown first
	by      []calltree.By      // of the labels
	comms   bool               // the outermost frames are comms
	labels  []Label
	columns []column
	frames  []calltree.NodeID // with the mark of inlined calls
	rows    []row
	folder  *calltree.Folder
	number  []int // of the events in the Profile
}

// labelBy lists the labels that a Profile keeps apart.
func labelBy(p *ingest.Profile, k ingest.Keep) []calltree.By {
	list := []calltree.By{calltree.Comm}
	if k.PID {
		list = append(list, calltree.PID)
	}
	if k.TID {
		list = append(list, calltree.TID)
	}
	if k.CPU {
		list = append(list, calltree.CPU)
	}
	words := k.TagList()
	if hasStates(p) && !slices.Contains(words, ingest.StateTag) && len(words) < ingest.MaxTags {
		words = append(words, ingest.StateTag)
	}
	all := false
	for _, word := range words {
		if word == ingest.AllLabels {
			all = true
			continue
		}
		list = append(list, calltree.By(word))
	}
	if all {
		list = addLabels(p, list)
	}
	return list
}

// hasStates reports whether samples have the states of threads: a page is coloured by them.
func hasStates(p *ingest.Profile) bool {
	return slices.ContainsFunc(p.Events, func(e ingest.Event) bool {
		return e.Name == ingest.WallEvent || e.Name == ingest.OffCPUEvent
	}) && slices.ContainsFunc(p.Samples, func(s ingest.Sample) bool {
		return p.Tag(&s, ingest.StateTag) != ""
	})
}

// addLabels adds the labels that a profile has from pprof files, by key, as long as the columns
// have space for all combinations of their values.
func addLabels(p *ingest.Profile, list []calltree.By) []calltree.By {
	var keys []string
	seen := make(map[ingest.StringID]bool)
	for i := range p.Samples {
		s := &p.Samples[i]
		if seen[s.Tags] {
			continue
		}
		seen[s.Tags] = true
		for t := range p.AllTags(s) {
			keys = append(keys, t.Key)
		}
		slices.Sort(keys)
		keys = slices.Compact(keys)
	}
	columns := make([]int, len(p.Samples))
	for _, by := range list {
		columns, _ = divide(p, columns, by)
	}
	for _, key := range keys {
		by := calltree.By(ingest.LabelTag + key)
		if slices.Contains(list, by) || slices.Contains(list, calltree.By(key)) || len(list) == len(columnKey{}) {
			continue
		}
		if next, count := divide(p, columns, by); count <= maxLabelColumns {
			list, columns = append(list, by), next
		}
	}
	return list
}

// divide numbers the combinations of the columns of samples, by their numbers, and a label.
func divide(p *ingest.Profile, columns []int, by calltree.By) (next []int, count int) {
	type combination struct {
		column, number int
		text           string
	}
	index := make(map[combination]int)
	next = make([]int, len(columns))
	texts := make(map[ingest.StringID]string)
	for i := range p.Samples {
		s := &p.Samples[i]
		c := combination{column: columns[i]}
		switch by {
		case calltree.Comm:
			c.number = int(s.Comm)
		case calltree.PID:
			c.number = int(s.PID)
		case calltree.TID:
			c.number = int(s.TID)
		case calltree.CPU:
			c.number = int(s.CPU)
		default:
			text, ok := texts[s.Tags]
			if !ok {
				text = p.Tag(s, ingest.TagKey(string(by)))
				texts[s.Tags] = text
			}
			c.text = text
		}
		n, ok := index[c]
		if !ok {
			n = len(index)
			index[c] = n
		}
		next[i] = n
	}
	return next, len(index)
}

// newRows folds the events of a profile that have samples.
func newRows(p *ingest.Profile, opts *Options) *rows {
	labels := labelBy(p, opts.Keep)
	by := slices.Concat(labels, opts.By)
	if len(opts.By) == 0 {
		by = append(by, calltree.Function)
	}
	folder := calltree.New(p, calltree.Options{By: by, Filter: opts.Filter, Demangler: opts.Demangler})
	r := &rows{folder: folder, by: labels, comms: slices.Contains(opts.By, calltree.Comm)}
	for _, l := range labels {
		r.labels = append(r.labels, Label{Name: strings.TrimPrefix(l.String(), ingest.LabelTag)})
	}
	has := make([]bool, len(p.Events))
	for i := range p.Samples {
		has[p.Samples[i].Event] = true
	}
	for e := range p.Events {
		if !has[e] || opts.Event >= 0 && e != opts.Event {
			continue
		}
		if e == opts.Shown {
			r.shown = len(r.events)
		}
		s := folder.Fold(e, opts.Count)
		r.nodes = s.Nodes // the nodes of all events so far
		r.add(s, len(labels))
		r.events, r.number = append(r.events, s), append(r.number, e)
	}
	return r
}

// columnKey is a combination of labels by their nodes: comm, pid, tid, cpu and tags.
type columnKey [4 + ingest.MaxTags]calltree.NodeID

// add appends the stacks of one event.
func (r *rows) add(s *calltree.Stacks, labels int) {
	weights := make(map[columnKey]uint64)
	for nodes, value := range s.All() {
		weights[keyOf(nodes, labels)] += value
	}
	index := r.addColumns(weights)
	for nodes, value := range s.All() {
		from := uint32(len(r.frames))
		r.frames = append(r.frames, nodes[labels:]...)
		r.rows = append(r.rows, row{from: from, to: uint32(len(r.frames)),
			column: index[keyOf(nodes, labels)], value: value})
	}
}

func keyOf(nodes []calltree.NodeID, labels int) (k columnKey) {
	copy(k[:], nodes[:labels])
	return k
}

// addColumns numbers the columns of one event, heaviest first.
func (r *rows) addColumns(weights map[columnKey]uint64) map[columnKey]uint16 {
	keys := make([]columnKey, 0, len(weights))
	for k := range weights {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b columnKey) int {
		return cmp.Or(cmp.Compare(weights[b], weights[a]), slices.Compare(a[:], b[:]))
	})
	index := make(map[columnKey]uint16, len(keys))
	for i, k := range keys {
		if i >= maxLabelColumns {
			last := len(r.columns) - 1
			index[k] = uint16(last)
			for l := range r.columns[last].Values {
				r.columns[last].Values[l] = -1
			}
			continue
		}
		index[k] = uint16(len(r.columns))
		c := column{Event: len(r.events), Values: make([]int, len(r.labels))}
		for l := range r.labels {
			c.Values[l] = r.labelValue(l, r.nodes[k[l]].Name)
		}
		r.columns = append(r.columns, c)
	}
	return index
}

// labelValue numbers the value of a label.
func (r *rows) labelValue(label int, text string) int {
	l := &r.labels[label]
	i := slices.Index(l.Values, text)
	if i < 0 {
		i = len(l.Values)
		l.Values = append(l.Values, text)
	}
	return i
}

// sortValues brings the values of each label into the order of lists: numbers by size, texts
// bytewise.
func (r *rows) sortValues() {
	for l := range r.labels {
		values := r.labels[l].Values
		order := make([]int, len(values))
		for i := range order {
			order[i] = i
		}
		slices.SortFunc(order, func(a, b int) int { return compareLabels(values[a], values[b]) })
		place, sorted := make([]int, len(values)), make([]string, len(values))
		for to, from := range order {
			place[from], sorted[to] = to, values[from]
		}
		r.labels[l].Values = sorted
		for i := range r.columns {
			if v := &r.columns[i].Values[l]; *v >= 0 {
				*v = place[*v]
			}
		}
	}
}

// compareLabels orders "pid 9" before "pid 10".
func compareLabels(a, b string) int {
	return cmp.Or(cmp.Compare(numberOf(a), numberOf(b)), cmp.Compare(a, b))
}

func numberOf(s string) int {
	for i := len(s); i > 0; i-- {
		if c := s[i-1]; c < '0' || c > '9' {
			n, _ := strconv.Atoi(s[i:]) // 0 for texts without a number
			return n
		}
	}
	return 0
}
