package stackmap

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"

	"symbolize/ingest/format/mapdump"
	"symbolize/ingest/format/rawdump"
)

// Dumped is a stack of a stack map.
type Dumped struct {
	ID     int64  // its key, as the key of a count map has it; 0 if Key is set
	Key    string // a key of more than 8 bytes, in hexadecimal
	Part   Part
	Kernel bool // it is a kernel stack
}

// ReadMap reads the stacks of a stack map with their keys, in the order of the dump. Each is a sample
// of count 1, except empty ones. With an error the results have the whole stacks before it; the Set
// is nil if there are none.
func ReadMap(in *Input) (*Set, []Dumped, error) {
	set := newSet(Sniff(in))
	defer set.finish()
	set.bound(in.Size)
	set.Counted = true
	t, err := readTable(set, in, &Options{})
	if t == nil {
		return nil, nil, err
	}
	list := make([]Dumped, len(t.list))
	for id, n := range t.byID {
		d := &list[n]
		if d.Part = t.list[n].part; t.longKeys {
			d.Key = hex.EncodeToString(id[:t.keySize])
		} else {
			d.ID = int64(binary.LittleEndian.Uint64(id[:]))
		}
		d.Kernel = d.Part.Cause == Present && set.isKernel(d.Part.Stack)
	}
	for i := range list {
		if p := list[i].Part; p.Cause == Present {
			set.addUnclassified(p, Sample{PID: -1, TID: -1, Count: 1})
		}
	}
	return set, list, err
}

// guessedWords is the smallest size in words of values that LooksLikeMap accepts.
const guessedWords = 8

// LooksLikeMap reports whether all values of a dump without the type of its map have the form of
// stacks: records with a status, or code addresses, up to a first zero and zeros after it. Values of
// a few numbers are never accepted, as times look like addresses.
func LooksLikeMap(in *Input, h *rawdump.Header) bool {
	if h.Type != 0 || h.KeySize != intSize || h.CPUs > 0 || h.ValueSize < guessedWords*addressSize {
		return false
	}
	l, err := guessLayout(in)
	if err != nil {
		return false
	}
	d, err := mapdump.Open(in.Name, in.R, in.Size)
	if err != nil || d.Types != nil {
		return false
	}
	some := false
	for {
		_, values, ok := d.Next()
		if !ok {
			return some
		}
		frames := l.frames(values[0])
		if !l.possible(frames) || len(bytes.Trim(values[0][len(frames):], "\x00")) > 0 {
			return false
		}
		some = some || len(frames) > 0
	}
}

// possible reports whether all frames of a value can be frames.
func (l layout) possible(frames []byte) bool {
	for ; len(frames) > 0; frames = frames[l.frameSize():] {
		if one := (layout{depth: l.depth}); !one.guess(frames[:l.frameSize()]) || one != l {
			return false
		}
	}
	return true
}
