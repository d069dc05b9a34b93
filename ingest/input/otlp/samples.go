package otlp

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"symbolize/ingest"
	"symbolize/ingest/input/named"
	"symbolize/ingest/protobuf"
)

// sample is a decoded sample. Its slices are reused.
type sample struct {
	stack, link uint64
	attributes  []uint64
	values      []int64
	times       []byte // 8 bytes each
}

// decode decodes a sample.
func (s *sample) decode(b []byte) error {
	*s = sample{attributes: s.attributes[:0], values: s.values[:0]}
	var single []byte
	k := protobuf.Fields(b)
	for k.Next() {
		ok := true
		switch k.Number {
		case sampleStack:
			s.stack, ok = k.Value, k.Wire == protobuf.Varint
		case sampleAttributes:
			s.attributes, ok = protobuf.Numbers(s.attributes, &k.Field)
		case sampleLink:
			s.link, ok = k.Value, k.Wire == protobuf.Varint
		case sampleValues:
			s.values, ok = protobuf.Numbers(s.values, &k.Field)
		case sampleTimes:
			switch {
			case k.Wire == protobuf.Fixed64: // not packed
				single = binary.LittleEndian.AppendUint64(single, k.Value)
			case k.Wire == protobuf.Bytes && len(k.Body)%8 == 0 && s.times == nil:
				s.times = k.Body
			default:
				ok = false
			}
		}
		if !ok {
			return protobuf.ErrMalformed
		}
	}
	if k.Err != nil {
		return k.Err
	}
	if single != nil {
		s.times = append(single, s.times...)
	}
	if n := len(s.times) / 8; n == 0 && len(s.values) == 0 || n > 0 && len(s.values) > 0 &&
		n != len(s.values) {
		return errShape
	}
	return nil
}

// fold counts a sample.
func (r *messageReader) fold(b []byte, ev *event) error {
	s := &r.sample
	if err := s.decode(b); err != nil {
		return err
	}
	stack, err := r.stack(s.stack)
	if err != nil {
		return err
	}
	row, err := r.labels.row(r, s)
	if err != nil {
		return err
	}
	r.b.P.Stats.Records++
	row.Stack, row.Event = stack, ev.number
	selected := r.opts.Selects(&row, r.b.P.Strings)
	r.opts.Drop(&row)
	n := len(s.times) / 8
	if n == 0 {
		ev.oneColumn = true
		n = len(s.values)
	}
	for i := range n {
		value, at := int64(1), uint64(0)
		if len(s.values) > 0 {
			value = s.values[i]
		}
		if len(s.times) > 0 {
			at = binary.LittleEndian.Uint64(s.times[8*i:])
		}
		switch {
		case !selected, r.opts.Until > 0 && (at < r.opts.From || at > r.opts.Until):
			r.b.P.Stats.FilteredOut++
			continue
		case value < 0:
			r.negative++
			continue
		}
		if r.observer != nil {
			r.observer.add(row, at, uint64(value))
		}
		if r.labels.interval > 0 {
			timed := row
			timed.Count, timed.Weight = 1, uint64(value)
			timed.Tags = r.labels.timed(r, &row, at)
			r.b.Add(timed)
			continue
		}
		if row.Count > 0 { // one row for all observations
			row.Count++
			row.Weight += uint64(value)
			continue
		}
		row.Count, row.Weight = 1, uint64(value)
	}
	if row.Count > 0 {
		r.b.Add(row)
	}
	return nil
}

// Keys of attributes that are fields of a Sample.
const (
	keyThreadName = "thread.name"
	keyThreadID   = "thread.id"
	keyCPU        = "cpu.logical_number"
	keyProcessID  = "process.pid"

	keyHostName  = "host.name"
	keyContainer = "container.id"
	keyTraceID   = "trace_id" // of a link, like the next
	keySpanID    = "span_id"

	keyComment    = "pprof.profile.comment"
	keyDropFrames = "pprof.profile.drop_frames"
	keyKeepFrames = "pprof.profile.keep_frames"
	keyDocURL     = "pprof.profile.doc_url"
)

