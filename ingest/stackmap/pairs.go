package stackmap

import (
	"errors"
	"fmt"
	"io"

	"symbolize/ingest/bundle"
)

// Input is a file that Read takes, whole or a part of another.
type Input struct {
	Name string // for messages
	R    io.ReaderAt
	Size int64
}

func (in *Input) reader() io.Reader { return io.NewSectionReader(in.R, 0, in.Size) }

// head returns the first n bytes, fewer if there are no more.
func (in *Input) head(n int) []byte {
	b := make([]byte, min(int64(n), max(in.Size, 0)))
	got, err := in.R.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil
	}
	return b[:got]
}

// pairReader gives the pairs of a map. What next returns is valid until the next call.
type pairReader interface {
	next() (key []byte, values [][]byte, ok bool)
	damage() error // why next ended; nil at the end
}

// openPairs opens a dump of a map: raw, or of bpftool. header is nil but for a raw one.
func openPairs(in *Input) (p pairReader, header *bundle.DumpHeader, err error) {
	if bundle.IsDump(in.head(rawMagic)) {
		d, err := bundle.OpenDump(in.Name, in.R, in.Size)
		if err != nil {
			return nil, nil, err
		}
		return &rawPairs{d: d}, &d.Header, nil
	}
	return &hexPairs{newHexDump(in.Name, in.reader())}, nil, nil
}

const rawMagic = 8

type rawPairs struct {
	d      *bundle.DumpReader
	values [][]byte
}

func (r *rawPairs) next() ([]byte, [][]byte, bool) {
	key, value, ok := r.d.Next()
	if !ok {
		return nil, nil, false
	}
	h := &r.d.Header
	r.values = r.values[:0]
	for i := range max(1, int(h.CPUs)) {
		r.values = append(r.values, h.CPUValue(value, i))
	}
	return key, r.values, true
}

func (r *rawPairs) damage() error { return r.d.Err() }

type hexPairs struct{ h *hexDump }

func (x *hexPairs) next() ([]byte, [][]byte, bool) {
	if !x.h.next() {
		return nil, nil, false
	}
	return x.h.key, x.h.values[:x.h.n], true
}

func (x *hexPairs) damage() error { return x.h.err }

// table is a stack map: stacks by their ids.
type table struct {
	set    *Set
	layout layout
	known  bool // layout is
	byID   map[int64]Part
	order  []int64 // ids as they came
}

// bpf_map_type and map flag of stack maps (include/uapi/linux/bpf.h).
const (
	mapTypeStackTrace = 7
	flagStackBuildID  = 1 << 5
)

// readTable reads a stack map. The table holds what was whole before the error.
func readTable(set *Set, in *Input, opts *Options) (*table, error) {
	p, h, err := openPairs(in)
	if err != nil {
		return nil, err
	}
	t := &table{set: set, byID: make(map[int64]Part)}
	if h != nil {
		if h.Type != mapTypeStackTrace {
			return nil, fmt.Errorf("%s: %w: the map %q is of type %d, no map of stacks", in.Name,
				ErrNotStacks, h.Name, h.Type)
		}
		t.layout = layout{buildID: h.Flags&flagStackBuildID != 0, big: h.BigEndian}
		t.known = true
	}
	t.layout.depth = opts.Depth
	var frames []Frame
	var waiting []int64 // ids of stacks before the first that tells the layout: empty ones
	for {
		key, values, ok := p.next()
		if !ok {
			break
		}
		if len(key) != 4 || len(values) != 1 {
			return t, fmt.Errorf("%s: %w: keys of a stack map have 4 bytes, these %d", in.Name,
				ErrNotStacks, len(key))
		}
		if !t.known {
			var l layout
			if l, t.known = guessLayout(values[0]); t.known {
				l.depth = opts.Depth
				t.layout = l
			}
		}
		id, frames2 := stackKey(key, t.layout.big), frames[:0]
		if !t.known {
			waiting = append(waiting, id)
			continue
		}
		frames = t.layout.decode(set, frames2, values[0])
		t.put(id, set.add(frames))
	}
	for _, id := range waiting {
		t.put(id, Part{Cause: NotTaken})
	}
	return t, p.damage()
}

// stackKey is the key of a stack map, in the machine's byte order: a bucket.
func stackKey(key []byte, big bool) int64 { return signed(key, big) }

func (t *table) put(id int64, p Part) {
	if _, ok := t.byID[id]; !ok {
		t.order = append(t.order, id)
	}
	t.byID[id] = p
}

// Errnos that bpf_get_stackid returns in place of an id.
const (
	errNoMemory = -12
	errFault    = -14
	errExists   = -17
)

// part returns the stack with an id, or why there is none.
func (t *table) part(id int64) Part {
	switch {
	case id >= 0:
		if p, ok := t.byID[id]; ok {
			return p
		}
		return Part{Cause: NotDumped}
	case id == errFault:
		return Part{Cause: Absent}
	case id == errExists:
		return Part{Cause: BucketTaken}
	case id == errNoMemory:
		return Part{Cause: NoMemory}
	}
	return Part{Cause: OtherError}
}

// signed reads a number of 1 to 8 bytes in the machine's order, with its sign.
func signed(b []byte, big bool) int64 {
	v := unsigned(b, big)
	shift := 64 - 8*uint(len(b))
	return int64(v<<shift) >> shift
}

// unsigned reads a number of up to 8 bytes in the machine's order.
func unsigned(b []byte, big bool) uint64 {
	v := uint64(0)
	for i := range b {
		at := len(b) - 1 - i
		if big {
			at = i
		}
		v = v<<8 | uint64(b[at])
	}
	return v
}
