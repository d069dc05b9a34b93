package otlp

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"hash/fnv"
	"io"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/input/named"
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

// mapping returns the object of a mapping, for frames of the kernel or of processes. Mappings with
// equal contents, also of different messages, are decoded once.
func (r *messageReader) mapping(i uint64, kernel bool) (*named.Mapped, error) {
	cache := &r.mappings
	if kernel {
		cache = &r.kernelMappings
	}
	if i < uint64(len(*cache)) && (*cache)[i] > 0 {
		return r.mapped[(*cache)[i]-1], nil
	}
	b, err := r.entry(mappingTable, i)
	if err != nil {
		return nil, err
	}
	raw := &r.raw
	if err := r.readMapping(raw, b); err != nil {
		return nil, err
	}
	n, fresh := r.mappedAt.Add(r.seed.Hash(append(raw.key, byte(btoi(kernel)))))
	if fresh {
		r.mapped = append(r.mapped, r.newMapping(raw, kernel))
		*n = uint32(len(r.mapped))
	}
	(*cache)[i] = *n
	return r.mapped[*n-1], nil
}

// rawMapping is a decoded mapping. Its slices are reused.
type rawMapping struct {
	start, limit, offset uint64
	file                 []byte
	attributes           []uint64
	key                  []byte // everything that identifies it
}

func (r *messageReader) readMapping(m *rawMapping, b []byte) (err error) {
	*m = rawMapping{attributes: m.attributes[:0], key: m.key[:0]}
	k := protobuf.Fields(b)
	for k.Next() {
		ok := true
		switch k.Number {
		case 1:
			m.start = k.Value
		case 2:
			m.limit = k.Value
		case 3:
			m.offset = k.Value
		case 4:
			m.file, err = r.entry(stringTable, k.Value)
		case mappingAttributes:
			if m.attributes, ok = protobuf.Numbers(m.attributes, &k.Field); !ok {
				err = protobuf.ErrMalformed
			}
		}
		if err != nil {
			return err
		}
	}
	if k.Err != nil {
		return k.Err
	}
	for _, n := range []uint64{m.start, m.limit, m.offset, uint64(len(m.file))} {
		m.key = binary.LittleEndian.AppendUint64(m.key, n)
	}
	m.key = append(m.key, m.file...)
	for _, i := range m.attributes {
		a, err := r.attribute(i)
		if err != nil {
			return err
		}
		if a.kind == buildIDKind {
			m.key = protobuf.AppendVarint(append(m.key, a.key...), uint64(len(a.value)))
			m.key = append(m.key, a.value...)
		}
	}
	return nil
}

// newMapping returns the object of a mapping. Of several IDs of a file it has the GNU build ID,
// otherwise that of Go, otherwise the hash.
func (r *messageReader) newMapping(raw *rawMapping, kernel bool) *named.Mapped {
	m := named.Mapping{Start: raw.start, Limit: raw.limit, Offset: raw.offset, File: string(raw.file)}
	rank := 0
	for _, i := range raw.attributes {
		a, _ := r.attribute(i) // was decoded before
		if a.kind != buildIDKind {
			continue
		}
		var t ingest.Tag
		r.tag(&t, a.value)
		if id, n := fileID(string(a.key), t.Text); n > rank {
			m.ID, rank = id, n
		}
	}
	if kernel {
		nameKernel(&m)
	}
	return r.b.Map(m)
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
func (r *messageReader) place(i uint64) (uint32, error) {
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
		m, err := r.mapping(l.mapping, l.frame.name == frameKernel)
		if err != nil {
			return 0, err
		}
		pl.Object, pl.Offset = r.b.Locate(m, l.address)
	} else {
		pl.Object = r.withoutFile(l.frame)
	}
	if pl.Frames, err = r.lineFrames(pl.Object, l.lines); err != nil {
		return 0, err
	}
	if l.mapping == 0 && len(pl.Frames) > 0 && (l.frame.name != "" || l.address == 0) {
		pl.Offset = r.nameOffset(pl.Frames)
	}
	n := r.b.Join(pl)
	r.places[i] = n + 1
	return n, nil
}

// lineFrames returns the frames of lines. A place is named as a whole, or not at all: then its names
// come from the store.
func (r *messageReader) lineFrames(object uint32, lines []line) ([]ingest.Frame, error) {
	r.frames = r.frames[:0]
	named := true
	for k := range lines {
		ln := &lines[k]
		fn, err := r.function(object, ln.function)
		if err != nil {
			return nil, err
		}
		named = named && fn != noFunction
		r.frames = append(r.frames, ingest.Frame{Func: fn, Line: clamp(ln.line), Column: clamp(ln.column)})
	}
	if !named {
		return nil, nil
	}
	return r.frames, nil
}

func clamp(v int64) int32 { return int32(min(max(v, 0), math.MaxInt32)) }

// location is a decoded location. Its slices are reused.
type location struct {
	mapping, address uint64
	frame            *frameType
	lines            []line
	attributes       []uint64
}

// line is a decoded line.
type line struct {
	function     uint64
	line, column int64
}

// frameType is a type of frames.
type frameType struct {
	name   string
	object uint32 // the object + 1 of frames without a mapping; 0 if there is none yet
}

