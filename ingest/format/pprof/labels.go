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

// maxTagText bounds the texts of all distinct combinations of labels of a file, in bytes: a
// sample refers to strings of any size by a few bytes each.
const maxTagText = 64 << 20

// tagReader makes the tags of samples of their labels.
type tagReader struct {
	all   bool     // every label is kept
	keys  []string // of the labels that are kept, unless all are
	known map[string]ingest.StringID
	seen  map[string]bool // keys of labels that have no field in Profile; true if kept
	room  int             // bytes left of maxTagText
	cut   uint64          // samples whose labels did not fit
	refs  []byte          // scratch: the labels of a sample as numbers
	list  []ingest.Tag    // scratch
}

func (t *tagReader) init(keep *ingest.Keep) {
	t.room = maxTagText
	for _, word := range keep.TagList() {
		if word == ingest.AllLabels {
			t.all = true
			continue
		}
		t.keys = append(t.keys, ingest.TagKey(word))
	}
}

// kept reports whether labels of a key are kept.
func (t *tagReader) kept(key []byte) bool {
	if t.all {
		return true
	}
	for _, k := range t.keys {
		if k == string(key) {
			return true
		}
	}
	return false
}

// note remembers that a key occurs.
func (t *tagReader) note(key []byte) bool {
	kept, ok := t.seen[string(key)] // without an allocation
	if !ok {
		if t.seen == nil {
			t.seen = make(map[string]bool)
		}
		kept = t.kept(key)
		t.seen[string(key)] = kept
	}
	return kept
}

// findLabels returns the numeric labels that occur: a label that other samples have is
// 0 where it is absent, because writers leave zeros out.
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
		if hasField(l, comm) || !t.note(l.key) {
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

// hasField reports whether a label is kept in a field of ingest.Sample, which is that of the
// thread's name for comm.
func hasField(l, comm *label) bool {
	switch string(l.key) {
	case "comm", "thread_comm":
		return comm != nil && string(l.key) == string(comm.key) && l.text != nil
	case "pid", "tid", "cpu":
		return l.text == nil
	}
	return false
}

// readTags returns the tags of a sample that has labels to keep. Each combination of labels is
// made a text once.
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
		if size += len(l.key) + len(l.text) + len(l.unit) + 24; size > t.room {
			t.cut++
			return 0
		}
		t.list = append(t.list, ingest.Tag{Key: string(l.key), Text: string(l.text),
			Numeric: l.text == nil, Number: l.number, Unit: string(l.unit)})
	}
	t.room -= size
	slices.SortStableFunc(t.list, t.compare)
	id := r.str([]byte(ingest.EncodeTags(t.list)))
	if t.known == nil {
		t.known = make(map[string]ingest.StringID)
	}
	t.known[string(t.refs)] = id
	return id
}

// compare orders the tags of a sample: in the order of the keys that are kept, or by key; values
// of one key stay in their order.
func (t *tagReader) compare(a, b ingest.Tag) int {
	if t.all {
		return cmp.Compare(a.Key, b.Key)
	}
	return cmp.Compare(slices.Index(t.keys, a.Key), slices.Index(t.keys, b.Key))
}

// dropLabels removes the numbers that are not kept apart.
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

// warnLabels reports labels that were left out, and those that were asked for and do not occur.
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
		warn("name the labels that are needed, as in --labels label:KEY",
			"labels of %d samples left out: over %d MiB of different ones", t.cut, maxTagText>>20)
	}
}
