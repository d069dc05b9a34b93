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
	k := protobuf.Fields(b)
	for k.Next() {
		if k.Number != path[0] || k.Wire != protobuf.Bytes {
			out = append(out, k.Raw()...)
			continue
		}
		var body []byte
		if len(path) == 1 {
			body, err = change(k.Body)
		} else {
			body, err = rebuild(k.Body, path[1:], change)
		}
		if err != nil {
			return nil, err
		}
		out = protobuf.AppendBytes(out, int(k.Number), body)
	}
	return out, k.Err
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
	for k := protobuf.Fields(b); err == nil && k.Next(); {
		if k.Number == 12 || k.Number == 8 && k.Wire == protobuf.Bytes ||
			k.Number == 9 && k.Wire == protobuf.Varint { // types of release 1.8 alone
			return renumber(out, profileNumbers)
		}
	}
	return out, err
}

// renumber changes the numbers of fields.
func renumber(b []byte, numbers []uint64) (out []byte, err error) {
	k := protobuf.Fields(b)
	for k.Next() {
		field := k.Raw()
		switch n := k.Number; {
		case n >= uint64(len(numbers)):
			out = append(out, field...)
		case numbers[n] != 0: // tags of known fields have one byte
			out = append(append(out, byte(numbers[n]<<3|uint64(k.Wire))), field[1:]...)
		}
	}
	return out, k.Err
}
