package otlp

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"io"
	"slices"
	"strings"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/input/pprof"
	"symbolize/ingest/machine"
	"symbolize/ingest/protobuf"
	"symbolize/ingest/texts"
)

// keyOwnID is the attribute of a mapping for IDs that the others do not hold: of JITed functions, and
// hashes of Go's build IDs.
const keyOwnID = "symbolize.build_id"

// scopeName is the name of the scope of what Write writes of captures without a profiler's name.
const scopeName = "symbolize"

// Write writes p as one message: a profile for each column that a pprof file has, with the same
// addresses. Equal profiles give equal bytes.
func Write(w io.Writer, p *ingest.Profile, layout pprof.WriteOptions, opts WriteOptions) error {
	e := &encoder{p: p, layout: layout, opts: opts, strings: make(map[string]uint64),
		attributes: make(map[string]uint64), functions: make(map[ingest.FuncID]uint64)}
	out := messageWriter{w: w, json: opts.JSON}
	if err := out.write(e.message()); err != nil {
		return err
	}
	return out.close()
}

// encoder makes the tables of one message.
type encoder struct {
	p      *ingest.Profile
	layout pprof.WriteOptions
	opts   WriteOptions
	tables [numTables][]byte
	header ingest.PprofHeader

	strings    map[string]uint64
	attributes map[string]uint64 // by their encoded form
	functions  map[ingest.FuncID]uint64
	links      map[string]uint64
	used       []uint64 // of each location that stacks have, its index; otherwise 0
	body       []byte   // scratch
	tags       []ingest.Tag
}

// add appends an entry to a table.
func (e *encoder) add(table int, body []byte) {
	e.tables[table] = protobuf.AppendBytes(e.tables[table], table, body)
}

func (e *encoder) message() []byte {
	e.links = make(map[string]uint64)
	for table := mappingTable; table < numTables; table++ {
		switch table {
		case stringTable:
			e.string("")
		case attributeTable:
			e.attributes[""] = 0
			e.add(table, nil)
		default:
			e.add(table, nil) // index 0 of each table is empty
		}
	}
	used := e.stacks()
	e.locations()
	scope := protobuf.AppendBytes(nil, scopeScope, protobuf.AppendBytes(nil, 1,
		cmp.Or(texts.Printable(e.p.Meta.Recorder), scopeName)))
	columns := pprof.Columns(e.p.Events)
	e.header = pprof.Header(e.p, columns)
	slices.SortStableFunc(columns, func(a, b pprof.Column) int { // tools show the first profile
		return btoi(b.Type == e.header.DefaultType) - btoi(a.Type == e.header.DefaultType)
	})
	for _, c := range columns {
		if prof := e.profile(c, used); prof != nil {
			scope = protobuf.AppendBytes(scope, scopeProfile, prof)
		}
	}
	resources := protobuf.AppendBytes(protobuf.AppendBytes(nil, resourceResource, e.resource()),
		resourceScopes, scope)
	var dictionary []byte
	for _, table := range e.tables {
		dictionary = append(dictionary, table...)
	}
	return protobuf.AppendBytes(protobuf.AppendBytes(nil, dataResources, resources), dataDictionary,
		dictionary)
}

// resource returns the attributes of the host.
func (e *encoder) resource() (b []byte) {
	m := &e.p.Meta
	for _, a := range [][2]string{{"host.name", m.Host}, {"host.arch", hostArch(m.Arch)},
		{"os.version", m.OSRelease}} {
		if a[1] == "" {
			continue
		}
		value := protobuf.AppendBytes(nil, valueString, texts.Printable(a[1]))
		b = protobuf.AppendBytes(b, 1, protobuf.AppendBytes(protobuf.AppendBytes(nil, 1, a[0]), 2, value))
	}
	return b
}

// hostArch returns OpenTelemetry's name of a machine.
func hostArch(name string) string {
	if a, _ := machine.Named(name); a != nil && a.OTel != "" {
		return a.OTel
	}
	return name
}

