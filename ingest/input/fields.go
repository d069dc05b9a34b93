package input

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"symbolize/ingest/format/perfdata"
)

// tracepointFields returns the field of a name by event of the file, nil for events that have
// none, and an error where no event has it.
func (c *collector) tracepointFields(name string) ([]*perfdata.TracepointField, error) {
	file := c.Records.File
	if c.formats == nil {
		var err error
		if c.formats, err = file.Tracepoints(); len(c.formats) == 0 && err != nil {
			return nil, err // damage after some formats does not matter
		}
	}
	fields := make([]*perfdata.TracepointField, len(file.Events))
	var has []string
	found := false
	for i := range file.Events {
		a := &file.Events[i].Attr
		if a.Type != perfdata.AttrTracepoint || a.SampleType&perfdata.SampleRaw == 0 {
			continue
		}
		f := slices.IndexFunc(c.formats, func(f perfdata.Tracepoint) bool { return f.ID == a.Config })
		if f < 0 {
			continue
		}
		for k := range c.formats[f].Fields {
			x := &c.formats[f].Fields[k]
			if x.Name == name {
				fields[i], found = x, true
			} else if !slices.Contains(has, x.Name) {
				has = append(has, x.Name)
			}
		}
	}
	switch {
	case found:
		return fields, nil
	case len(has) == 0:
		return nil, fmt.Errorf("%s: no tracepoint with its format in it, so no field %s", file.Name,
			name)
	}
	return nil, fmt.Errorf("%s: no field %s of a tracepoint in it, only %s", file.Name, name,
		strings.Join(has, ", "))
}

// fieldTag makes the tags of a tracepoint's field.
func (c *collector) fieldTag(src *tagSource, name string) error {
	fields, err := c.tracepointFields(name)
	if err != nil {
		return err
	}
	texts := new(tagSet)
	src.value = func(r *reader) uint64 {
		x := fields[r.sample.Event]
		if x == nil {
			return 0
		}
		return uint64(texts.number(x.String(r.sample.Raw, c.Records.File.BigEndian)))
	}
	src.text = func(_ *reader, n uint64) string { return texts.at(uint32(n)) }
	return nil
}

// chooseWeight prepares Options.Weight: events without the field are left out.
func (c *collector) chooseWeight() (err error) {
	name := c.opts.Weight
	if name == "" {
		return nil
	}
	if c.weights, err = c.tracepointFields(name); err != nil {
		return err
	}
	numeric := false
	for i, x := range c.weights {
		if x == nil || !x.Numeric() {
			c.weights[i], c.event[i] = nil, -1
			continue
		}
		numeric = true
	}
	if !numeric {
		return fmt.Errorf("%s: the field %s is no number", c.Records.File.Name, name)
	}
	for i := range c.events {
		c.events[i].Unit, c.events[i].Period = "count", 0
		if strings.HasPrefix(name, "bytes") || strings.HasSuffix(name, "bytes") {
			c.events[i].Unit = "bytes"
		}
	}
	return nil
}

// weigh makes the value of the chosen field the sample's count.
func (r *reader) weigh(rec *perfdata.Record) {
	s := &r.sample
	x := r.c.weights[s.Event]
	if x == nil {
		return // its event is not wanted
	}
	v, ok := x.Number(s.Raw, r.c.Records.File.BigEndian)
	if !ok || x.Signed && v > math.MaxInt64 {
		r.bad(rec, fmt.Errorf("%s: offset %#x: %s is below 0 or behind the sample's end",
			r.c.Records.File.Name, rec.Offset, x.Name))
		r.counts = r.counts[:0]
		return
	}
	r.counts[0].Count = v
}