// labels makes the labels of samples from attributes: of the sample, its profile and its resource.
type labels struct {
	*named.Labels
	opts     *Select
	scope    []ingest.Tag // of the resource, then of the profile
	resource int          // number of those of the resource
	rows     map[string]ingest.Sample
	key      []byte
	last     []byte // the key of lastRow
	lastRow  ingest.Sample
	tags     []ingest.Tag // scratch
	links    bool         // links are kept
	interval uint64       // ns; 0 for no label of time
	digits   int          // of its seconds after the point
	times    map[timedKey]ingest.StringID
}

// use is what samples need an attribute for.
type use uint8

const (
	unknownUse use = iota
	unused
	labelUse // a label, or a field of a row
)

// timedKey identifies tags with a time.
type timedKey struct {
	tags ingest.StringID
	at   uint64
}

func (l *labels) init(opts *Select) {
	keep := &opts.Keep
	l.opts, l.Labels = opts, named.NewLabels(keep)
	l.rows, l.times = make(map[string]ingest.Sample), make(map[timedKey]ingest.StringID)
	for _, word := range keep.TagList() {
		key := ingest.TagKey(word)
		l.links = l.links || word == ingest.AllLabels || key == keyTraceID || key == keySpanID
		length, ok := strings.CutPrefix(word, ingest.TimeTag)
		if d, err := time.ParseDuration(length); ok && err == nil {
			l.interval = uint64(d)
			for unit := uint64(time.Second); l.interval%unit != 0 && unit > 1; unit /= 10 {
				l.digits++
			}
		}
	}
}

// enter begins the profiles of a resource, whose attributes are in scope.
func (l *labels) enter() { l.resource = len(l.scope) }

// profile begins a profile.
func (l *labels) profile(r *messageReader, attributes []uint64) error {
	l.scope = l.scope[:l.resource]
	l.clear()
	for _, i := range attributes {
		a, err := r.attribute(i)
		if err != nil {
			return err
		}
		if a.kind == headerKind {
			r.headerAttribute(string(a.key), r.texts(a.value))
			continue
		}
		l.addScope(&r.contents, a)
	}
	return nil
}

// clear forgets the rows.
func (l *labels) clear() {
	clear(l.rows)
	l.last = l.last[:0]
}

// addScope adds an attribute to those of all samples that follow.
func (l *labels) addScope(c *contents, a *attribute) {
	if l.useOf(a) == labelUse {
		l.scope = append(l.scope, c.attributeTag(a))
	}
}

// attributeTag returns an attribute as a tag.
func (c *contents) attributeTag(a *attribute) (t ingest.Tag) {
	c.tag(&t, a.value)
	t.Key, t.Unit = string(a.key), string(a.unit)
	return t
}

// useOf returns what an attribute is used for. Most are neither fields nor kept: their values are not
// decoded.
func (l *labels) useOf(a *attribute) use {
	if a.labels != unknownUse {
		return a.labels
	}
	o := l.opts
	used := false
	numeric := len(a.value) > 0 && a.value[0] == valueInt<<3
	switch {
	case a.kind == threadNameKind && !numeric:
		used = true
	case a.kind == threadIDKind && numeric:
		used = o.Keep.TID || len(o.TIDs) > 0
	case a.kind == cpuKind && numeric:
		used = o.Keep.CPU || len(o.CPUs) > 0
	case a.kind == processIDKind && numeric:
		used = o.Keep.PID || len(o.PIDs) > 0
	case string(a.key) == keyContainer && l.Asked(ingest.ContainerTag):
		used = true
	default:
		used = l.Kept(a.key)
	}
	if a.labels = unused; used {
		a.labels = labelUse
	}
	return a.labels
}

// row returns a row with the labels of a sample.
func (l *labels) row(r *messageReader, s *sample) (ingest.Sample, error) {
	l.key = append(l.key[:0], 0)
	for _, i := range s.attributes {
		a, err := r.attribute(i)
		if err != nil {
			return ingest.Sample{}, err
		}
		if l.useOf(a) == labelUse {
			l.key = protobuf.AppendVarint(l.key, i)
		}
	}
	if l.links {
		l.key = protobuf.AppendVarint(append(l.key, 0), s.link)
	}
	if bytes.Equal(l.key, l.last) {
		return l.lastRow, nil
	}
	row, ok := l.rows[string(l.key)] // without an allocation
	if !ok {
		var err error
		if row, err = l.newRow(r, s); err != nil {
			return row, err
		}
		l.rows[string(l.key)] = row
	}
	l.last, l.lastRow = append(l.last[:0], l.key...), row
	return row, nil
}