// string returns the index of a string.
func (e *encoder) string(s string) uint64 {
	s = texts.Printable(s)
	n, ok := e.strings[s]
	if !ok {
		n = uint64(len(e.strings))
		e.strings[s] = n
		e.add(stringTable, []byte(s))
	}
	return n
}

// attribute returns the index of an attribute.
func (e *encoder) attribute(t *ingest.Tag) uint64 {
	value := protobuf.AppendBytes(nil, valueString, texts.Printable(t.Text))
	if t.Numeric {
		value = protobuf.AppendVarint([]byte{valueInt << 3}, uint64(t.Number))
	}
	return e.keyed(t, value)
}

// keyed returns the index of an attribute with the key and the unit of a tag, and an AnyValue.
func (e *encoder) keyed(t *ingest.Tag, value []byte) uint64 {
	b := protobuf.AppendField(nil, 1, e.string(t.Key))
	b = protobuf.AppendBytes(b, 2, value)
	if t.Unit != "" {
		b = protobuf.AppendField(b, 3, e.string(t.Unit))
	}
	n, ok := e.attributes[string(b)]
	if !ok {
		n = uint64(len(e.attributes))
		e.attributes[string(b)] = n
		e.add(attributeTable, b)
	}
	return n
}

// appendIndices appends a packed list of numbers.
func appendIndices(b []byte, number int, list []uint64) []byte {
	if len(list) == 0 {
		return b
	}
	var packed []byte
	for _, n := range list {
		packed = protobuf.AppendVarint(packed, n)
	}
	return protobuf.AppendBytes(b, number, packed)
}

// locations adds the mappings and locations of the stacks.
func (e *encoder) locations() {
	list, of := pprof.Mappings(e.p, &e.layout)
	facts := make([]pprof.Facts, len(list))
	index := make([]uint64, len(list)) // 1 for those with locations
	for i, used := range e.used {
		if m := of[i]; used > 0 && m > 0 {
			index[m-1] = 1
			facts[m-1].Add(e.p.Names, e.frames(ingest.LocationID(i)))
		}
	}
	next := uint64(0)
	for i := range list {
		if index[i] > 0 {
			next++
			index[i] = next
			e.mapping(&list[i], facts[i])
		}
	}
	for i, used := range e.used {
		switch {
		case used == 0:
		case of[i] > 0:
			e.location(ingest.LocationID(i), index[of[i]-1], list[of[i]-1].Delta)
		default:
			e.location(ingest.LocationID(i), 0, 0)
		}
	}
}

// mapping adds a mapping.
func (e *encoder) mapping(m *pprof.Mapping, facts pprof.Facts) {
	b := protobuf.AppendField(e.body[:0], 1, m.Start)
	b = protobuf.AppendField(b, 2, m.Limit)
	b = protobuf.AppendField(b, 3, m.Offset)
	b = protobuf.AppendField(b, 4, e.string(m.File))
	var attributes []uint64
	if t, ok := idTag(e.p.Objects[m.Object].ID); ok {
		attributes = append(attributes, e.attribute(&t))
	}
	for _, key := range factKeys(facts) {
		attributes = append(attributes, e.keyed(&ingest.Tag{Key: key}, valueTrue))
	}
	e.body = appendIndices(b, mappingAttributes, attributes)
	e.add(mappingTable, e.body)
}

// valueTrue is an AnyValue.
var valueTrue = []byte{valueBool << 3, 1}

// keyFact is the beginning of the keys of facts about a mapping.
const keyFact = "pprof.mapping.has_"

// factKeys returns the keys of attributes for facts.
func factKeys(f pprof.Facts) (keys []string) {
	for _, k := range []struct {
		key string
		ok  bool
	}{{"functions", f.Functions}, {"filenames", f.Files}, {"line_numbers", f.Lines},
		{"inline_frames", f.Inlined}} {
		if k.ok {
			keys = append(keys, keyFact+k.key)
		}
	}
	return keys
}

