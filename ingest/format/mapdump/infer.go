package mapdump

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
)

// Bounds of Infer.
const (
	inferSamples = 64    // pairs that layouts are tried on
	inferTries   = 50000 // places that are tried
	inferFields  = 64
)

// Inferred is a number in bytes of which a formatted text is known.
type Inferred struct {
	Name         string // "" of all of the bytes
	Offset, Size int
	Signed, Bool bool
	Text         bool // an array of characters

	large bool // a number was printed that no signed one of the size is
}

// Inferrer finds the layout of bytes from the text bpftool printed of them by BTF: a number, or
// a structure of numbers and texts. It is the one in which C places members so that all
// samples have the values that were printed. Where two places of a member do, nothing is
// known.
type Inferrer struct {
	BigEndian bool

	samples []sample
	names   []string
	fields  []Inferred
	failed  bool
	tries   int
}

// sample is a value with the numbers that were printed of its members.
type sample struct {
	data    []byte
	numbers []number
}

type number struct {
	text           string
	isBool, isText bool
}

// Add adds a value, and returns false if the layout cannot be inferred any more.
func (x *Inferrer) Add(data []byte, formatted json.RawMessage) bool {
	if x.failed {
		return false
	}
	names, numbers, ok := members(formatted)
	switch {
	case !ok || len(names) > inferFields || x.names != nil && !slices.Equal(names, x.names):
		x.failed = true
	case x.fields != nil: // a layout was found: it has to hold
		x.failed = !x.holds(&sample{data, numbers})
	default:
		x.names = names
		x.samples = append(x.samples, sample{bytes.Clone(data), numbers})
		if len(x.samples) == inferSamples {
			x.search()
		}
	}
	return !x.failed
}

// Fields returns the layout; ok is false if the values do not decide it.
func (x *Inferrer) Fields() (fields []Inferred, ok bool) {
	if x.fields == nil && !x.failed && len(x.samples) > 0 {
		x.search()
	}
	return x.fields, !x.failed && x.fields != nil
}

// members splits a number or a structure of numbers.
func members(formatted json.RawMessage) (names []string, numbers []number, ok bool) {
	d := json.NewDecoder(bytes.NewReader(formatted))
	d.UseNumber()
	t, err := d.Token()
	if err != nil {
		return nil, nil, false
	}
	if t != json.Delim('{') {
		n, ok := numberOf(t)
		return []string{""}, []number{n}, ok
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, nil, false
		}
		value, err := d.Token()
		n, ok := numberOf(value)
		if err != nil || !ok {
			return nil, nil, false
		}
		names, numbers = append(names, name.(string)), append(numbers, n)
	}
	return names, numbers, len(names) > 0
}

func numberOf(t json.Token) (number, bool) {
	switch t := t.(type) {
	case json.Number:
		return number{text: t.String()}, true
	case bool:
		return number{text: map[bool]string{false: "0", true: "1"}[t], isBool: true}, true
	case string: // of an enumeration, too, which does not fit
		return number{text: t, isText: true}, true
	}
	return number{}, false
}

// search looks for the only layout that fits.
func (x *Inferrer) search() {
	x.failed = true
	size := len(x.samples[0].data)
	if slices.ContainsFunc(x.samples, func(s sample) bool { return len(s.data) != size }) {
		return
	}
	several := false
	var found []Inferred
	x.place(nil, 0, size, func(fields []Inferred) bool {
		if found == nil {
			found = slices.Clone(fields) // the widest come first
			return true
		}
		several = slices.ContainsFunc(fields, func(f Inferred) bool {
			return !slices.ContainsFunc(found, func(o Inferred) bool {
				return o.Name == f.Name && o.Offset == f.Offset
			})
		})
		return !several
	})
	if found == nil || several || x.tries > inferTries {
		return
	}
	x.fields, x.samples, x.failed = found, nil, false
}

// place places the next member at each size, and hands whole layouts to visit until that
// returns false.
func (x *Inferrer) place(fields []Inferred, at, size int, visit func([]Inferred) bool) bool {
	if len(fields) == len(x.names) {
		align := 1
		for _, f := range fields {
			if !f.Text {
				align = max(align, f.Size)
			}
		}
		return (at+align-1)/align*align != size || !x.padded(at, size) || visit(fields)
	}
	i := len(fields)
	sizes := []int{8, 4, 2, 1}
	isText := x.samples[0].numbers[i].isText
	if isText {
		sizes = sizes[:0]
		for n := size - at; n > 0; n-- {
			sizes = append(sizes, n)
		}
	}
	for _, n := range sizes {
		if x.tries++; x.tries > inferTries {
			return false
		}
		f := Inferred{Name: x.names[i], Offset: at, Size: n, Text: isText}
		if !isText {
			f.Offset = (at + n - 1) / n * n
		}
		begin := f.Offset
		if begin+n > size || !x.padded(at, begin) || !x.fits(&f, i) {
			continue
		}
		if !x.place(append(fields, f), begin+n, size, visit) {
			return false
		}
	}
	return true
}

// padded reports whether bytes are zero in all samples, as padding in keys must be.
func (x *Inferrer) padded(from, to int) bool {
	return !slices.ContainsFunc(x.samples, func(s sample) bool {
		return len(bytes.Trim(s.data[from:to], "\x00")) > 0
	})
}

// fits reports whether member i of all samples fits into a field, and sets the field's sign.
func (x *Inferrer) fits(f *Inferred, i int) bool {
	for k := range x.samples {
		if !x.has(f, x.samples[k].data, x.samples[k].numbers[i]) {
			return false
		}
	}
	return true
}

// has reports whether a field of data has a number. The first negative one makes it signed.
func (x *Inferrer) has(f *Inferred, data []byte, n number) bool {
	if f.Offset+f.Size > len(data) || n.isBool && f.Size != 1 || n.isText != f.Text {
		return false
	}
	if n.isText {
		text, _, _ := bytes.Cut(data[f.Offset:f.Offset+f.Size], []byte{0})
		return string(text) == n.text
	}
	f.Bool = f.Bool || n.isBool
	v := number64(data[f.Offset:f.Offset+f.Size], x.BigEndian)
	if strconv.FormatUint(v, 10) == n.text {
		f.large = f.large || v>>(8*f.Size-1) != 0
		return !f.Signed || !f.large
	}
	shift := 64 - 8*f.Size
	f.Signed = strconv.FormatInt(int64(v<<shift)>>shift, 10) == n.text
	return f.Signed && !f.large
}

// holds reports whether one more sample has the layout that was found.
func (x *Inferrer) holds(s *sample) bool {
	for i := range x.fields {
		if !x.has(&x.fields[i], s.data, s.numbers[i]) {
			return false
		}
	}
	return true
}

// number64 reads a number of up to 8 bytes.
func number64(b []byte, big bool) (v uint64) {
	for i := range b {
		if big {
			v = v<<8 | uint64(b[i])
		} else {
			v |= uint64(b[i]) << (8 * i)
		}
	}
	return v
}