// newRow makes a row. Attributes of a sample precede those of its profile, and these those of the
// resource.
func (l *labels) newRow(r *messageReader, s *sample) (ingest.Sample, error) {
	row := ingest.Sample{PID: -1, TID: -1, CPU: -1}
	tags := l.tags[:0]
	add := func(t ingest.Tag) {
		if !l.field(r, &row, &t) && !hasKey(tags, t.Key) {
			tags = append(tags, t)
		}
	}
	for _, i := range s.attributes {
		if a, _ := r.attribute(i); a.labels == labelUse { // was decoded before
			add(r.attributeTag(a))
		}
	}
	for _, t := range slices.Backward(l.scope) {
		add(t)
	}
	if s.link != 0 && l.links {
		link, err := r.entry(linkTable, s.link)
		if err != nil {
			return row, err
		}
		tags = appendLink(tags, link)
	}
	l.tags = tags
	row.Tags = l.encode(r, tags)
	return row, nil
}

func hasKey(tags []ingest.Tag, key string) bool {
	for i := range tags {
		if tags[i].Key == key {
			return true
		}
	}
	return false
}

// field stores an attribute in a field of the row, if it has one for it.
func (l *labels) field(r *messageReader, row *ingest.Sample, t *ingest.Tag) bool {
	set := func(to *int32) bool {
		if *to < 0 && t.Numeric && t.Number >= 0 && t.Number <= math.MaxInt32 {
			*to = int32(t.Number)
		}
		return t.Numeric
	}
	switch t.Key {
	case keyThreadName:
		if row.Comm == 0 {
			row.Comm = r.b.String([]byte(t.Text))
		}
		return !t.Numeric
	case keyThreadID:
		return set(&row.TID)
	case keyCPU:
		return set(&row.CPU)
	case keyProcessID:
		return set(&row.PID)
	}
	return false
}

// appendLink appends the IDs of a link.
func appendLink(tags []ingest.Tag, link []byte) []ingest.Tag {
	k := protobuf.Fields(link)
	for k.Next() {
		if key := [...]string{1: keyTraceID, 2: keySpanID}; k.Number < 3 && len(k.Body) > 0 {
			tags = append(tags, ingest.Tag{Key: key[k.Number], Text: hex.EncodeToString(k.Body)})
		}
	}
	return tags
}

// encode returns the number of the text of the kept tags. Container IDs are also found by the word
// that captures of perf have for them.
func (l *labels) encode(r *messageReader, tags []ingest.Tag) ingest.StringID {
	kept := tags[:0]
	for _, t := range tags {
		if t.Key == keyContainer && l.Asked(ingest.ContainerTag) {
			t.Key = ingest.ContainerTag
		}
		if l.Kept([]byte(t.Key)) {
			kept = append(kept, t)
		}
	}
	if len(kept) == 0 {
		return 0
	}
	return r.b.String([]byte(l.Encode(kept)))
}

// timed returns the tags of a row with the start of the interval of a time, in seconds since 1970.
func (l *labels) timed(r *messageReader, row *ingest.Sample, at uint64) ingest.StringID {
	k := timedKey{row.Tags, at / l.interval}
	if at == 0 {
		return row.Tags
	}
	id, ok := l.times[k]
	if !ok {
		l.Kept([]byte(timeKey))
		start := k.at * l.interval
		text := strconv.FormatUint(start/1e9, 10)
		if l.digits > 0 {
			text += "." + fmt.Sprintf("%09d", start%1e9)[:l.digits]
		}
		tags := ingest.JoinTags(timeKey, text)
		id = r.b.String([]byte(ingest.AppendTags(r.b.P.Strings[row.Tags], tags)))
		l.times[k] = id
	}
	return id
}

const timeKey = "time"
