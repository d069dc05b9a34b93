package otlp

import (
	"bytes"
	"encoding/hex"
	"hash/fnv"
	"math"
	"slices"
	"strings"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/fold/named"
	"symbolize/ingest/protobuf"
)

// Keys of attributes that identify the file of a mapping, and the type of a frame.
const (
	keyBuildID   = "process.executable.build_id."
	keyGNU       = keyBuildID + "gnu"
	keyGo        = keyBuildID + "go"
	keyHTL       = keyBuildID + "htlhash"
	keyHTLOld    = keyBuildID + "profiling"
	keyFrameType = "profile.frame.type"
)

// Types of frames with addresses of code in files.
const (
	frameNative = "native"
	frameKernel = "kernel"
	frameGo     = "go"
)

// mapped is the object of a mapping.
type mapped struct {
	object uint32
	base   uint64 // an address minus it is an Offset
	known  bool
}

// mapping returns the object of a mapping, for frames of the kernel or of processes.
func (r *reader) mapping(i uint64, kernel bool) (mapped, error) {
	cache := &r.mappings
	if kernel {
		cache = &r.kernelMappings
	}
	if i < uint64(len(*cache)) && (*cache)[i].known {
		return (*cache)[i], nil
	}
	b, err := r.entry(mappingTable, i)
	if err != nil {
		return mapped{}, err
	}
	m, err := r.readMapping(b)
	if err != nil {
		return mapped{}, err
	}
	if kernel {
		nameKernel(&m)
	}
	o, base := named.ObjectOf(m)
	(*cache)[i] = mapped{object: r.b.Object(o), base: base, known: true}
	return (*cache)[i], nil
}

// readMapping decodes a mapping. Of several IDs of a file it has the GNU build ID, otherwise that of
// Go, otherwise the hash.
func (r *reader) readMapping(b []byte) (m named.Mapping, err error) {
	var attributes []uint64
	for len(b) > 0 {
		f, rest, ok := protobuf.Next(b)
		if !ok {
			return m, errMalformed
		}
		switch f.Number {
		case 1:
			m.Start = f.Value
		case 2:
			m.Limit = f.Value
		case 3:
			m.Offset = f.Value
		case 4:
			var name []byte
			if name, err = r.entry(stringTable, f.Value); err != nil {
				return m, err
			}
			m.File = string(name)
		case 5:
			if attributes, ok = protobuf.Numbers(attributes, &f); !ok {
				return m, errMalformed
			}
		}
		b = rest
	}
	rank := 0
	for _, i := range attributes {
		key, value, _, err := r.attribute(i)
		if err != nil {
			return m, err
		}
		var t ingest.Tag
		r.tag(&t, value)
		if id, n := fileID(string(key), t.Text); n > rank {
			m.ID, rank = id, n
		}
	}
	return m, nil
}

// fileID returns the ID in an attribute of a mapping, and how well it identifies the file: 0 for no
// ID.
func fileID(key, text string) (id buildid.ID, rank int) {
	switch key {
	case keyGNU:
		id, rank = parseHex(buildid.GNU, text), 3
	case keyGo:
		id, rank = buildid.FromGo(text), 2
	case keyHTL, keyHTLOld:
		id, rank = parseHex(buildid.HTL, text), 1
	case keyOwnID:
		id, _ = buildid.Parse(text)
		rank = 1
	}
	if id.IsZero() {
		rank = 0
	}
	return id, rank
}

func parseHex(space buildid.Space, text string) buildid.ID {
	b, err := hex.DecodeString(text)
	if err != nil {
		return buildid.ID{}
	}
	return buildid.Make(space, b)
}

// nameKernel gives a mapping of the kernel or of a module the name that perf has for it.
func nameKernel(m *named.Mapping) {
	inner, bracketed := ingest.Unbracket(m.File)
	switch {
	case bracketed || strings.HasPrefix(m.File, ingest.KernelMapName):
	case ingest.IsVmlinux(ingest.BaseName(m.File)) || inner == "":
		m.File = ingest.KernelMapName + "_text"
	default:
		m.File = "[" + m.File + "]"
	}
}