// location adds a location. mapping is the index of its mapping, 0 for none.
func (e *encoder) location(i ingest.LocationID, mapping, delta uint64) {
	l := &e.p.Locations[i]
	o := &e.p.Objects[l.Object]
	frameType, interpreted := o.Interpreter()
	b := e.body[:0]
	if mapping > 0 || !interpreted {
		b = protobuf.AppendField(b, locationMapping, mapping)
		b = protobuf.AppendField(b, locationAddress, uint64(l.Offset)+delta)
	}
	for _, f := range e.frames(i) {
		b = protobuf.AppendBytes(b, locationLine, appendLine(nil, e.function(f.Func), f))
	}
	if !interpreted {
		frameType = frameNative
		if o.Kind == ingest.Kernel || o.Kind == ingest.Module {
			frameType = frameKernel
		}
	}
	if mapping > 0 || interpreted {
		b = appendIndices(b, locationAttributes,
			[]uint64{e.attribute(&ingest.Tag{Key: keyFrameType, Text: frameType})})
	}
	e.body = b
	e.add(locationTable, b)
}

// frames returns the frames of a location with a name.
func (e *encoder) frames(l ingest.LocationID) []ingest.Frame {
	if e.p.Names == nil || !e.p.Names.Named(l) {
		return nil
	}
	return e.p.Names.At(l)
}

// idTag returns the attribute for a build ID. The hash of the content of a file without one is left
// out, as in pprof files.
func idTag(id buildid.ID) (t ingest.Tag, ok bool) {
	switch id.Space() {
	case buildid.GNU:
		t = ingest.Tag{Key: keyGNU, Text: id.Hex()}
	case buildid.HTL:
		t = ingest.Tag{Key: keyHTL, Text: id.Hex()}
	case buildid.Content:
		return t, false
	default:
		t = ingest.Tag{Key: keyOwnID, Text: id.String()}
	}
	return t, !id.IsZero()
}

// function returns the index of a function.
func (e *encoder) function(id ingest.FuncID) uint64 {
	n, ok := e.functions[id]
	if !ok {
		n = uint64(len(e.functions)) + 1
		e.functions[id] = n
		e.add(functionTable, appendFunction(nil, &e.p.Names.Functions[id], e.opts.Demangle, e.string))
	}
	return n
}

// stacks adds the stacks that samples with a value have, and returns the index of each. It sets
// used.
func (e *encoder) stacks() []uint64 {
	index := make([]uint64, len(e.p.Callers))
	for i := range e.p.Samples {
		if s := &e.p.Samples[i]; s.Count > 0 || s.Weight > 0 {
			index[s.Stack] = 1
		}
	}
	e.used = make([]uint64, len(e.p.Locations))
	next := uint64(1)
	for s := range index {
		if index[s] > 0 {
			index[s] = next
			next++
			for l := range e.p.Frames(ingest.StackID(s)) {
				e.used[l] = 1
			}
		}
	}
	next = 1
	for l := range e.used {
		if e.used[l] > 0 {
			e.used[l] = next
			next++
		}
	}
	var list []uint64
	for s := range index {
		if index[s] > 0 {
			list = list[:0]
			for l := range e.p.Frames(ingest.StackID(s)) {
				list = append(list, e.used[l])
			}
			e.add(stackTable, appendIndices(nil, 1, list))
		}
	}
	return index
}

// profile returns the Profile of a column; nil if it has no samples.
func (e *encoder) profile(c pprof.Column, stacks []uint64) []byte {
	m := &e.p.Meta
	b := protobuf.AppendBytes(nil, profileType, e.valueType(c.Type, c.Unit))
	empty := true
	for i := range e.p.Samples {
		s := &e.p.Samples[i]
		value := s.Weight
		if c.Count {
			value = s.Count
		}
		if int(s.Event) == c.Event && value > 0 {
			empty = false
			b = protobuf.AppendBytes(b, profileSample, e.sample(s, stacks[s.Stack], value))
		}
	}
	if empty {
		return nil
	}
	if m.StartNanos > 0 {
		b = append(b, profileTime<<3|protobuf.Fixed64)
		b = binary.LittleEndian.AppendUint64(b, uint64(m.StartNanos))
	}
	b = protobuf.AppendField(b, profileDuration, uint64(max(m.Duration, 0)))
	b = appendIndices(b, profileAttributes, e.profileAttributes())
	if h := e.header; h.PeriodType != "" {
		b = protobuf.AppendBytes(b, profilePeriodType, e.valueType(h.PeriodType, h.PeriodUnit))
		b = protobuf.AppendField(b, profilePeriod, uint64(h.Period))
	}
	return b
}

