package otlp

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"symbolize/ingest/protobuf"
)

// maxDepth bounds the nesting of messages, which only AnyValue nests.
const maxDepth = 64

// jsonReader converts a JSON value to a message. Unknown names are left out, as in protobuf's own
// conversion.
type jsonReader struct {
	in  []byte // valid JSON
	at  int
	out []byte
}

// fromJSON appends the protobuf form of a ProfilesData, which is valid JSON.
func fromJSON(out, in []byte) ([]byte, error) {
	r := &jsonReader{in: in, out: out}
	err := r.message(profilesData, 0)
	if err != nil {
		err = fmt.Errorf("offset %d: %w", r.at, err)
	}
	return r.out, err
}

// next returns the next byte that is no white space; 0 at the end.
func (r *jsonReader) next() byte {
	for ; r.at < len(r.in); r.at++ {
		switch c := r.in[r.at]; c {
		case ' ', '\t', '\n', '\r', ',', ':': // the syntax was checked
		default:
			return c
		}
	}
	return 0
}

// skip skips a value.
func (r *jsonReader) skip() {
	for depth := 0; ; {
		switch r.next() {
		case '{', '[':
			depth++
			r.at++
		case '}', ']':
			depth--
			r.at++
		case 0:
			return
		default:
			r.scalar()
		}
		if depth <= 0 {
			return
		}
	}
}

// scalar returns the text of a scalar, with its quotes.
func (r *jsonReader) scalar() []byte {
	from := r.at
	if r.in[r.at] == '"' {
		for r.at++; r.at < len(r.in) && r.in[r.at] != '"'; r.at++ {
			if r.in[r.at] == '\\' {
				r.at++
			}
		}
		r.at = min(r.at+1, len(r.in))
		return r.in[from:r.at]
	}
	for r.at < len(r.in) && !slices.Contains([]byte(" \t\n\r,:]}"), r.in[r.at]) {
		r.at++
	}
	return r.in[from:r.at]
}

// text returns a scalar without its quotes and escapes. What is no UTF-8 stays as it is.
func (r *jsonReader) text() ([]byte, error) {
	b := r.scalar()
	if len(b) < 2 || b[0] != '"' {
		return b, nil
	}
	if inner := b[1 : len(b)-1]; !slices.Contains(inner, '\\') {
		return inner, nil
	}
	var s string
	err := json.Unmarshal(b, &s)
	return []byte(s), err
}

// message appends the fields of an object.
func (r *jsonReader) message(m *message, depth int) error {
	if depth > maxDepth {
		return errors.New("messages are nested too deeply")
	}
	if r.next() != '{' {
		if c := r.next(); c == 'n' { // null
			r.scalar()
			return nil
		}
		return errors.New("no object where a message belongs")
	}
	r.at++
	for r.next() != '}' {
		if r.next() != '"' {
			return errors.New("cut off")
		}
		name, err := r.text()
		if err != nil {
			return err
		}
		f := m.names[string(name)]
		switch c := r.next(); {
		case f == nil:
			r.skip()
		case f.repeated && c == '[':
			err = r.list(f, depth)
		default:
			err = r.value(f, depth)
		}
		if err != nil {
			return err
		}
	}
	r.at++
	return nil
}

// list appends the elements of a repeated field, numbers packed.
func (r *jsonReader) list(f *field, depth int) error {
	r.at++
	if f.kind == nested || f.kind == text {
		for r.next() != ']' {
			if r.next() == 0 {
				return errors.New("cut off")
			}
			if err := r.element(f, depth); err != nil {
				return err
			}
		}
		r.at++
		return nil
	}
	start := r.open(f)
	for r.next() != ']' {
		if r.next() == 0 || r.next() == '{' || r.next() == '[' {
			return errors.New("no number in a list of numbers")
		}
		v, err := r.number(f)
		if err != nil {
			return err
		}
		if f.kind == fixed {
			r.out = binary.LittleEndian.AppendUint64(r.out, v)
		} else {
			r.out = protobuf.AppendVarint(r.out, v)
		}
	}
	r.at++
	r.close(start)
	return nil
}

// open appends the tag of a length-delimited field, and returns where its content begins.
func (r *jsonReader) open(f *field) int {
	r.out = append(r.out, byte(f.number<<3|protobuf.Bytes))
	return len(r.out)
}

// close inserts the length of a field.
func (r *jsonReader) close(start int) {
	var size [binary.MaxVarintLen64]byte
	n := binary.PutUvarint(size[:], uint64(len(r.out)-start))
	r.out = slices.Insert(r.out, start, size[:n]...)
}

// value appends a field, unless it is null or, outside of a list, the default.
func (r *jsonReader) value(f *field, depth int) error {
	if r.next() == 'n' {
		r.scalar()
		return nil
	}
	if f.kind == nested || f.kind >= text {
		return r.element(f, depth)
	}
	v, err := r.number(f)
	if err != nil || v == 0 && f.kind == integer && !f.oneof {
		return err
	}
	switch f.kind {
	case fixed, double:
		r.out = append(r.out, byte(f.number<<3|protobuf.Fixed64))
		r.out = binary.LittleEndian.AppendUint64(r.out, v)
	default:
		r.out = protobuf.AppendVarint(append(r.out, byte(f.number<<3)), v)
	}
	return nil
}

// element appends a message, a text or bytes.
func (r *jsonReader) element(f *field, depth int) error {
	if f.kind == nested {
		start := r.open(f)
		err := r.message(f.message, depth+1)
		r.close(start)
		return err
	}
	if c := r.next(); c == '{' || c == '[' {
		return fmt.Errorf("%s is not text", f.name)
	}
	b, err := r.text()
	if err == nil && f.kind != text {
		b, err = octetsOf(b, f.kind == octetsID)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", f.name, err)
	}
	r.out = protobuf.AppendBytes(r.out, f.number, b)
	return nil
}

// octetsOf decodes bytes: base64 as protobuf has them, or IDs in hexadecimal as OTLP has them. The
// lengths of IDs tell.
func octetsOf(b []byte, isID bool) ([]byte, error) {
	if isID && (len(b) == 32 || len(b) == 16) {
		if out, err := hex.AppendDecode(nil, b); err == nil {
			return out, nil
		}
	}
	out, err := base64.StdEncoding.AppendDecode(nil, b)
	if err != nil {
		out, err = base64.RawURLEncoding.AppendDecode(nil, b)
	}
	return out, err
}

// number reads a number or a text with one.
func (r *jsonReader) number(f *field) (uint64, error) {
	b, err := r.text()
	if err != nil {
		return 0, err
	}
	s := string(b)
	switch {
	case f.isBool:
		if s == "true" {
			return 1, nil
		}
		return 0, nil
	case f.kind == double:
		v, err := strconv.ParseFloat(s, 64)
		return math.Float64bits(v), err
	}
	if v, err := strconv.ParseInt(s, 10, 64); err == nil {
		return uint64(v), nil
	}
	if v, err := strconv.ParseUint(s, 10, 64); err == nil {
		return v, nil
	}
	// 1e3 and 5.0 are integers in JSON
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || v != math.Trunc(v) || math.Abs(v) > 1<<53 {
		return 0, fmt.Errorf("%s %q is not an integer", f.name, s)
	}
	return uint64(int64(v)), nil
}