// place returns the Builder's number of a location.
func (r *reader) place(i uint64) (uint32, error) {
	if i < uint64(len(r.places)) && r.places[i] != 0 {
		return r.places[i] - 1, nil
	}
	b, err := r.entry(locationTable, i)
	if err != nil {
		return 0, err
	}
	l := &r.location
	if err := r.readLocation(l, b); err != nil {
		return 0, err
	}
	pl := named.Place{Offset: addr.Offset(l.address)}
	if l.mapping != 0 {
		m, err := r.mapping(l.mapping, l.frameType == frameKernel)
		if err != nil {
			return 0, err
		}
		pl.Object, pl.Offset = m.object, addr.Offset(l.address-m.base)
	} else {
		pl.Object = r.withoutFile(l.frameType)
		if len(l.lines) > 0 && (l.frameType != "" || l.address == 0) {
			pl.Offset = r.nameOffset(l)
		}
	}
	r.frames = r.frames[:0]
	for k := range l.lines {
		ln := &l.lines[k]
		fn, err := r.function(pl.Object, ln.function)
		if err != nil {
			return 0, err
		}
		r.frames = append(r.frames, ingest.Frame{Func: fn, Line: clamp(ln.line), Column: clamp(ln.column)})
	}
	pl.Frames = r.frames
	n := r.b.Join(pl)
	r.places[i] = n + 1
	return n, nil
}

func clamp(v int64) int32 { return int32(min(max(v, 0), math.MaxInt32)) }

// location is a decoded location. Its slices are reused.
type location struct {
	mapping, address uint64
	frameType        string
	lines            []line
	attributes       []uint64
}

// line is a decoded line with a function that has a name.
type line struct {
	function     uint64
	line, column int64
}

// readLocation decodes a location. Lines without the name of a function are left out: names come
// from the store.
func (r *reader) readLocation(l *location, b []byte) error {
	*l = location{lines: l.lines[:0], attributes: l.attributes[:0]}
	for len(b) > 0 {
		f, rest, ok := protobuf.Next(b)
		if !ok {
			return errMalformed
		}
		switch f.Number {
		case locationMapping:
			l.mapping = f.Value
		case locationAddress:
			l.address = f.Value
		case locationLine:
			ln, err := readLine(f.Body)
			if err != nil {
				return err
			}
			l.lines = append(l.lines, ln)
		case locationAttributes:
			if l.attributes, ok = protobuf.Numbers(l.attributes, &f); !ok {
				return errMalformed
			}
		}
		b = rest
	}
	for _, ln := range l.lines {
		names, err := r.functionNames(ln.function)
		if err != nil {
			return err
		}
		if len(names.name)+len(names.system) == 0 {
			l.lines = l.lines[:0] // a place is named as a whole, or not at all
			break
		}
	}
	for _, i := range l.attributes {
		t, err := r.frameType(i)
		if err != nil {
			return err
		}
		if t != "" {
			l.frameType = t
		}
	}
	return nil
}

// frameType returns the type of a frame in an attribute, "" for other attributes.
func (r *reader) frameType(i uint64) (string, error) {
	t, ok := r.frameTypes[i]
	if !ok {
		key, value, _, err := r.attribute(i)
		if err != nil {
			return "", err
		}
		if string(key) == keyFrameType {
			var tag ingest.Tag
			r.tag(&tag, value)
			t = tag.Text
		}
		r.frameTypes[i] = t
	}
	return t, nil
}

func readLine(b []byte) (ln line, err error) {
	for len(b) > 0 {
		f, rest, ok := protobuf.Next(b)
		if !ok {
			return ln, errMalformed
		}
		switch f.Number {
		case 1:
			ln.function = f.Value
		case 2:
			ln.line = int64(f.Value)
		case 3:
			ln.column = int64(f.Value)
		}
		b = rest
	}
	return ln, nil
}

