package input

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/format/tracefmt"
	"symbolize/ingest/intern"
	"symbolize/ingest/sideband"
)

// tracepoints are the formats of the file's tracepoints, once they are read.
type tracepoints struct {
	formats []perfdata.Tracepoint
	// eventFormats are those of the events of the file; nil for events without.
	eventFormats []*eventFormat
}

// tracepointFields returns the field with a name for each event of the file, nil for events without
// it. It fails if no event has the field.
func (c *collector) tracepointFields(name string) ([]*perfdata.TracepointField, error) {
	file := c.Records.File
	if err := c.readFormats(file); err != nil {
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

// eventFormat is the format of an event's samples.
type eventFormat struct {
	*perfdata.Tracepoint
	print   *tracefmt.Format           // nil if it is not understood
	printed map[string]*tracefmt.Field // by name, of fields that are printed as more than they are
}

// text returns the text of a field in a sample.
func (f *eventFormat) text(x *perfdata.TracepointField, s *tracefmt.Sample) string {
	if printed := f.printed[x.Name]; printed != nil {
		if text, ok := printed.Text(s); ok {
			return text
		}
	}
	return x.String(s.Raw, s.BigEndian)
}

// readFormats reads the formats of tracepoints, once. Damage after some formats does not matter.
func (t *tracepoints) readFormats(file *perfdata.File) (err error) {
	if t.eventFormats != nil {
		return nil
	}
	if t.formats, err = file.Tracepoints(); len(t.formats) == 0 && err != nil {
		return err
	}
	t.eventFormats = make([]*eventFormat, len(file.Events))
	for i := range t.eventFormats {
		a := &file.Events[i].Attr
		at := slices.IndexFunc(t.formats, func(f perfdata.Tracepoint) bool { return f.ID == a.Config })
		if a.Type != perfdata.AttrTracepoint || a.SampleType&perfdata.SampleRaw == 0 || at < 0 {
			continue
		}
		f := &eventFormat{Tracepoint: &t.formats[at], printed: make(map[string]*tracefmt.Field)}
		if f.print, _ = tracefmt.Parse(f.Print); f.print != nil {
			for k := range f.Fields {
				name := f.Fields[k].Name
				if x := f.print.Field(name); x != nil {
					f.printed[name] = x
				}
			}
		}
		t.eventFormats[i] = f
	}
	return nil
}

// format returns the format of an event of the file, nil if it is no tracepoint with fields, or if
// readFormats has read none.
func (t *tracepoints) format(event int) *eventFormat {
	if t.eventFormats == nil {
		return nil
	}
	return t.eventFormats[event]
}

// fieldTag makes the tags of a tracepoint's field, printed as the tracepoint's format prints it.
func (c *collector) fieldTag(src *tagSource, name string) error {
	fields, err := c.tracepointFields(name)
	if err != nil {
		return err
	}
	texts, big := newTexts(), c.Records.File.BigEndian
	src.value = func(now *current) uint64 {
		x, raw := fields[now.sample.Event], now.sample.Raw
		if x == nil {
			return 0
		}
		f := c.format(now.sample.Event)
		printed := f.printed[name]
		var text string
		switch {
		case isSyscall(f.Tracepoint, name):
			text = c.syscall(x, raw)
		case printed != nil && printed.Symbol:
			if n, ok := c.fieldAddress(now, x, name); ok {
				text = addressText(n)
			} else {
				text = x.String(raw, big)
			}
		default:
			text = f.text(x, &tracefmt.Sample{Fields: f.Fields, Raw: raw, BigEndian: big})
		}
		return uint64(texts.Number(text))
	}
	src.text = func(n uint64) string { return texts.At(uint32(n)) }
	return nil
}

// fieldPlaces are the places of kernel addresses in tags.
type fieldPlaces struct {
	mu sync.Mutex
	// known has the place of each address in the tags of a key; noPlace if it changed.
	known map[fieldAddress]intern.Pair
}

// fieldAddress is an address in the tags of a key; the key of addresses in payloads is "".
type fieldAddress struct {
	key     string
	address uint64
}

// addressText is the text of an address in a tag.
func addressText(address uint64) string { return "0x" + strconv.FormatUint(address, 16) }

// noPlace is the place of addresses without one.
var noPlace = intern.Pair{Object: sideband.UnmappedKernel}

// fieldAddress returns a field that is an address in the kernel's code, and notes its place.
func (c *collector) fieldAddress(now *current, x *perfdata.TracepointField, key string) (n uint64,
	ok bool) {
	n, ok = x.Number(now.sample.Raw, c.Records.File.BigEndian)
	if !ok || n < kernelHalf {
		return 0, false
	}
	place := noPlace
	if m, at := c.KernelCode(now.kernel, addr.PC(n), false); m != nil {
		place = intern.Pair{Object: m.Object, Offset: uint64(m.Offset(at))}
	}
	at := fieldAddress{key, n}
	c.addresses.mu.Lock()
	defer c.addresses.mu.Unlock()
	if c.addresses.known == nil {
		c.addresses.known = make(map[fieldAddress]intern.Pair)
	}
	if old, ok := c.addresses.known[at]; ok && old != place {
		place = noPlace
	}
	c.addresses.known[at] = place
	return n, true
}

// payloadPlaces adds a source of no tags, which notes the places of addresses in payloads.
func (c *collector) payloadPlaces() {
	if c.readFormats(c.Records.File) != nil {
		return // payloads without a format have no text
	}
	fields := make([][]*perfdata.TracepointField, len(c.Records.File.Events))
	found := false
	for i, f := range c.eventFormats {
		if f == nil {
			continue
		}
		for k := range f.Fields {
			if x := f.printed[f.Fields[k].Name]; x != nil && x.Symbol {
				fields[i], found = append(fields[i], &f.Fields[k]), true
			}
		}
	}
	if !found {
		return
	}
	c.sources = append(c.sources, tagSource{value: func(now *current) uint64 {
		for _, x := range fields[now.sample.Event] {
			c.fieldAddress(now, x, "")
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

// add returns a tag with the place of its address, if it has one.
func (f *fieldPlaces) add(t ingest.Tag, objects []ingest.Object) ingest.Tag {
	n, err := strconv.ParseUint(t.Text, 0, 64)
	if place, ok := f.known[fieldAddress{t.Key, n}]; ok && place != noPlace && err == nil && !t.Numeric {
		return t.At(&objects[place.Object], addr.Offset(place.Offset))
	}
	return t
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

// chooseWeight prepares Selection.Weight; events without the field are left out.
func (c *collector) chooseWeight() (err error) {
	name := c.want.Weight
	if name == "" {
		return nil
	}
	if name == ingest.LatencyWeight && c.anyHas(perfdata.SampleWeight|perfdata.SampleWeightStruct) {
		c.chooseLatency()
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

// chooseLatency chooses the weight that processors measure. Events without it are left out.
func (c *collector) chooseLatency() {
	c.latency = true
	for i := range c.Records.File.Events {
		if c.Records.File.Events[i].Attr.SampleType&(perfdata.SampleWeight|perfdata.SampleWeightStruct) == 0 {
			c.event[i] = -1
		}
	}
	for i := range c.events {
		c.events[i].Unit, c.events[i].Period = "count", 0
	}
}

// latencyOf returns the weight of a sample: of the structure its first part, 32 bits.
func (c *collector) latencyOf(s *perfdata.Sample) uint64 {
	if s.Event >= 0 && c.Records.File.Events[s.Event].Attr.SampleType&perfdata.SampleWeightStruct != 0 {
		return s.Weight & math.MaxUint32
	}
	return s.Weight
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
