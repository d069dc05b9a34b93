package otlp

import (
	"bytes"
	"encoding/binary"
	"io"
	"slices"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/input/pprof"
	"symbolize/ingest/protobuf"
	"symbolize/ingest/texts"
)

// WriteOptions are the options of Write and NewRewriter. The zero value is valid.
type WriteOptions struct {
	// Demangle returns Function.name for a system name; nil keeps the latter.
	Demangle func(string) string
	JSON     bool // one message a line, instead of protobuf
}

// Rewriter copies messages and adds the names of a Profile to locations without names. Everything
// else stays as it is, also fields that this package does not know.
type Rewriter struct {
	out     messageWriter
	p       *ingest.Profile
	opts    WriteOptions
	objects map[objectName]ingest.ObjectID

	in      *messageReader
	added   map[ingest.FuncID]uint64 // functions added to the current message, with their indices
	strings map[string]uint64        // of the current message's table
	tail    []byte                   // new entries of the tables
	err     error                    // of writing

	facts         map[uint64]pprof.Facts // of mappings with new names
	newStrings    int                    // in tail
	factsAt       map[string]uint64      // attributes for facts, with their indices
	newAttributes int
}

// objectName identifies an object of a file in a Profile.
type objectName struct {
	kind            ingest.ObjectKind
	id              buildid.ID
	path, refSymbol string
}

// NewRewriter returns a Rewriter that writes to w. p is the named Profile of all files that it will
// get.
func NewRewriter(w io.Writer, p *ingest.Profile, opts WriteOptions) *Rewriter {
	r := &Rewriter{out: messageWriter{w: w, json: opts.JSON}, p: p, opts: opts,
		objects: make(map[objectName]ingest.ObjectID)}
	for i := range p.Objects {
		o := &p.Objects[i]
		k := objectName{o.Kind, o.ID, o.File.Path, o.RefSymbol}
		r.objects[k] = ingest.ObjectID(i)
		if k.path = ingest.BaseName(k.path); !k.id.IsZero() { // a merged profile has one of its paths
			if _, ok := r.objects[k]; !ok {
				r.objects[k] = ingest.ObjectID(i)
			}
		}
	}
	return r
}

// File copies the messages of a file of size bytes, which may unpack to most bytes (see
// files.MaxUnpacked). Damaged ones, which Read reported, are left out.
func (r *Rewriter) File(name string, in io.ReaderAt, size, most int64) error {
	r.in = newReader(name, Options{})
	f := &file{name: name, r: in, size: size, most: most}
	_, err := f.messages(func(p part) error {
		_ = r.in.split(p.data, func() error {
			if r.err == nil {
				r.err = r.message(p.json)
			}
			return r.err
		})
		return r.err
	})
	return err
}

// Close writes what remains. It does not close the writer.
func (r *Rewriter) Close() error { return r.out.close() }

// message copies the current message.
func (r *Rewriter) message(wasJSON bool) error {
	in := r.in
	if in.begin(wasJSON) != nil {
		return nil // Read reported it
	}
	r.added, r.strings, r.tail = make(map[ingest.FuncID]uint64), nil, nil
	r.newStrings, r.newAttributes, r.facts = 0, 0, make(map[uint64]pprof.Facts)
	r.factsAt = make(map[string]uint64)
	var changed [numTables]map[int][]byte
	change := func(table int, entry func(uint64) []byte) {
		changed[table] = make(map[int][]byte)
		for i := range in.tables[table] {
			if body := entry(uint64(i)); body != nil {
				changed[table][i] = body
			}
		}
	}
	change(locationTable, r.location)
	change(mappingTable, r.mapping)
	var resources []byte
	for _, s := range in.resources {
		resources = protobuf.AppendBytes(resources, dataResources, in.bytes(s))
	}
	var dictionary []byte
	var at [numTables]int
	for _, d := range in.dictionaries {
		for k := in.fields(d); k.Next(); {
			field := k.Raw()
			if k.is(locationTable) || k.is(mappingTable) {
				if b := changed[k.Number][at[k.Number]]; b != nil {
					field = protobuf.AppendBytes(nil, int(k.Number), b)
				}
				at[k.Number]++
			}
			dictionary = append(dictionary, field...)
		}
	}
	dictionary = protobuf.AppendBytes(nil, dataDictionary, append(dictionary, r.tail...))
	if in.dictionaryFirst {
		return r.out.write(append(dictionary, resources...))
	}
	return r.out.write(append(resources, dictionary...))
}

// location returns a location with the names that the profile has for it; nil if it has names
// already, or none are known.
func (r *Rewriter) location(i uint64) []byte {
	in, l := r.in, &r.in.location
	b, err := in.entry(locationTable, i)
	if err != nil || in.readLocation(l, b) != nil || l.mapping == 0 {
		return nil
	}
	m, err := in.mapping(l.mapping, l.frame.name == frameKernel)
	if err != nil {
		return nil
	}
	object, off := in.b.Locate(m, l.address)
	if frames, err := in.lineFrames(object, l.lines); err != nil || len(frames) > 0 {
		return nil
	}
	o := in.b.ObjectAt(object)
	k := objectName{o.Kind, o.ID, o.File.Path, o.RefSymbol}
	id, ok := r.objects[k]
	if !ok {
		k.path = ingest.BaseName(k.path)
		if id, ok = r.objects[k]; !ok {
			return nil
		}
	}
	at, ok := slices.BinarySearchFunc(r.p.Locations,
		ingest.Location{Object: id, Offset: off}, ingest.CompareLocations)
	if !ok || r.p.Names == nil || !r.p.Names.Named(ingest.LocationID(at)) {
		return nil
	}
	out := without(b, locationLine) // lines that have no names
	frames := r.p.Names.At(ingest.LocationID(at))
	for _, f := range frames {
		out = protobuf.AppendBytes(out, locationLine, appendLine(nil, r.function(f.Func), f))
	}
	facts := r.facts[l.mapping]
	facts.Add(r.p.Names, frames)
	r.facts[l.mapping] = facts
	return out
}

