package otlp

import (
	"slices"

	"symbolize/ingest/protobuf"
)

// upgrade brings the profiles of the current message, which are in the form of release 1.8 or 1.9,
// into the current form.
func (c *contents) upgrade() error {
	data := slices.Clip(c.data) // is copied
	for i, s := range c.resources {
		body, err := rebuild(c.bytes(s), []uint64{resourceScopes, scopeProfile}, upgradeProfile)
		if err != nil {
			return err
		}
		c.resources[i] = span{uint32(len(data)), uint32(len(body))}
		data = append(data, body...)
	}
	c.data = data
	return nil
}

// rebuild returns a message with the parts that a path of numbers of fields leads to changed.
func rebuild(b []byte, path []uint64, change func([]byte) ([]byte, error)) (out []byte, err error) {
	for len(b) > 0 {
		f, rest, ok := protobuf.Next(b)
		if !ok {
			return nil, errMalformed
		}
		if f.Number != path[0] || f.Wire != protobuf.Bytes {
			out = append(out, b[:len(b)-len(rest)]...)
			b = rest
			continue
		}
		var body []byte
		if len(path) == 1 {
			body, err = change(f.Body)
		} else {
			body, err = rebuild(f.Body, path[1:], change)
		}
		if err != nil {
			return nil, err
		}
		out = protobuf.AppendBytes(out, int(f.Number), body)
		b = rest
	}
	return out, nil
}

// The numbers that fields of Sample have now, by those in release 1.8 and 1.9; the same for fields of
// Profile, which release 1.9 renumbered. 0 is for a field that is gone: comments.
var (
	sampleNumbers  = []uint64{0, 1, sampleValues, sampleAttributes, sampleLink, sampleTimes}
	profileNumbers = []uint64{0, 1, 2, 3, 4, 5, 6, 0, 7, 8, 9, 10, profileAttributes}
)

// upgradeProfile changes a Profile of release 1.8 or 1.9.
func upgradeProfile(b []byte) ([]byte, error) {
	out, err := rebuild(b, []uint64{profileSample}, func(s []byte) ([]byte, error) {
		return renumber(s, sampleNumbers)
	})
	for left := b; len(left) > 0 && err == nil; {
		f, rest, _ := protobuf.Next(left) // was decoded before
		if f.Number == 12 || f.Number == 8 && f.Wire == protobuf.Bytes ||
			f.Number == 9 && f.Wire == protobuf.Varint { // types of release 1.8 alone
			return renumber(out, profileNumbers)
		}
		left = rest
	}
	return out, err
}

// renumber changes the numbers of fields.
func renumber(b []byte, numbers []uint64) (out []byte, err error) {
	for len(b) > 0 {
		f, rest, ok := protobuf.Next(b)
		if !ok {
			return nil, errMalformed
		}
		field := b[:len(b)-len(rest)]
		b = rest
		switch n := f.Number; {
		case n >= uint64(len(numbers)):
			out = append(out, field...)
		case numbers[n] != 0: // tags of known fields have one byte
			out = append(append(out, byte(numbers[n]<<3|uint64(f.Wire))), field[1:]...)
		}
	}
	return out, nil
}
