package main

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"io"

	"symbolize/ingest/btf"
)

// runMapValues prints keys and values: by BTF, else as bytes.
func runMapValues(a *app, o *mapOptions, in *mapInputs) error {
	m, err := in.last(a)
	if err != nil {
		return err
	}
	if m.layout.Types == nil {
		a.note(m.title() + ": no BTF tells what keys and values are: they are bytes")
	}
	next, end, err := m.pairs()
	if err != nil {
		return err
	}
	err = a.writeOutput(o.output, false, func(w io.Writer) error {
		p := valuePrinter{m: m, json: o.format == formatJSON}
		return p.write(w, next)
	})
	m.tell(a, end())
	return err
}

// valuePrinter prints the pairs of a dump, one a line; in JSON one document.
type valuePrinter struct {
	m    *mapInput
	json bool
	line []byte
}

func (p *valuePrinter) write(w io.Writer, next func() ([]byte, [][]byte, bool)) error {
	if p.json {
		name, err := json.Marshal(p.m.title())
		if err != nil {
			return err
		}
		p.line = append(append(append(p.line[:0], `{"map":`...), name...), `,"elements":[`...)
		if _, err := w.Write(p.line); err != nil {
			return err
		}
	}
	first := true
	for key, values, ok := next(); ok; key, values, ok = next() {
		if err := p.pair(key, values, first); err != nil {
			return err
		}
		first = false
		if _, err := w.Write(p.line); err != nil {
			return err
		}
	}
	if p.json {
		_, err := io.WriteString(w, "\n]}\n")
		return err
	}
	return nil
}

func (p *valuePrinter) pair(key []byte, values [][]byte, first bool) error {
	l := &p.m.layout
	p.line = p.line[:0]
	if p.json {
		if !first {
			p.line = append(p.line, ',')
		}
		p.line = append(p.line, '\n', '{')
	}
	p.name("key")
	if err := p.value(l.Key, key); err != nil {
		return err
	}
	perCPU := p.m.header.CPUs > 0
	p.line = append(p.line, map[bool]string{true: ",", false: "  "}[p.json]...)
	if !perCPU {
		p.name("value")
		if err := p.value(l.Value, values[0]); err != nil {
			return err
		}
	} else {
		p.name("values")
		p.line = append(p.line, '[')
		for i, v := range values {
			if i > 0 {
				p.line = append(p.line, ',')
			}
			if err := p.value(l.Value, v); err != nil {
				return err
			}
		}
		p.line = append(p.line, ']')
	}
	if p.json {
		p.line = append(p.line, '}')
		return nil
	}
	p.line = append(p.line, '\n')
	return nil
}

func (p *valuePrinter) name(s string) {
	if p.json {
		p.line = append(append(append(p.line, '"'), s...), `":`...)
		return
	}
	p.line = append(append(p.line, s...), ": "...)
}

func (p *valuePrinter) value(id btf.ID, data []byte) (err error) {
	if p.m.layout.Types == nil {
		if p.json {
			p.line = append(p.line, '"')
		}
		p.line = hex.AppendEncode(p.line, data)
		if p.json {
			p.line = append(p.line, '"')
		}
		return nil
	}
	p.line, err = p.m.layout.Types.AppendValue(p.line, id, data, &btf.ValueOptions{JSON: true})
	p.line = bytes.ReplaceAll(p.line, []byte("\n"), []byte(" "))
	return err
}
