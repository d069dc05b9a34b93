package bpfmap

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"

	"symbolize/ingest/object/btf"
	"symbolize/ingest/texts"
)

// Values prints the keys and values of a dump.
type Values struct {
	m       *Dump
	p       pairPrinter
	next    Pairs
	end     func() error
	misfits misfits
}

// Values returns a printer of keys and values: as JSON, or in the layout of bpftool by BTF,
// else as bytes.
func (m *Dump) Values(json bool, log Log) (*Values, error) {
	if m.Layout.Types == nil {
		log.Note(fmt.Sprintf("%s: %s: they are bytes", m.Title(),
			cmp.Or(m.Untyped, "no BTF describes keys and values")))
	}
	next, end, err := m.pairs()
	if err != nil {
		return nil, err
	}
	v := &Values{m: m, p: &hexPrinter{m: m}, next: next, end: end}
	switch {
	case json:
		v.p = &jsonPrinter{m: m}
	case m.Layout.Types != nil:
		v.p = &textPrinter{m: m}
	}
	return v, nil
}

// Write prints all pairs, once.
func (v *Values) Write(w io.Writer) error {
	b, err := v.p.begin(nil)
	for key, values, ok := v.next(); ok && err == nil; key, values, ok = v.next() {
		if b, err = v.misfits.countValue(v.p.pair(b, key, values)); err == nil {
			_, err = w.Write(b)
		}
		b = b[:0]
	}
	if err == nil {
		_, err = w.Write(v.p.end(b))
	}
	return err
}

// Report logs damage, and pairs that do not fit their types, after Write.
func (v *Values) Report(log Log) {
	v.m.report(log, v.end())
	v.misfits.report(log, v.m)
}

// misfits counts the pairs that do not fit their types.
type misfits struct {
	n     int
	first error
}

// countValue counts errors of values, and returns all others.
func (x *misfits) countValue(b []byte, err error) ([]byte, error) {
	if errors.Is(err, btf.ErrShortValue) || errors.Is(err, btf.ErrLongValue) {
		if x.n++; x.first == nil {
			x.first = err
		}
		err = nil
	}
	return b, err
}

func (x *misfits) report(log Log, m *Dump) {
	if x.n > 0 {
		log.Warn(fmt.Sprintf("%s: %d pairs are not as their types say: %v", m.Title(), x.n, x.first),
			"name the object of the map with --btf")
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
	m    *Dump
	some bool
}

// Levels of indentation of a key or value, and of a CPU's value.
const (
	valueLevel    = 2
	cpuValueLevel = 4
)

func (p *textPrinter) begin(b []byte) ([]byte, error) { return append(b, '['), nil }

func (p *textPrinter) pair(b, key []byte, values [][]byte) (out []byte, err error) {
	l := &p.m.Layout
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
	if p.m.Header.CPUs == 0 {
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
	m    *Dump
	some bool
}

func (p *jsonPrinter) begin(b []byte) ([]byte, error) {
	name := p.m.mapName()
	b = texts.AppendJSONString(append(b, `{"schema":"map/1","map":`...), name.Map)
	if name.ID != 0 {
		b = strconv.AppendUint(append(b, `,"map_id":`...), uint64(name.ID), 10)
	}
	return append(b, `,"elements":[`...), nil
}

func (p *jsonPrinter) pair(b, key []byte, values [][]byte) (out []byte, err error) {
	l := &p.m.Layout
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
	if p.m.Header.CPUs == 0 {
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
	m *Dump
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
	perCPU := p.m.Header.CPUs > 0
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
