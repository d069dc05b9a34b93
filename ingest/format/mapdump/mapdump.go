package mapdump

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"

	"symbolize/ingest/decode"
	"symbolize/ingest/format/rawdump"
	"symbolize/ingest/object/btf"
)

// Dump reads a dump pair by pair. It is for one goroutine.
type Dump struct {
	// Header holds the map's properties. Only a raw dump has all; for bpftool's forms the sizes and
	// the number of CPUs are from the first pair, and Entries is rawdump.UnknownEntries. Lost
	// counts bpftool's read failures, by message, among the pairs up to the last one that Next
	// returned.
	Header rawdump.Header
	Form   Form

	// Types describes keys and values of the form Text, by the Header's KeyType and ValueType: names
	// as printed, and sizes of our own.
	Types *btf.Types

	damage error // of the form Text, behind its pairs
	name   string
	raw    *rawdump.Reader
	text   interface{ next(*pair) bool }
	scan   *scanner
	facts  *facts
	pair   pair
	ahead  bool // pair is the first one, not yet returned
	cpus   [][]byte
	err    error
}

// Sniff identifies the form of a dump by the first bytes of a file; 4 KiB are enough.
// NoForm is no dump.
func Sniff(head []byte) Form {
	if rawdump.Is(head) {
		return Raw
	}
	text := bytes.TrimLeft(head, " \t\r\n")
	switch {
	case bytes.HasPrefix(text, []byte("key:")), bytes.HasPrefix(text, []byte("value:")),
		bytes.HasPrefix(text, []byte("value (CPU")), bytes.HasPrefix(text, []byte("Found ")),
		bytes.HasPrefix(text, []byte("Error: ")), isMapLine(text):
		return Plain
	case isJSONDump(text):
		return JSON
	}
	return NoForm
}

// isMapLine recognises "12: hash  name counts  flags 0x0".
func isMapLine(text []byte) bool {
	id, rest, ok := bytes.Cut(text, []byte(": "))
	if !ok || !isNumber(id) {
		return false
	}
	word, _, _ := bytes.Cut(rest, []byte(" "))
	return TypeNumber(string(word)) > 0
}

// isJSONDump recognises [{"key": …, [{"id": … "elements": …, {"error": … and [].
func isJSONDump(text []byte) bool {
	if len(text) == 0 || text[0] != '[' && text[0] != '{' {
		return false
	}
	var begin []byte // without blanks
	for _, c := range text {
		if !isSpace(c) {
			begin = append(begin, c)
		}
		if len(begin) == 16 {
			break
		}
	}
	rest := bytes.TrimLeft(begin, "[")
	for _, start := range []string{`{"key":`, `{"value":`, `{"error":`, `{"elements":`} {
		if bytes.HasPrefix(rest, []byte(start)) {
			return true
		}
	}
	if bytes.HasPrefix(rest, []byte(`{"id":`)) {
		return bytes.Contains(text, []byte(`"elements"`))
	}
	return string(begin) == "[]" || string(begin) == "[[]]"
}

// Open opens a dump of size bytes in any of the forms, identified by its first bytes. name
// is for messages only; r must stay open as long as the Dump is used.
//
// A dump without any pair is no error; a dump with only unreadable pairs is.
func Open(name string, r io.ReaderAt, size int64) (*Dump, error) {
	head := make([]byte, min(headSize, max(size, 0)))
	n, err := r.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	d := &Dump{name: name, Form: Sniff(head[:n])}
	switch d.Form {
	case Raw:
		if d.raw, err = rawdump.Open(name, r, size); err != nil {
			return nil, err
		}
		d.Header = d.raw.Header
		return d, nil
	case NoForm:
		return nil, fmt.Errorf("%s: %w", name, ErrNotDump)
	}
	d.scan, d.facts = newScanner(name, r, size), &facts{}
	d.facts.Entries = rawdump.UnknownEntries
	d.text = &jsonDump{scanner: d.scan, facts: d.facts}
	if d.Form == Plain {
		d.text = &plainDump{scanner: d.scan, facts: d.facts}
	}
	d.ahead = d.text.next(&d.pair)
	if errors.Is(d.scan.err, errFormatted) {
		return openText(name, r, size)
	}
	if !d.ahead && d.scan.err != nil && !errors.Is(d.scan.err, ErrSeveral) {
		return nil, d.scan.err
	}
	d.err = d.scan.err
	d.measure()
	return d, nil
}

// measure sets the sizes of the first pair.
func (d *Dump) measure() {
	d.Header = d.facts.Header
	if !d.ahead {
		return
	}
	d.Header.KeySize = uint32(len(d.pair.key))
	d.Header.ValueSize = uint32(len(d.pair.values[0]))
	if d.facts.perCPU {
		d.Header.CPUs = uint32(d.pair.n)
	}
}

// Next returns the next key and its values: one for each CPU, a single one where the map
// is not per CPU. They are valid until the next call. ok is false at the end and at
// damage; Err distinguishes them.
func (d *Dump) Next() (key []byte, values [][]byte, ok bool) {
	if d.raw != nil {
		return d.nextRaw()
	}
	ahead := d.ahead
	d.ahead = false
	if !ahead && (d.err != nil || !d.text.next(&d.pair)) {
		d.err = cmp.Or(d.err, d.scan.err, d.damage)
		d.Header.Lost = d.facts.Lost
		return nil, nil, false
	}
	if !d.fits() { // of the first pair, the values of the CPUs among themselves
		return nil, nil, false
	}
	d.Header.Lost = d.facts.Lost
	return d.pair.key, d.pair.values[:d.pair.n], true
}

// fits reports whether a pair has the sizes of the first one.
func (d *Dump) fits() bool {
	h, p := &d.Header, &d.pair
	same := len(p.key) == int(h.KeySize) && p.n == max(1, int(h.CPUs))
	for _, v := range p.values[:p.n] {
		same = same && len(v) == int(h.ValueSize)
	}
	if !same {
		d.err = &decode.Error{Name: d.name, Offset: d.scan.offset(), Reason: fmt.Sprintf(
			"a pair with other sizes than the first one: key of %d bytes, %d values of %d",
			h.KeySize, max(1, h.CPUs), h.ValueSize)}
	}
	return same
}

func (d *Dump) nextRaw() ([]byte, [][]byte, bool) {
	key, value, ok := d.raw.Next()
	if !ok {
		return nil, nil, false
	}
	d.cpus = d.cpus[:0]
	for i := range max(1, int(d.Header.CPUs)) {
		d.cpus = append(d.cpus, d.Header.CPUValue(value, i))
	}
	return key, d.cpus, true
}

// Err returns the damage once Next has returned false; nil at the end of a complete
// dump.
func (d *Dump) Err() error {
	if d.raw != nil {
		return d.raw.Err()
	}
	return d.err
}