// profileAttributes returns the attributes that a pprof file has as fields.
func (e *encoder) profileAttributes() (attributes []uint64) {
	comments := e.p.Meta.Comments
	if c := e.p.Meta.Command; c != "" {
		comments = append([]string{pprof.CommentCommand + c}, comments...)
	}
	var array []byte
	for _, text := range comments {
		array = protobuf.AppendBytes(array, 1,
			protobuf.AppendBytes(nil, valueString, texts.Printable(text)))
	}
	if array != nil {
		attributes = append(attributes,
			e.keyed(&ingest.Tag{Key: keyComment}, protobuf.AppendBytes(nil, valueArray, array)))
	}
	for _, t := range []ingest.Tag{{Key: keyDropFrames, Text: e.header.DropFrames},
		{Key: keyKeepFrames, Text: e.header.KeepFrames}, {Key: keyDocURL, Text: e.header.DocURL}} {
		if t.Text != "" {
			attributes = append(attributes, e.attribute(&t))
		}
	}
	return attributes
}

func (e *encoder) valueType(typ, unit string) []byte {
	return protobuf.AppendField(protobuf.AppendField(nil, 1, e.string(typ)), 2, e.string(unit))
}

// sample returns a Sample without a time.
func (e *encoder) sample(s *ingest.Sample, stack, value uint64) []byte {
	var list []uint64
	number := func(key string, v int32) {
		if v >= 0 {
			list = append(list, e.attribute(&ingest.Tag{Key: key, Numeric: true, Number: int64(v)}))
		}
	}
	if s.Comm != 0 {
		list = append(list, e.attribute(&ingest.Tag{Key: keyThreadName, Text: e.p.Strings[s.Comm]}))
	}
	number(keyProcessID, s.PID)
	number(keyThreadID, s.TID)
	number(keyCPU, s.CPU)
	link := uint64(0)
	if s.Tags != 0 {
		link = e.sampleTags(s)
		for i := range e.tags {
			list = append(list, e.attribute(&e.tags[i]))
		}
	}
	b := protobuf.AppendField(nil, sampleStack, stack)
	b = appendIndices(b, sampleAttributes, list)
	b = protobuf.AppendField(b, sampleLink, link)
	return appendIndices(b, sampleValues, []uint64{value})
}

// sampleTags sets tags to those of a sample, each key once: several values of a key are joined by
// commas, as pprof does. It returns the index of the link that the IDs of a span make.
func (e *encoder) sampleTags(s *ingest.Sample) (link uint64) {
	e.tags = e.tags[:0]
	for t := range e.p.AllTags(s) {
		at := slices.IndexFunc(e.tags, func(o ingest.Tag) bool { return o.Key == t.Key })
		if at < 0 {
			e.tags = append(e.tags, t)
			continue
		}
		e.tags[at] = ingest.Tag{Key: t.Key, Text: e.tags[at].Value() + "," + t.Value()}
	}
	trace, span := e.idTag(keyTraceID, 16), e.idTag(keySpanID, 8)
	if trace == nil || span == nil {
		return 0
	}
	e.tags = slices.DeleteFunc(e.tags, func(t ingest.Tag) bool {
		return t.Key == keyTraceID || t.Key == keySpanID
	})
	body := protobuf.AppendBytes(protobuf.AppendBytes(nil, 1, trace), 2, span)
	n, ok := e.links[string(body)]
	if !ok {
		n = uint64(len(e.links)) + 1
		e.links[string(body)] = n
		e.add(linkTable, body)
	}
	return n
}

// idTag returns the ID of n bytes in a tag, nil if there is none.
func (e *encoder) idTag(key string, n int) []byte {
	for i := range e.tags {
		if b, err := hex.DecodeString(strings.TrimSpace(e.tags[i].Text)); e.tags[i].Key == key &&
			err == nil && len(b) == n {
			return b
		}
	}
	return nil
}