// readLocation decodes a location.
func (r *messageReader) readLocation(l *location, b []byte) error {
	*l = location{frame: &r.noType, lines: l.lines[:0], attributes: l.attributes[:0]}
	k := protobuf.Fields(b)
	for k.Next() {
		ok := true
		switch k.Number {
		case locationMapping:
			l.mapping = k.Value
		case locationAddress:
			l.address = k.Value
		case locationLine:
			ln, err := readLine(k.Body)
			if err != nil {
				return err
			}
			l.lines = append(l.lines, ln)
		case locationAttributes:
			if l.attributes, ok = protobuf.Numbers(l.attributes, &k.Field); !ok {
				return protobuf.ErrMalformed
			}
		}
	}
	if k.Err != nil {
		return k.Err
	}
	for _, i := range l.attributes {
		a, err := r.attribute(i)
		if err != nil {
			return err
		}
		if a.kind == frameTypeKind {
			l.frame = r.frameType(a)
		}
	}
	return nil
}

// frameType returns the type of frames in an attribute.
func (r *messageReader) frameType(a *attribute) *frameType {
	if a.frame == nil {
		var t ingest.Tag
		r.tag(&t, a.value)
		if a.frame = r.frameTypes[t.Text]; a.frame == nil {
			a.frame = &frameType{name: t.Text}
			r.frameTypes[t.Text] = a.frame
		}
	}
	return a.frame
}

func readLine(b []byte) (ln line, err error) {
	k := protobuf.Fields(b)
	for k.Next() {
		switch k.Number {
		case 1:
			ln.function = k.Value
		case 2:
			ln.line = int64(k.Value)
		case 3:
			ln.column = int64(k.Value)
		}
	}
	return ln, k.Err
}

// functionNames has the texts of a function.
type functionNames struct {
	name, system, file []byte
	start              int64
}

func (c *contents) functionNames(i uint64) (n functionNames, err error) {
	b, err := c.entry(functionTable, i)
	k := protobuf.Fields(b)
	for k.Next() && err == nil {
		switch k.Number {
		case 1:
			n.name, err = c.entry(stringTable, k.Value)
		case 2:
			n.system, err = c.entry(stringTable, k.Value)
		case 3:
			n.file, err = c.entry(stringTable, k.Value)
		case 4:
			n.start = int64(k.Value)
		}
	}
	return n, cmp.Or(err, k.Err)
}

// noFunction is the number of a function without a name.
const noFunction = ^ingest.FuncID(0)

// objectFunction is a function as one object has it.
type objectFunction struct {
	object uint32 // + 1; 0 for none
	id     ingest.FuncID
}

// function returns the Builder's number of a function; noFunction if it has no name. Strings are
// copied only if it is new.
func (r *messageReader) function(object uint32, i uint64) (ingest.FuncID, error) {
	if i < uint64(len(r.functions)) && r.functions[i].object == object+1 {
		return r.functions[i].id, nil
	}
	n, err := r.functionNames(i)
	if err != nil {
		return 0, err
	}
	if len(n.system) == 0 {
		n.system = n.name
	}
	id := noFunction
	if len(n.system) > 0 {
		k := protobuf.AppendVarint(r.key[:0], uint64(object))
		k = protobuf.AppendVarint(k, uint64(n.start))
		k = protobuf.AppendVarint(k, uint64(len(n.system)))
		r.key = append(append(k, n.system...), n.file...)
		known, fresh := r.functionsAt.Add(r.seed.Hash(r.key))
		if fresh {
			*known = r.b.Function(ingest.Function{Object: ingest.ObjectID(object),
				SystemName: string(n.system), File: string(n.file), StartLine: clamp(n.start)})
		}
		id = *known
	}
	r.functions[i] = objectFunction{object + 1, id}
	return id, nil
}

// withoutFile returns the object of frames without a mapping: one for each interpreter, and one for
// native addresses outside of all mappings.
func (r *messageReader) withoutFile(t *frameType) uint32 {
	if t.object == 0 {
		o := ingest.Object{Kind: ingest.Unmapped, Kernel: ingest.NoObject, Reason: ingest.OutsideMapping}
		if t.name != "" && t.name != frameNative {
			o.File.Path = "[" + t.name + "]"
		}
		t.object = r.b.Object(o) + 1
	}
	return t.object - 1
}

// nameOffset returns the Offset of a place without an address: a hash of its names, so that it is
// the same in all files.
func (r *messageReader) nameOffset(frames []ingest.Frame) addr.Offset {
	h := uint64(0)
	for _, f := range frames {
		at := int(f.Func)
		for len(r.hashes) <= at {
			r.hashes = append(r.hashes, 0)
		}
		if r.hashes[at] == 0 {
			fn := r.b.FunctionAt(f.Func)
			w := fnv.New64a()
			io.WriteString(w, fn.SystemName+"\x00"+fn.File+"\x00"+strconv.Itoa(int(fn.StartLine)))
			r.hashes[at] = w.Sum64() | 1
		}
		for _, n := range [...]uint64{r.hashes[at], uint64(f.Line), uint64(f.Column)} {
			h = (bits.RotateLeft64(h, 5) ^ n) * 0x9e3779b97f4a7c15
		}
	}
	return addr.Offset(h >> 1)
}

// stack returns the Builder's number of a stack.
func (r *messageReader) stack(i uint64) (ingest.StackID, error) {
	if i < uint64(len(r.stacks)) && r.stacks[i] != 0 {
		return ingest.StackID(r.stacks[i] - 1), nil
	}
	b, err := r.entry(stackTable, i)
	if err != nil {
		return 0, err
	}
	r.indices, r.list = r.indices[:0], r.list[:0]
	k := protobuf.Fields(b)
	for ok := true; ok && k.Next(); {
		if k.Number == 1 {
			if r.indices, ok = protobuf.Numbers(r.indices, &k.Field); !ok {
				k.Err = protobuf.ErrMalformed
			}
		}
	}
	if k.Err != nil {
		return 0, k.Err
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