// mapping returns a mapping with the facts about its new names; nil if it has them already.
func (r *Rewriter) mapping(i uint64) []byte {
	b, _ := r.in.entry(mappingTable, i)
	raw := &r.in.raw
	keys := factKeys(r.facts[i])
	if len(keys) == 0 || r.in.readMapping(raw, b) != nil {
		return nil
	}
	list := slices.Clone(raw.attributes)
	for _, key := range keys {
		at := slices.IndexFunc(list, func(n uint64) bool {
			a, err := r.in.attribute(n)
			return err == nil && string(a.key) == key
		})
		if n := r.fact(key); at < 0 {
			list = append(list, n)
		} else {
			list[at] = n
		}
	}
	if slices.Equal(list, raw.attributes) {
		return nil
	}
	return appendIndices(without(b, mappingAttributes), mappingAttributes, list)
}

// without returns a message without the fields of a number.
func without(b []byte, number uint64) (out []byte) {
	for k := protobuf.Fields(b); k.Next(); {
		if k.Number != number {
			out = append(out, k.Raw()...)
		}
	}
	return out
}

// fact returns the index of an attribute with the value true, and adds it if it is new.
func (r *Rewriter) fact(key string) uint64 {
	table := r.in.tables[attributeTable]
	n, ok := r.factsAt[key]
	for i := 0; !ok && i < len(table); i++ {
		a, err := r.in.attribute(uint64(i))
		ok = err == nil && string(a.key) == key && bytes.Equal(a.value, valueTrue)
		n = uint64(i)
	}
	if !ok {
		n = uint64(len(table) + r.newAttributes)
		r.newAttributes++
		body := protobuf.AppendBytes(protobuf.AppendField(nil, 1, r.string(key)), 2, valueTrue)
		r.tail = protobuf.AppendBytes(r.tail, attributeTable, body)
	}
	r.factsAt[key] = n
	return n
}

// appendLine appends the fields of a Line.
func appendLine(b []byte, function uint64, f ingest.Frame) []byte {
	b = protobuf.AppendField(b, 1, function)
	b = protobuf.AppendField(b, 2, uint64(f.Line))
	return protobuf.AppendField(b, 3, uint64(f.Column))
}

// function returns the index of a function in the current message, and adds it if it is new.
func (r *Rewriter) function(id ingest.FuncID) uint64 {
	n, ok := r.added[id]
	if !ok {
		n = uint64(len(r.in.tables[functionTable]) + len(r.added))
		r.added[id] = n
		body := appendFunction(nil, &r.p.Names.Functions[id], r.opts.Demangle, r.string)
		r.tail = protobuf.AppendBytes(r.tail, functionTable, body)
	}
	return n
}

// appendFunction appends the fields of a Function; number returns the index of a string.
func appendFunction(b []byte, fn *ingest.Function, demangle func(string) string,
	number func(string) uint64) []byte {
	name := fn.SystemName
	if demangle != nil {
		name = demangle(name)
	}
	b = protobuf.AppendField(b, 1, number(name))
	b = protobuf.AppendField(b, 2, number(fn.SystemName))
	b = protobuf.AppendField(b, 3, number(fn.File))
	return protobuf.AppendField(b, 4, uint64(fn.StartLine))
}

// string returns the index of a string in the current message, and adds it if it is new.
func (r *Rewriter) string(s string) uint64 {
	if r.strings == nil {
		table := r.in.tables[stringTable]
		r.strings = make(map[string]uint64, len(table))
		for i, at := range slices.Backward(table) {
			r.strings[string(r.in.bytes(at))] = uint64(i)
		}
	}
	s = texts.Printable(s)
	n, ok := r.strings[s]
	if !ok {
		n = uint64(len(r.in.tables[stringTable]) + r.newStrings)
		r.newStrings++
		r.strings[s] = n
		r.tail = protobuf.AppendBytes(r.tail, stringTable, s)
	}
	return n
}

// messageWriter writes one message as it is, and several each after its length.
type messageWriter struct {
	w     io.Writer
	json  bool
	first []byte
	n     int
}

func (m *messageWriter) write(b []byte) error {
	m.n++
	if m.json {
		line, err := appendJSON(nil, b)
		if err == nil {
			_, err = m.w.Write(append(line, '\n'))
		}
		return err
	}
	if m.n == 1 {
		m.first = b
		return nil
	}
	if first := m.first; first != nil {
		m.first = nil
		if err := m.framed(first); err != nil {
			return err
		}
	}
	return m.framed(b)
}

func (m *messageWriter) framed(b []byte) error {
	if _, err := m.w.Write(binary.BigEndian.AppendUint32(nil, uint32(len(b)))); err != nil {
		return err
	}
	_, err := m.w.Write(b)
	return err
}

func (m *messageWriter) close() error {
	if m.first == nil {
		return nil
	}
	_, err := m.w.Write(m.first)
	return err
}
