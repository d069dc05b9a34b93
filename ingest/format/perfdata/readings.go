package perfdata

import "encoding/binary"

// Reading is the value of a counter in the READ field of a sample: the events counted since it was
// opened.
type Reading struct {
	ID    uint64 // of the counter
	Value uint64
}

// Readings appends the counters of a sample's READ field to list, in the order of the record:
// those of all members of the sample's group, or the sample's own. A reading without an ID of
// its own has the sample's; nothing is appended if that has none either.
func (f *File) Readings(s *Sample, list []Reading) []Reading {
	if len(s.Read) == 0 || s.Event >= len(f.Events) {
		return list
	}
	format := f.Events[s.Event].Attr.ReadFormat
	word := func(at int) uint64 { return binary.LittleEndian.Uint64(s.Read[8*at:]) }
	if format&ReadGroup == 0 {
		r := Reading{ID: s.ID, Value: word(0)}
		if format&ReadID != 0 {
			r.ID = word(1 + format.times())
		}
		if r.ID == 0 {
			return list
		}
		return append(list, r)
	}
	if format&ReadID == 0 {
		return list // nothing assigns the values to counters
	}
	for at := 1 + format.times(); at+format.each() <= len(s.Read)/8; at += format.each() {
		list = append(list, Reading{Value: word(at), ID: word(at + 1)})
	}
	return list
}

// EventOfID returns the index in Events of the event that has a counter.
func (f *File) EventOfID(id uint64) (index int, ok bool) {
	if f.ids.first {
		return 0, len(f.Events) > 0
	}
	return f.ids.find(id)
}
