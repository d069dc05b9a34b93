package main

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"slices"

	"symbolize/analyze/report"
	"symbolize/ingest"
	"symbolize/store"
)

// maxLookups is how many objects a manyLooker has open at a time.
const maxLookups = 32

// manyLooker answers lines that name their object themselves, as llvm-symbolizer takes
// them that is given none: `FILE ADDR`, `"FILE" ADDR`, `CODE "FILE" ADDR`.
type manyLooker struct {
	ctx    context.Context
	a      *app
	o      *lookupOptions
	reader *store.Reader // nil without a store
	open   []*looker     // the one used last at the end
	failed map[string]string
}

func newManyLooker(ctx context.Context, a *app, o *lookupOptions) (*manyLooker, error) {
	reader, err := a.lookupStore(false)
	if err != nil {
		return nil, err
	}
	return &manyLooker{ctx: ctx, a: a, o: o, reader: reader, failed: make(map[string]string)}, nil
}

// Close closes all objects, and says what was wrong with them.
func (m *manyLooker) Close() error {
	var err error
	for _, l := range m.open {
		err = cmp.Or(err, m.finish(l))
	}
	if m.reader != nil {
		err = cmp.Or(err, m.reader.Close())
	}
	return err
}

func (m *manyLooker) finish(l *looker) error {
	m.a.sayLookup(l)
	return l.obj.Close()
}

// lines answers whole lines, those of one object that stand together at once.
func (m *manyLooker) lines(w io.Writer, text []byte) error {
	var l *looker
	last := ""
	flush := func() error {
		if l == nil {
			return nil
		}
		defer func() { l = nil }()
		return l.batch(w)
	}
	for line := range bytes.Lines(text) {
		line = bytes.TrimRight(line, "\r\n")
		file, address, ok := splitQuery(line)
		value, valid := parseAddress(address)
		if l != nil && (!ok || !valid || file != last) {
			if err := flush(); err != nil {
				return err
			}
		}
		if !ok || !valid {
			if err := m.write(w, &report.Answer{Input: string(line), Module: file}); err != nil {
				return err
			}
			continue
		}
		if l == nil {
			last = file
			if l = m.looker(file); l == nil {
				a := report.Answer{Valid: true, Address: value, Module: file, Error: m.failed[file]}
				if err := m.write(w, &a); err != nil {
					return err
				}
				continue
			}
			l.reset()
		}
		l.add(address)
	}
	return flush()
}

// write prints an answer that no object gives.
func (m *manyLooker) write(w io.Writer, a *report.Answer) error {
	_, err := w.Write(m.o.appendAnswer(nil, a))
	return err
}

// looker returns that of a file, nil if it cannot be opened, which is said once.
func (m *manyLooker) looker(file string) *looker {
	if i := slices.IndexFunc(m.open, func(l *looker) bool { return l.o.file == file }); i >= 0 {
		l := m.open[i]
		m.open = append(slices.Delete(m.open, i, i+1), l)
		return l
	}
	if _, known := m.failed[file]; known || m.ctx.Err() != nil {
		return nil
	}
	o := *m.o
	o.file = file
	obj := &lookupObject{module: file}
	if m.reader != nil {
		obj.view = m.reader
	}
	if err := m.a.byFile(m.ctx, &o, obj); err != nil {
		obj.Close() // the first error is the one to tell
		m.failed[file] = ingest.Printable(err.Error())
		m.a.partial = true
		m.a.warn(err.Error(), hintOf(err))
		return nil
	}
	if len(m.open) >= maxLookups {
		if err := m.finish(m.open[0]); err != nil {
			m.a.warn(err.Error(), "")
		}
		m.open = slices.Delete(m.open, 0, 1)
	}
	l := newLooker(&o, obj)
	m.open = append(m.open, l)
	return l
}

// splitQuery splits a line into the file and the address. The file may stand in quotes,
// which it must if there are blanks in it, and the word CODE before it.
func splitQuery(line []byte) (file string, address []byte, ok bool) {
	line = bytes.TrimSpace(line)
	if rest, found := bytes.CutPrefix(line, []byte("CODE ")); found {
		line = bytes.TrimLeft(rest, " ")
	}
	if len(line) == 0 {
		return "", nil, false
	}
	var name []byte
	if quote := line[0]; quote == '"' || quote == '\'' {
		name, address, ok = bytes.Cut(line[1:], []byte{quote})
	} else {
		name, address, ok = bytes.Cut(line, []byte(" "))
	}
	address, _, _ = bytes.Cut(bytes.TrimSpace(address), []byte(" "))
	return string(name), address, ok && len(name) > 0 && len(address) > 0
}
