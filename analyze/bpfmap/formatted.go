package bpfmap

import (
	"fmt"
	"slices"
	"strings"

	"symbolize/ingest/format/mapdump"
)

// infer finds the layout of keys, and of values, in the text that bpftool formatted by BTF which
// the dumps do not have, if the pairs of all of them decide it. It notes the places it found.
func (in *Dumps) infer(log Log) {
	first := &in.List[0].Layout
	if slices.ContainsFunc(in.List, func(m *Dump) bool {
		l := &m.Layout
		return l.Types != nil || m.program != nil || l.BigEndian || l.KeySize == 0 ||
			l.KeySize != first.KeySize || l.ValueSize != first.ValueSize
	}) {
		return
	}
	var key, value Inferrer
	for _, m := range in.List {
		if !mapdump.Formatted(m.r, m.size, func(p *mapdump.FormattedPair) bool {
			for i := range p.Values {
				value.Add(p.Values[i], p.FormattedValues[i])
			}
			return key.Add(p.Key, p.FormattedKey)
		}) {
			return
		}
	}
	keyFields, ok := key.Fields()
	if !ok {
		return
	}
	valueFields, ok := value.Fields()
	named := keyFields[0].Name != "" || ok && valueFields[0].Name != ""
	switch {
	case !ok && !named:
		return // nothing but a number would be known
	case !ok:
		valueFields = nil // printed as bytes
	}
	types, k, v, err := InferredTypes(keyFields, valueFields, first.KeySize,
		first.ValueSize)
	if err != nil {
		return // names that are not from BTF
	}
	for _, m := range in.List {
		m.Layout.Types, m.Layout.Key, m.Layout.Value = types, k, v
	}
	if !named {
		return // places that nobody doubts
	}
	log.Note(fmt.Sprintf("%s: without BTF, by what bpftool printed: %s; %s",
		in.List[0].Title(), placesText("key", keyFields), placesText("value", valueFields)))
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
