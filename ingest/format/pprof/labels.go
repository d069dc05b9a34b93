package pprof

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"symbolize/ingest"
)

// maxTagText bounds the texts of all distinct combinations of labels of a file, in bytes: samples
// refer to strings of any size by a few bytes.
const maxTagText = 64 << 20

// tagReader makes the tags of samples from their labels.
type tagReader struct {
	all   bool     // every label is kept
	keys  []string // of kept labels, unless all are kept
	known map[string]ingest.StringID
	seen  map[string]bool // keys of labels without a field in Profile; true if kept
	left  int             // bytes left of maxTagText
	cut   uint64          // samples with labels that did not fit
	refs  []byte          // scratch: the labels of a sample as numbers
	list  []ingest.Tag    // scratch
}

func (t *tagReader) init(keep *ingest.Keep) {
	t.left = maxTagText
	for _, word := range keep.TagList() {
		if word == ingest.AllLabels {
			t.all = true
			continue
		}
		t.keys = append(t.keys, ingest.TagKey(word))
	}
}

// kept records that a key occurs, and reports whether its labels are kept.
func (t *tagReader) kept(key []byte) bool {
	kept, ok := t.seen[string(key)] // without an allocation
	if !ok {
		if t.seen == nil {
			t.seen = make(map[string]bool)
		}
		kept = t.all || slices.Contains(t.keys, string(key))
		t.seen[string(key)] = kept
	}
	return kept
}

// findLabels returns the numeric labels that occur. If other samples have a label, a missing one is
// 0, because writers omit zeros.
func (r *reader) findLabels() (has ingest.Keep, err error) {
	for in := r.samples(); ; {
		s, err := in.next()
		if s == nil || err != nil {
			return has, err
		}
		has.PID = has.PID || s.find("pid", false) != nil
		has.TID = has.TID || s.find("tid", false) != nil
		has.CPU = has.CPU || s.find("cpu", false) != nil
	}
}

func (r *reader) readLabels(s *sample, row *ingest.Sample, has ingest.Keep) {
	comm := s.find("comm", true)
	if comm == nil {
		comm = s.find("thread_comm", true)
	}
	if comm != nil {
		row.Comm = r.str(comm.text)
	}
	t := &r.tags
	t.refs = t.refs[:0]
	for i := range s.labels {
		l := &s.labels[i]
		if hasField(l, comm) || !t.kept(l.key) {
			continue
		}
		for _, n := range []uint64{l.keyAt, l.textAt, uint64(l.number), l.unitAt} {
			t.refs = binary.AppendUvarint(t.refs, n)
		}
	}
	row.PID = numLabel(s, "pid", has.PID)
	row.TID = numLabel(s, "tid", has.TID)
	row.CPU = numLabel(s, "cpu", has.CPU)
	row.Tags = 0
	if len(t.refs) > 0 {
		row.Tags = r.readTags(s, comm)
	}
}

// hasField reports whether a label is stored in a field of ingest.Sample; comm is the label with
// the thread's name.
func hasField(l, comm *label) bool {
	switch string(l.key) {
	case "comm", "thread_comm":
		return comm != nil && string(l.key) == string(comm.key) && l.text != nil
	case "pid", "tid", "cpu":
		return l.text == nil
	}
	return false
}

// readTags returns the tags of a sample with kept labels. The text of each combination of labels is
// made once.
func (r *reader) readTags(s *sample, comm *label) ingest.StringID {
	t := &r.tags
	if id, ok := t.known[string(t.refs)]; ok {
		return id
	}
	size := 0
	t.list = t.list[:0]
	for i := range s.labels {
		l := &s.labels[i]
		if hasField(l, comm) || !t.seen[string(l.key)] {
			continue
		}
		if size += len(l.key) + len(l.text) + len(l.unit) + 24; size > t.left {
			t.cut++
			return 0
		}
		t.list = append(t.list, ingest.Tag{Key: string(l.key), Text: string(l.text),
			Numeric: l.text == nil, Number: l.number, Unit: string(l.unit)})
	}
	t.left -= size
	slices.SortStableFunc(t.list, t.compare)
	id := r.str([]byte(ingest.EncodeTags(t.list)))
	if t.known == nil {
		t.known = make(map[string]ingest.StringID)
	}
	t.known[string(t.refs)] = id
	return id
}

// compare orders the tags of a sample in the order of the kept keys, or by key if all are kept.
func (t *tagReader) compare(a, b ingest.Tag) int {
	if t.all {
		return cmp.Compare(a.Key, b.Key)
	}
	return cmp.Compare(slices.Index(t.keys, a.Key), slices.Index(t.keys, b.Key))
}

// dropLabels removes the numbers that are not kept.
func (r *reader) dropLabels(row *ingest.Sample) {
	if !r.opts.Keep.PID {
		row.PID = -1
	}
	if !r.opts.Keep.TID {
		row.TID = -1
	}
	if !r.opts.Keep.CPU {
		row.CPU = -1
	}
}

func numLabel(s *sample, key string, has bool) int32 {
	if !has {
		return -1
	}
	l := s.find(key, false)
	if l == nil || l.number < 0 || l.number > math.MaxInt32 {
		return 0
	}
	return int32(l.number)
}

// warnLabels reports labels that were left out, and requested labels that do not occur.
func (r *reader) warnLabels() {
	t := &r.tags
	var left, all []string
	for _, key := range slices.Sorted(maps.Keys(t.seen)) {
		all = append(all, ingest.Printable(key))
		if !t.seen[key] {
			left = append(left, ingest.Printable(key))
		}
	}
	warn := func(hint, format string, args ...any) {
		r.p.Stats.Warnings = append(r.p.Stats.Warnings, ingest.Warning{
			Text: r.name + ": " + fmt.Sprintf(format, args...), Hint: hint})
	}
	for _, key := range t.keys {
		if _, ok := t.seen[key]; !ok {
			hint := ""
			if len(all) > 0 {
				hint = "it has " + strings.Join(all, ", ")
			}
			warn(hint, "no sample has the label %s", ingest.Printable(key))
		}
	}
	if len(left) > 0 {
		warn("", "labels not kept: %s", strings.Join(left, ", "))
	}
	if t.cut > 0 {
		warn("select labels, as in --labels label:KEY",
			"labels of %d samples left out: over %d MiB of distinct labels", t.cut, maxTagText>>20)
	}
}