// functionNames has the texts of a function.
type functionNames struct {
	name, system, file []byte
	start              int64
}

func (c *contents) functionNames(i uint64) (n functionNames, err error) {
	b, err := c.entry(functionTable, i)
	for len(b) > 0 && err == nil {
		f, rest, ok := protobuf.Next(b)
		if !ok {
			return n, errMalformed
		}
		switch f.Number {
		case 1:
			n.name, err = c.entry(stringTable, f.Value)
		case 2:
			n.system, err = c.entry(stringTable, f.Value)
		case 3:
			n.file, err = c.entry(stringTable, f.Value)
		case 4:
			n.start = int64(f.Value)
		}
		b = rest
	}
	return n, err
}

// function returns the Builder's number of a function. Strings are copied only if it is new.
func (r *reader) function(object uint32, i uint64) (ingest.FuncID, error) {
	n, err := r.functionNames(i)
	if err != nil {
		return 0, err
	}
	if len(n.system) == 0 {
		n.system = n.name
	}
	k := protobuf.AppendVarint(r.key[:0], uint64(object))
	k = protobuf.AppendVarint(k, uint64(n.start))
	k = protobuf.AppendVarint(k, uint64(len(n.system)))
	r.key = append(append(k, n.system...), n.file...)
	id, fresh := r.functions.Add(r.seed.Hash(r.key))
	if fresh {
		*id = r.b.Function(ingest.Function{Object: ingest.ObjectID(object),
			SystemName: string(n.system), File: string(n.file), StartLine: clamp(n.start)})
	}
	return *id, nil
}

// withoutFile returns the object of frames without a mapping: one for each interpreter, and one for
// native addresses outside of all mappings.
func (r *reader) withoutFile(frameType string) uint32 {
	o := ingest.Object{Kind: ingest.Unmapped, Kernel: ingest.NoObject, Reason: ingest.OutsideMapping}
	if frameType != "" && frameType != frameNative {
		o.File.Path = "[" + frameType + "]"
	}
	return r.b.Object(o)
}

// nameOffset returns the Offset of a frame without an address: a hash of its names, so that it is
// the same in all files.
func (r *reader) nameOffset(l *location) addr.Offset {
	h := fnv.New64a()
	for _, ln := range l.lines {
		n, _ := r.functionNames(ln.function) // was decoded before
		h.Write(bytes.Join([][]byte{n.name, n.system, n.file,
			protobuf.AppendVarint(nil, uint64(n.start)), protobuf.AppendVarint(nil, uint64(ln.line)),
			protobuf.AppendVarint(nil, uint64(ln.column))}, []byte{0}))
	}
	return addr.Offset(h.Sum64() >> 1)
}

// stack returns the Builder's number of a stack.
func (r *reader) stack(i uint64) (ingest.StackID, error) {
	if i < uint64(len(r.stacks)) && r.stacks[i] != 0 {
		return ingest.StackID(r.stacks[i] - 1), nil
	}
	b, err := r.entry(stackTable, i)
	if err != nil {
		return 0, err
	}
	r.indices, r.list = r.indices[:0], r.list[:0]
	for len(b) > 0 {
		f, rest, ok := protobuf.Next(b)
		if ok && f.Number == 1 {
			r.indices, ok = protobuf.Numbers(r.indices, &f)
		}
		if !ok {
			return 0, errMalformed
		}
		b = rest
	}
	for _, l := range r.indices {
		n, err := r.place(l)
		if err != nil {
			return 0, err
		}
		r.list = append(r.list, n)
	}
	id := r.b.Stack(r.list)
	if r.observer != nil {
		r.observer.places[id] = slices.Clone(r.list)
	}
	r.stacks[i] = uint32(id) + 1
	return id, nil
}
