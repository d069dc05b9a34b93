package pprof

import (
	"encoding/binary"
	"math"

	"symbolize/ingest"
	"symbolize/ingest/input/named"
)

// tagReader makes the tags of samples from their labels.
type tagReader struct {
	*named.Labels
	known map[string]ingest.StringID
	refs  []byte       // scratch: the labels of a sample as numbers
	list  []ingest.Tag // scratch
}

// findLabels returns the numeric labels that occur. If other samples have a label, a missing one is
// 0, because writers omit zeros.
func (r *profileReader) findLabels() (has ingest.Keep, err error) {
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

func (r *profileReader) readLabels(s *sample, row *ingest.Sample, has ingest.Keep) {
	comm := s.find("comm", true)
	if comm == nil {
		comm = s.find("thread_comm", true)
	}
	if comm != nil {
		row.Comm = r.b.String(comm.text)
	}
	t := &r.tags
	t.refs = t.refs[:0]
	for i := range s.labels {
		l := &s.labels[i]
		if hasField(l, comm) || !t.Kept(l.key) {
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
func (r *profileReader) readTags(s *sample, comm *label) ingest.StringID {
	t := &r.tags
	if id, ok := t.known[string(t.refs)]; ok {
		return id
	}
	t.list = t.list[:0]
	for i := range s.labels {
		l := &s.labels[i]
		if hasField(l, comm) || !t.Kept(l.key) {
			continue
		}
		t.list = append(t.list, ingest.Tag{Key: string(l.key), Text: string(l.text),
			Numeric: l.text == nil, Number: l.number, Unit: string(l.unit)})
	}
	text := t.Encode(t.list)
	if text == "" {
		return 0
	}
	id := r.b.String([]byte(text))
	if t.known == nil {
		t.known = make(map[string]ingest.StringID)
	}
	t.known[string(t.refs)] = id
	return id
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
