package lookup

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"slices"
	"strings"

	"symbolize/buildid"
	"symbolize/ingest/texts"
	"symbolize/store"
)

// maxLookups is how many objects a Files has open at a time.
const maxLookups = 32

// Files answers lines that name their object, as llvm-symbolizer does without an object: `FILE
// ADDR`, `"FILE" ADDR`, `CODE "FILE" ADDR`, `BUILDID:ID ADDR`. It is not safe for concurrent use.
type Files struct {
	ctx    context.Context
	o      *Options
	view   store.View
	index  Index
	open   []*Looker // by path in Module; the one used last at the end
	failed map[string]string

	// Fail is called once for each file that cannot be opened, Finish for each Looker before
	// it is closed. Both must be set.
	Fail func(error)
	// ByID returns the object that a line names by its build ID, or by the beginning of one, and
	// the view that has it. It must be set.
	ByID   func(text string) (store.View, buildid.ID, error)
	Finish func(*Looker)
}

// NewFiles returns a Files. view may be nil; index reads files that view lacks.
func NewFiles(ctx context.Context, view store.View, index Index, o *Options) *Files {
	return &Files{ctx: ctx, o: o, view: view, index: index, failed: make(map[string]string)}
}

// Close closes all objects.
func (m *Files) Close() error {
	var err error
	for _, l := range m.open {
		err = cmp.Or(err, m.finish(l))
	}
	return err
}

func (m *Files) finish(l *Looker) error {
	m.Finish(l)
	return l.Close()
}

// Lines answers whole lines; consecutive lines of one object are one batch.
func (m *Files) Lines(w io.Writer, text []byte) error {
	var l *Looker
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
			if err := m.write(w, &Answer{Input: string(line), Module: file}); err != nil {
				return err
			}
			continue
		}
		if l == nil {
			last = file
			if l = m.looker(file); l == nil {
				a := Answer{Valid: true, Address: value, Module: file, Error: m.failed[file]}
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

// write prints an answer without an object.
func (m *Files) write(w io.Writer, a *Answer) error {
	_, err := w.Write(m.o.appendAnswer(nil, a))
	return err
}

// looker returns the Looker of a file, nil if the file cannot be opened.
func (m *Files) looker(file string) *Looker {
	if i := slices.IndexFunc(m.open, func(l *Looker) bool { return l.obj.Module == file }); i >= 0 {
		l := m.open[i]
		m.open = append(slices.Delete(m.open, i, i+1), l)
		return l
	}
	if _, known := m.failed[file]; known || m.ctx.Err() != nil {
		return nil
	}
	obj, err := m.openObject(file)
	if err != nil {
		m.failed[file] = texts.Printable(err.Error())
		m.Fail(err)
		return nil
	}
	if len(m.open) >= maxLookups {
		if err := m.finish(m.open[0]); err != nil {
			m.Fail(err)
		}
		m.open = slices.Delete(m.open, 0, 1)
	}
	l := New(obj, m.o)
	m.open = append(m.open, l)
	return l
}

// idPrefix marks build IDs in lines, as of llvm-symbolizer; filePrefix marks names of files.
const (
	idPrefix   = "BUILDID:"
	filePrefix = "FILE:"
)

func (m *Files) openObject(name string) (*Object, error) {
	text, byID := strings.CutPrefix(name, idPrefix)
	if !byID {
		return OpenFile(m.ctx, m.view, name, m.index, m.o)
	}
	view, id, err := m.ByID(text)
	if err != nil {
		return nil, err
	}
	return OpenID(view, id, text, m.o)
}

// Arguments answers lines as one batch; as JSON the answers are one list.
func (m *Files) Arguments(w io.Writer, args []string) error {
	text := []byte(strings.Join(args, "\n") + "\n")
	return m.o.writeAnswers(w, func(o *Options, w io.Writer) error {
		m.o = o
		return m.Lines(w, text)
	})
}

// splitQuery splits a line into the file and the address. The file may be quoted, which it must
// be if it has blanks, and follow the word CODE and "FILE:". A build ID follows "BUILDID:", and has
// that in the result too.
func splitQuery(line []byte) (file string, address []byte, ok bool) {
	line = bytes.TrimSpace(line)
	if rest, found := bytes.CutPrefix(line, []byte("CODE ")); found {
		line = bytes.TrimLeft(rest, " ")
	}
	if len(line) == 0 {
		return "", nil, false
	}
	prefix := ""
	if rest, found := bytes.CutPrefix(line, []byte(idPrefix)); found {
		prefix, line = idPrefix, rest
	} else {
		line = bytes.TrimPrefix(line, []byte(filePrefix))
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
	return prefix + string(name), address, ok && len(name) > 0 && len(address) > 0
}
