package symtab

import (
	"bytes"
	"strings"

	"symbolize/ingest/decode"
)

// Demangler keeps names as look-ups print them: demangling a name needs some microseconds, ten
// times as long as the rest of a look-up.
type Demangler struct {
	// ID identifies the form of the names and the program that makes them, in at most 255
	// bytes: a reader of another one does not use them.
	ID string
	// Name returns a name as it is printed, or unchanged for one that need not be kept. It is
	// called by several goroutines.
	Name func(mangled string) string
}

// Demangle has the table keep its names demangled, too, until Reset; small tables do not.
func (b *Builder) Demangle(by *Demangler) { b.demangler = by }

// Bounds for readers and writers.
const (
	maxShownID    = 255
	maxShownBlock = 4 << 20 // raw bytes; names that do not fit are left out
)

// block demangles a block of n names. Names that are printed as they are stay empty.
func (d *Demangler) block(names []byte, n uint64) []byte {
	shown := make([]byte, 0, 4*len(names))
	left := maxShownBlock - int(n)
	for len(names) > 0 {
		name, rest, _ := bytes.Cut(names, nul)
		names = rest
		text := d.Name(string(name))
		if text != string(name) && len(text) <= left && strings.IndexByte(text, 0) < 0 {
			shown = append(shown, text...)
			left -= len(text)
		}
		shown = append(shown, 0)
	}
	return shown
}

// parseShown decodes the directory of demangled names.
func (h *header) parseShown(b []byte) (err error) {
	if b == nil {
		return nil
	}
	r := decode.New("directory of demangled names", b, 0, false)
	n := r.Uvarint()
	if n == 0 || n > maxShownID {
		r.Fail("identification of %d bytes", n)
	}
	id, dir := r.Bytes(n), r.Bytes(uint64(r.Left()))
	if err := readError(r); err != nil {
		return err
	}
	if h.shown, _, err = parseStrings(dir, 0); err != nil {
		return err
	}
	if len(h.shown) != len(h.strings) {
		return formatError("%d blocks of demangled names, %d of names", len(h.shown), len(h.strings))
	}
	for i := range h.shown {
		if h.shown[i].strs != h.strings[i].strs {
			return formatError("block %d has %d demangled names and %d names", i,
				h.shown[i].strs, h.strings[i].strs)
		}
	}
	h.shownBy = string(id)
	return nil
}

// DemangledBy returns the Demangler.ID of the table's demangled names, "" if it has none.
func (t *Table) DemangledBy() string { return t.h.shownBy }

// Demangled returns a name demangled, as a copy; "" if the table does not have it, for example
// because the name is printed unchanged.
func (t *Table) Demangled(n NameID) (string, error) {
	if uint64(n) >= t.h.names() {
		return "", formatError("string %d of %d", n, t.h.names())
	}
	if t.h.shownBy == "" {
		return "", nil
	}
	b, err := t.stringOf(t.h.shown, t.h.firstShown(), uint64(n))
	return string(b), err
}
