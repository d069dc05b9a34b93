package mapdump

import (
	"encoding/json"
	"io"
	"strconv"
)

// maxFormatted bounds the bytes of a dump that are read for their formatted parts.
const maxFormatted = 64 << 20

// FormattedPair is a pair of a dump of bpftool's JSON with its part formatted by BTF.
type FormattedPair struct {
	Key             []byte
	FormattedKey    json.RawMessage
	Values          [][]byte // of each CPU, or a single one
	FormattedValues []json.RawMessage
}

// Formatted visits the pairs of a JSON dump that have a formatted part, in their order,
// until visit returns false, or the dump ends or is invalid: bpftool's is, after floats.
// whole is false where unvisited pairs may remain.
func Formatted(r io.ReaderAt, size int64, visit func(*FormattedPair) bool) (whole bool) {
	d := json.NewDecoder(io.NewSectionReader(r, 0, min(size, maxFormatted)))
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return false
	}
	for d.More() {
		var e struct {
			Key, Value []string
			Values     []struct{ Value []string }
			Formatted  struct {
				Key, Value json.RawMessage
				Values     []struct{ Value json.RawMessage }
			}
		}
		if err := d.Decode(&e); err != nil {
			return false
		}
		p := FormattedPair{Key: hexBytes(e.Key), FormattedKey: e.Formatted.Key}
		if e.Formatted.Value != nil {
			p.Values = [][]byte{hexBytes(e.Value)}
			p.FormattedValues = []json.RawMessage{e.Formatted.Value}
		}
		for i := range min(len(e.Values), len(e.Formatted.Values)) {
			p.Values = append(p.Values, hexBytes(e.Values[i].Value))
			p.FormattedValues = append(p.FormattedValues, e.Formatted.Values[i].Value)
		}
		if p.FormattedKey == nil && p.FormattedValues == nil {
			continue
		}
		if !visit(&p) {
			return false
		}
	}
	_, err := d.Token()
	return err == nil
}

// hexBytes returns the bytes of "0x…" strings, nil where there are others.
func hexBytes(words []string) []byte {
	var b []byte
	for _, w := range words {
		v, err := strconv.ParseUint(w, 0, 8)
		if err != nil {
			return nil
		}
		b = append(b, byte(v))
	}
	return b
}
