package main

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"

	"symbolize/ingest"
	"symbolize/ingest/object/btf"
)

// runMapValues prints keys and values: by BTF, else as bytes.
func runMapValues(a *app, o *mapOptions, in *mapInputs) error {
	m, err := in.last(a)
	if err != nil {
		return err
	}
	if m.layout.Types == nil {
		a.note(fmt.Sprintf("%s: %s: they are bytes", m.title(),
			cmp.Or(m.untyped, "no BTF tells what keys and values are")))
	}
	next, end, err := m.pairs()
	if err != nil {
		return err
	}
	var p pairPrinter = &hexPrinter{m: m}
	switch {
	case o.format == formatJSON:
		p = &jsonPrinter{m: m}
	case m.layout.Types != nil:
		p = &textPrinter{m: m}
	}
	var misfits misfits
	err = a.writeOutput(o.output, false, func(w io.Writer) error {
		b, err := p.begin(nil)
		for key, values, ok := next(); ok && err == nil; key, values, ok = next() {
			if b, err = misfits.take(p.pair(b, key, values)); err == nil {
				_, err = w.Write(b)
			}
			b = b[:0]
		}
		if err == nil {
			_, err = w.Write(p.end(b))
		}
		return err
	})
	m.tell(a, end())
	misfits.tell(a, m)
	return err
}

// misfits counts the pairs that are not as their types say.
type misfits struct {
	n     int
	first error
}

// take passes on what could be printed, and errors that are of no value.
func (x *misfits) take(b []byte, err error) ([]byte, error) {
	if errors.Is(err, btf.ErrShortValue) || errors.Is(err, btf.ErrLongValue) {
		if x.n++; x.first == nil {
			x.first = err
		}
		err = nil
	}
	return b, err
}

func (x *misfits) tell(a *app, m *mapInput) {
	if x.n > 0 {
		a.warn(fmt.Sprintf("%s: %d pairs are not as their types say: %v", m.title(), x.n, x.first),
			"name the object that the map is of with --btf")
	}
}

// pairPrinter prints the pairs of a map.
type pairPrinter interface {
	begin(b []byte) ([]byte, error)
	pair(b, key []byte, values [][]byte) ([]byte, error)
	end(b []byte) []byte
}

// textPrinter prints by BTF, in the layout of bpftool.
type textPrinter struct {
	m    *mapInput
	some bool
}

// Levels of indentation of a key or value, and of a CPU's value.
const (
	valueLevel    = 2
	cpuValueLevel = 4
)

func (p *textPrinter) begin(b []byte) ([]byte, error) { return append(b, '['), nil }

func (p *textPrinter) pair(b, key []byte, values [][]byte) (out []byte, err error) {
	l := &p.m.layout
	if p.some {
		b = append(b, ',')
	}
	p.some = true
	b = append(b, "{\n"...)
	var errs []error
	value := func(id btf.ID, data []byte, level int) {
		b, err = l.Types.AppendValue(b, id, data, &btf.ValueOptions{Indent: level})
		errs = append(errs, err)
	}
	if l.Key != 0 {
		b = append(b, `        "key": `...)
		value(l.Key, key, valueLevel)
		b = append(b, ",\n"...)
	}
	if p.m.header.CPUs == 0 {
		b = append(b, `        "value": `...)
		value(l.Value, values[0], valueLevel)
	} else {
		b = append(b, `        "values": [`...)
		for cpu, v := range values {
			if cpu > 0 {
				b = append(b, ',')
			}
			b = append(b, "{\n                \"cpu\": "...)
			b = strconv.AppendInt(b, int64(cpu), 10)
			b = append(b, ",\n                \"value\": "...)
			value(l.Value, v, cpuValueLevel)
			b = append(b, "\n            }"...)
		}
		b = append(b, "\n        ]"...)
	}
	return append(b, "\n    }"...), errors.Join(errs...)
}

func (p *textPrinter) end(b []byte) []byte {
	if p.some {
		b = append(b, '\n')
	}
	return append(b, "]\n"...)
}

// jsonPrinter prints one document, by BTF or in hexadecimal.
type jsonPrinter struct {
	m    *mapInput
	some bool
}

func (p *jsonPrinter) begin(b []byte) ([]byte, error) {
	name, err := ingest.MarshalJSON(p.m.title())
	b = append(append(b, `{"map":`...), name...)
	return append(b, `,"elements":[`...), err
}

func (p *jsonPrinter) pair(b, key []byte, values [][]byte) (out []byte, err error) {
	l := &p.m.layout
	if p.some {
		b = append(b, ',')
	}
	p.some = true
	b = append(b, "\n{"...)
	var errs []error
	value := func(id btf.ID, data []byte) {
		if l.Types == nil {
			b = append(hex.AppendEncode(append(b, '"'), data), '"')
			return
		}
		b, err = l.Types.AppendValue(b, id, data, &btf.ValueOptions{JSON: true})
		errs = append(errs, err)
	}
	if l.Key != 0 || l.Types == nil && len(key) > 0 {
		b = append(b, `"key":`...)
		value(l.Key, key)
		b = append(b, ',')
	}
	if p.m.header.CPUs == 0 {
		b = append(b, `"value":`...)
		value(l.Value, values[0])
	} else {
		b = append(b, `"values":[`...)
		for cpu, v := range values {
			if cpu > 0 {
				b = append(b, ',')
			}
			value(l.Value, v)
		}
		b = append(b, ']')
	}
	return append(b, '}'), errors.Join(errs...)
}

func (p *jsonPrinter) end(b []byte) []byte { return append(b, "\n]}\n"...) }

// hexPrinter prints bytes, in the layout of bpftool.
type hexPrinter struct {
	m *mapInput
	n int
}

// Where bpftool breaks lines, in bytes.
const (
	hexLine  = 16
	hexGroup = 8
	hexPair  = 24 // key and value in one line
)

func (p *hexPrinter) begin(b []byte) ([]byte, error) { return b, nil }

func (p *hexPrinter) pair(b, key []byte, values [][]byte) ([]byte, error) {
	p.n++
	perCPU := p.m.header.CPUs > 0
	long := !perCPU && (len(key) > hexLine || len(values[0]) > hexLine)
	if len(key) > 0 {
		b = append(b, "key:"...)
		b = appendHex(append(b, spaceOrLine(perCPU || long)), key)
		if !perCPU && !long && len(key)+len(values[0]) <= hexPair {
			b = append(b, "  "...)
		} else {
			b = append(b, '\n')
		}
	}
	for cpu, v := range values {
		b = append(b, "value"...)
		if perCPU {
			b = fmt.Appendf(b, " (CPU %02d)", cpu)
			long = len(v) > hexLine
		}
		b = appendHex(append(b, ':', spaceOrLine(long)), v)
		b = append(b, '\n')
	}
	return b, nil
}

func spaceOrLine(line bool) byte {
	if line {
		return '\n'
	}
	return ' '
}

func appendHex(b, data []byte) []byte {
	for i, c := range data {
		switch {
		case i == 0:
		case i%hexLine == 0:
			b = append(b, '\n')
		case i%hexGroup == 0:
			b = append(b, "  "...)
		default:
			b = append(b, ' ')
		}
		b = hex.AppendEncode(b, []byte{c})
	}
	return b
}

func (p *hexPrinter) end(b []byte) []byte {
	s := "s"
	if p.n == 1 {
		s = ""
	}
	return fmt.Appendf(b, "Found %d element%s\n", p.n, s)
}
