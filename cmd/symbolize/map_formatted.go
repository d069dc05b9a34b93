package main

import (
	"fmt"
	"slices"
	"strings"

	"symbolize/analyze/bpfmap"
	"symbolize/ingest/format/mapdump"
)

// infer takes the layout of keys, and of values, from what bpftool formatted by BTF that
// the dumps do not have, if the pairs of all of them tell it. It notes what was found.
func (in *mapInputs) infer(a *app) {
	first := &in.list[0].layout
	if slices.ContainsFunc(in.list, func(m *mapInput) bool {
		l := &m.layout
		return l.Types != nil || m.program != nil || l.BigEndian || l.KeySize == 0 ||
			l.KeySize != first.KeySize || l.ValueSize != first.ValueSize
	}) {
		return
	}
	var key, value bpfmap.Inferrer
	for _, m := range in.list {
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
	types, k, v, err := bpfmap.InferredTypes(keyFields, valueFields, first.KeySize,
		first.ValueSize)
	if err != nil {
		return // names that are none of BTF's
	}
	for _, m := range in.list {
		m.layout.Types, m.layout.Key, m.layout.Value = types, k, v
	}
	if !named {
		return // places that nobody doubts
	}
	a.note(fmt.Sprintf("%s: without BTF, by what bpftool printed: %s; %s",
		in.list[0].title(), placesText("key", keyFields), placesText("value", valueFields)))
}

// placesText says where fields were found.
func placesText(whole string, fields []bpfmap.Inferred) string {
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
