package pprof

import (
	"errors"
	"fmt"
	"slices"

	"github.com/google/pprof/profile"

	"symbolize/ingest/protobuf"
)

// Numbers of fields of Sample and Label in profile.proto; Profile's are in encode.go.
const (
	sampleLocation = 1
	sampleValue    = 2
	sampleLabel    = 3
	labelKey       = 1
	labelText      = 2
	labelNumber    = 3
	labelUnit      = 4
)

// errMalformed is the error of a sample that is not a valid message.
var errMalformed = errors.New("malformed sample")

// withoutSamples returns a profile without its samples, and its strings. In google/pprof a sample
// of 30 frames needs more than a kilobyte, and samples are by far the largest part of most
// profiles: they are decoded one by one instead. It stops at a malformed field, which the decoder
// reports.
func withoutSamples(data []byte) (others []byte, texts [][]byte) {
	k := protobuf.Fields(data)
	for k.Next() {
		if k.Number == profString && k.Wire == protobuf.Bytes {
			texts = append(texts, k.Body)
		}
		if k.Number != profSample || k.Wire != protobuf.Bytes {
			others = append(others, k.Raw()...)
		}
	}
	return append(others, data[k.At():]...), texts
}

// sample is a decoded sample. Its slices are reused for the next one.
type sample struct {
	locations []uint64 // ids
	values    []int64
	labels    []label
}

// label is a label with a text, or with a number if text is nil.
type label struct {
	key, text, unit       []byte
	keyAt, textAt, unitAt uint64 // indices of strings
	number                int64
}

// find returns the first label with a key and a text or a number.
func (s *sample) find(key string, text bool) *label {
	for i := range s.labels {
		if l := &s.labels[i]; string(l.key) == key && (l.text != nil) == text {
			return l
		}
	}
	return nil
}

// sampleReader decodes the samples of a profile one after another.
type sampleReader struct {
	k     protobuf.Cursor // of the profile
	texts [][]byte
	types int // values of a sample
	s     sample
}

// next returns the next sample, valid until the following call; nil at the end.
func (r *sampleReader) next() (*sample, error) {
	for r.k.Next() {
		if r.k.Number == profSample && r.k.Wire == protobuf.Bytes {
			return &r.s, r.decode(r.k.Body)
		}
	}
	if r.k.Err != nil {
		return nil, errMalformed
	}
	return nil, nil
}

func (r *sampleReader) decode(b []byte) error {
	s := &r.s
	s.locations, s.values, s.labels = s.locations[:0], s.values[:0], s.labels[:0]
	k := protobuf.Fields(b)
	for ok := true; k.Next(); {
		switch k.Number {
		case sampleLocation:
			s.locations, ok = protobuf.Numbers(s.locations, &k.Field)
		case sampleValue:
			s.values, ok = protobuf.Numbers(s.values, &k.Field)
		case sampleLabel:
			ok = k.Wire == protobuf.Bytes && r.label(k.Body)
		}
		if !ok {
			return errMalformed
		}
	}
	if k.Err != nil {
		return errMalformed
	}
	if len(s.values) != r.types {
		return fmt.Errorf("mismatch: sample has %d values vs. %d types", len(s.values), r.types)
	}
	return nil
}

// label adds a label, unless it has neither text nor number nor unit.
func (r *sampleReader) label(b []byte) bool {
	var key, text, number, unit uint64
	k := protobuf.Fields(b)
	for k.Next() {
		to := (*uint64)(nil)
		switch k.Number {
		case labelKey:
			to = &key
		case labelText:
			to = &text
		case labelNumber:
			to = &number
		case labelUnit:
			to = &unit
		default:
			continue
		}
		if k.Wire != protobuf.Varint {
			return false
		}
		*to = k.Value
	}
	if n := uint64(len(r.texts)); k.Err != nil || key >= n || text >= n || unit >= n {
		return false
	}
	l := label{key: r.texts[key], unit: r.texts[unit], keyAt: key, textAt: text, unitAt: unit,
		number: int64(number)}
	if text != 0 {
		l.text = r.texts[text]
	}
	if text != 0 || number != 0 || unit != 0 {
		r.s.labels = append(r.s.labels, l)
	}
	return true
}

// locationIndex finds locations by their IDs.
type locationIndex struct {
	dense []uint32 // number + 1 by ID; 0 for none
	rest  map[uint64]uint32
}

// newLocationIndex indexes the numbers of a profile's locations.
func newLocationIndex(list []*profile.Location, numbers map[*profile.Location]uint32) *locationIndex {
	const sparse = 4 // IDs are dense up to so many times their count
	x := &locationIndex{dense: make([]uint32, sparse*len(list)+1), rest: make(map[uint64]uint32)}
	for _, l := range list {
		n := numbers[l] + 1
		if l.ID < uint64(len(x.dense)) {
			x.dense[l.ID] = n
		} else {
			x.rest[l.ID] = n
		}
	}
	return x
}

// append appends the numbers of locations to a list.
func (x *locationIndex) append(to []uint32, ids []uint64) ([]uint32, error) {
	to = slices.Grow(to, len(ids))
	for _, id := range ids {
		n := uint32(0)
		if id < uint64(len(x.dense)) {
			n = x.dense[id]
		} else {
			n = x.rest[id]
		}
		if n == 0 {
			return to, errors.New("sample has nil location")
		}
		to = append(to, n-1)
	}
	return to, nil
}
