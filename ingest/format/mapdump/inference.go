package mapdump

import (
	"fmt"
	"io"
	"strings"

	"symbolize/ingest/object/btf"
)

// Source is the file of a dump.
type Source struct {
	R    io.ReaderAt
	Size int64
}

// Inference is what the formatted parts of dumps show about keys and values.
type Inference struct {
	Types      *btf.Types
	Key, Value btf.ID
	// Note describes the places of the members; "" if nobody doubts them: whole numbers.
	Note string
}

// Infer finds the layout of keys, and of values, of these sizes in bytes, by the parts of JSON dumps
// that bpftool formatted by BTF which the dumps do not have, if the pairs of all of them decide it.
// ok is false if they do not.
func Infer(dumps []Source, keySize, valueSize int) (x Inference, ok bool) {
	var key, value Inferrer
	for _, d := range dumps {
		if !Formatted(d.R, d.Size, func(p *FormattedPair) bool {
			for i := range p.Values {
				value.Add(p.Values[i], p.FormattedValues[i])
			}
			return key.Add(p.Key, p.FormattedKey)
		}) {
			return x, false
		}
	}
	keyFields, ok := key.Fields()
	if !ok {
		return x, false
	}
	valueFields, ok := value.Fields()
	named := keyFields[0].Name != "" || ok && valueFields[0].Name != ""
	switch {
	case !ok && !named:
		return x, false // nothing but a number would be known
	case !ok:
		valueFields = nil // printed as bytes
	}
	types, k, v, err := InferredTypes(keyFields, valueFields, keySize, valueSize)
	if err != nil {
		return x, false // names that are not from BTF
	}
	x = Inference{Types: types, Key: k, Value: v}
	if named {
		x.Note = placesText("key", keyFields) + "; " + placesText("value", valueFields)
	}
	return x, true
}

// placesText lists the places of fields.
func placesText(whole string, fields []Inferred) string {
	if fields == nil {
		return whole + " of bytes"
	}
	var parts []string
	for _, f := range fields {
		parts = append(parts, strings.TrimPrefix(fmt.Sprintf("%s at %d of %d", f.Name, f.Offset,
			f.Size), " "))
	}
	return whole + " " + strings.Join(parts, ", ")
}
