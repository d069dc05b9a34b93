package symtab

import (
	"bytes"
	"encoding/binary"

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

// shownNames makes the blocks of demangled names, one for each block of names, on all cores.
type shownNames struct {
	by   *Demangler
	pack *packer
	strs []uint64 // by block
	raw  int64
}

// newShownNames returns nil without a Demangler.
func newShownNames(by *Demangler) *shownNames {
	if by == nil {
		return nil
	}
	return &shownNames{by: by, pack: newPacker()}
}

// add demangles a block of n names in the background. Names that are printed as they are stay
// empty.
func (s *shownNames) add(names []byte, n uint64) {
	s.strs = append(s.strs, n)
	s.pack.run(names, func(names []byte) []byte {
		shown := make([]byte, 0, 4*len(names))
		room := maxShownBlock - int(n)
		for len(names) > 0 {
			name, rest, _ := bytes.Cut(names, []byte{0})
			names = rest
			text := s.by.Name(string(name))
			if text != string(name) && len(text) <= room && !hasNUL(text) {
				shown = append(shown, text...)
				room -= len(text)
			}
			shown = append(shown, 0)
		}
		return shown
	})
}

func hasNUL(s string) bool {
	for i := range len(s) {
		if s[i] == 0 {
			return true
		}
	}
	return false
}

// finish waits for all blocks, adds them to the header and returns them, and their size.
func (s *shownNames) finish(h *header) (data [][]byte, size int64) {
	s.pack.running.Wait()
	h.shownBy = s.by.ID
	for i, p := range s.pack.out {
		h.shown = append(h.shown, stringEntry{strs: s.strs[i], block: p.entry})
		data = append(data, p.stored)
		size += int64(len(p.stored))
		s.raw += int64(p.entry.Raw())
	}
	return data, size
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
	id := r.Bytes(n)
	if err := r.Err(); err != nil {
		return formatError("%v", err)
	}
	if h.shown, _, err = parseStrings(b[len(binary.AppendUvarint(nil, n))+len(id):], 0); err != nil {
		return err
	}
	if len(h.shown) != len(h.strings) {
		return formatError("%d blocks of demangled names, %d of names", len(h.shown), len(h.strings))
	}
	for i := range h.shown {
		if h.shown[i].strs != h.strings[i].strs {
			return formatError("block %d of demangled names has %d, that of names %d", i,
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
