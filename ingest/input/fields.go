package input

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/fold/intern"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/format/tracefmt"
	"symbolize/ingest/sideband"
)

// tracepointFields returns the field with a name for each event of the file, nil for events without
// it. It fails if no event has the field.
func (c *collector) tracepointFields(name string) ([]*perfdata.TracepointField, error) {
	file := c.Records.File
	if err := c.readFormats(); err != nil {
		return nil, err
	}
	fields := make([]*perfdata.TracepointField, len(file.Events))
	var has []string
	found := false
	for i := range file.Events {
		f := c.format(i)
		if f == nil {
			continue
		}
		for k := range f.Fields {
			x := &f.Fields[k]
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
		return nil, fmt.Errorf("%s: no field %s: no tracepoint with a format in it", file.Name, name)
	}
	return nil, fmt.Errorf("%s: no field %s of a tracepoint in it, only %s", file.Name, name,
		strings.Join(has, ", "))
}

// readFormats reads the formats of tracepoints, once. Damage after some formats does not matter.
func (c *collector) readFormats() (err error) {
	if c.formats == nil {
		c.formats, err = c.Records.File.Tracepoints()
	}
	if len(c.formats) > 0 {
		return nil
	}
	return err
}

// format returns the format of an event of the file, nil if it is no tracepoint with fields. The
// formats were read by tracepointFields.
func (c *collector) format(event int) *perfdata.Tracepoint {
	a := &c.Records.File.Events[event].Attr
	if a.Type != perfdata.AttrTracepoint || a.SampleType&perfdata.SampleRaw == 0 {
		return nil
	}
	f := slices.IndexFunc(c.formats, func(f perfdata.Tracepoint) bool { return f.ID == a.Config })
	if f < 0 {
		return nil
	}
	return &c.formats[f]
}

// fieldTag makes the tags of a tracepoint's field, printed as the tracepoint's format prints it.
func (c *collector) fieldTag(src *tagSource, name string) error {
	fields, err := c.tracepointFields(name)
	if err != nil {
		return err
	}
	texts, big := newTexts(), c.Records.File.BigEndian
	type printer struct { // of an event
		field   *perfdata.TracepointField
		all     []perfdata.TracepointField
		printed *tracefmt.Field // nil if the format prints no more than the field
		call    bool            // the field is the number of a system call
	}
	events := make([]printer, len(fields))
	for i, x := range fields {
		if x == nil {
			continue
		}
		f := c.format(i)
		events[i] = printer{field: x, all: f.Fields, call: isSyscall(f, name)}
		if p, err := tracefmt.Parse(f.Print); err == nil {
			events[i].printed = p.Field(name)
		}
	}
	src.value = func(r *reader) uint64 {
		x, raw := &events[r.sample.Event], r.sample.Raw
		text, ok := "", false
		switch {
		case x.field == nil:
			return 0
		case x.call:
			text, ok = c.syscall(x.field, raw), true
		case x.printed != nil && x.printed.Symbol:
			text, ok = c.fieldAddress(r, x.field, name)
		case x.printed != nil:
			text, ok = x.printed.Text(&tracefmt.Sample{Fields: x.all, Raw: raw, BigEndian: big})
		}
		if !ok {
			text = x.field.String(raw, big)
		}
		return uint64(texts.Number(text))
	}
	src.text = func(_ *reader, n uint64) string { return texts.At(uint32(n)) }
	return nil
}

// fieldPlaces are the places of kernel addresses in tags.
type fieldPlaces struct {
	mu sync.Mutex
	// known has the place of each address, of a key and a text of a tag; noPlace if it changed.
	known map[[2]string]intern.Pair
}

// noPlace is the place of addresses without one.
var noPlace = intern.Pair{Object: sideband.UnmappedKernel}

// fieldAddress returns the text of a field that is an address in the kernel's code, and notes its
// place.
func (c *collector) fieldAddress(r *reader, x *perfdata.TracepointField, key string) (text string, ok bool) {
	n, ok := x.Number(r.sample.Raw, c.Records.File.BigEndian)
	if !ok || n < kernelHalf {
		return "", false
	}
	place := noPlace
	if m, at := c.KernelCode(r.kernel, addr.PC(n), false); m != nil {
		place = intern.Pair{Object: m.Object, Offset: uint64(m.Offset(at))}
	}
	text = fmt.Sprintf("%#x", n)
	c.addresses.mu.Lock()
	defer c.addresses.mu.Unlock()
	if c.addresses.known == nil {
		c.addresses.known = make(map[[2]string]intern.Pair)
	}
	if old, ok := c.addresses.known[[2]string{key, text}]; ok && old != place {
		place = noPlace
	}
	c.addresses.known[[2]string{key, text}] = place
	return text, true
}

// payloadPlaces adds a source of no tags, which notes the places of addresses in payloads.
func (c *collector) payloadPlaces() {
	c.readFormats()
	fields := make([][]*perfdata.TracepointField, len(c.Records.File.Events))
	found := false
	for i := range fields {
		f := c.format(i)
		if f == nil {
			continue
		}
		p, err := tracefmt.Parse(f.Print)
		if err != nil {
			continue
		}
		for k := range f.Fields {
			if x := p.Field(f.Fields[k].Name); x != nil && x.Symbol {
				fields[i], found = append(fields[i], &f.Fields[k]), true
			}
		}
	}
	if !found {
		return
	}
	c.sources = append(c.sources, tagSource{value: func(r *reader) uint64 {
		for _, x := range fields[r.sample.Event] {
			c.fieldAddress(r, x, "")
		}
		return 0
	}})
}

// list returns the places, unordered.
func (f *fieldPlaces) list() (list []intern.Pair) {
	for _, place := range f.known {
		if place != noPlace {
			list = append(list, place)
		}
	}
	return list
}

// add adds the places of addresses to a text of tags.
func (f *fieldPlaces) add(text string, objects []ingest.Object) string {
	if len(f.known) == 0 {
		return text
	}
	var tags []ingest.Tag
	for t := range ingest.DecodeTags(text) {
		if place, ok := f.known[[2]string{t.Key, t.Text}]; ok && place != noPlace && !t.Numeric {
			t = t.At(&objects[place.Object], addr.Offset(place.Offset))
		}
		tags = append(tags, t)
	}
	return ingest.EncodeTags(tags)
}

// isSyscall reports whether a field of a tracepoint has the number of a system call.
func isSyscall(f *perfdata.Tracepoint, field string) bool {
	return f.System == "raw_syscalls" && field == "id" || f.System == "syscalls" && field == "__syscall_nr"
}

// syscall returns the name of the system call with the number in a field, or the number.
func (c *collector) syscall(x *perfdata.TracepointField, raw []byte) string {
	big := c.Records.File.BigEndian
	if n, ok := x.Number(raw, big); ok {
		if name := tracefmt.Syscall(c.Host.Arch, int64(n)); name != "" {
			return name
		}
	}
	return x.String(raw, big)
}

// chooseWeight prepares Options.Weight; events without the field are left out.
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
		return fmt.Errorf("%s: the field %s is not a number", c.Records.File.Name, name)
	}
	for i := range c.events {
		c.events[i].Unit, c.events[i].Period = "count", 0
		if strings.HasPrefix(name, "bytes") || strings.HasSuffix(name, "bytes") {
			c.events[i].Unit = "bytes"
		}
	}
	return nil
}

// weigh sets the sample's count to the value of the chosen field.
func (r *reader) weigh(rec *perfdata.Record) {
	s := &r.sample
	x := r.c.weights[s.Event]
	if x == nil {
		return // its event is not selected
	}
	v, ok := x.Number(s.Raw, r.c.Records.File.BigEndian)
	if !ok || x.Signed && v > math.MaxInt64 {
		r.bad(rec, fmt.Errorf("%s: offset %#x: %s is negative or after the sample's end",
			r.c.Records.File.Name, rec.Offset, x.Name))
		r.counts = r.counts[:0]
		return
	}
	r.counts[0].Count = v
}
