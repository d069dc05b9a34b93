// Package tracepoint reads the formats of tracepoints, which perf record takes from tracefs into
// the feature TRACING_DATA, and the values of their fields in samples.
//
// The feature is the head of a trace.dat file (tools/perf/util/trace-event-info.c of Linux):
//
//	\x17\x08\x44 "tracing" version NUL; u8 big endian, u8 bytes of a long, u32 size of a page
//	"header_page" NUL u64 size, text; "header_event" NUL u64 size, text
//	u32 number of ftrace's own events, of each: u64 size, format
//	u32 number of systems, of each: name NUL, u32 number of events, of each: u64 size, format
//
// A format is a text as tracefs has it in events/SYSTEM/NAME/format: lines with the name, the ID
// and the fields.
package tracepoint

import (
	"bytes"
	"errors"
	"strconv"
	"strings"

	"symbolize/ingest/decode"
)

// Format is the layout of a tracepoint's samples.
type Format struct {
	System, Name string
	ID           uint64 // perf_event_attr.config of its events
	Fields       []Field
}

// Field is a field of a tracepoint, without those that all tracepoints have (common_pid …).
type Field struct {
	Name   string
	Type   string // as C writes it, without the name: "size_t", "char[16]"
	Offset int    // in the RAW data of a sample
	Size   int    // in bytes
	Signed bool
	// Text is set for strings: arrays of char, and those that lie behind the fields.
	Text bool
	// Dynamic is set for data behind the fields: the field has its place (__data_loc), which
	// Relative counts from the field's end (__rel_loc).
	Dynamic, Relative bool
}

const (
	maxFormats = 1 << 14 // a kernel has some 2,500; recordings have those that they recorded
	maxFields  = 256
)

var magic = []byte("\x17\x08\x44tracing")

// Parse reads the formats in the bytes of TRACING_DATA. With an error come those before the
// damage. name is that of the file, for messages, and base the offset of b in it.
func Parse(name string, b []byte, base int64) ([]Format, error) {
	if !bytes.HasPrefix(b, magic) || len(b) < len(magic)+2 {
		return nil, errors.New(name + ": TRACING_DATA does not begin as tracing data does")
	}
	head := decode.New(name, b, base, false)
	head.Skip(uint64(len(magic)))
	head.CString() // version
	big := head.U8() != 0
	if head.Err() != nil {
		return nil, head.Err()
	}
	at := len(b) - head.Left()
	r := decode.New(name, b[at:], base+int64(at), big)
	r.Skip(1 + 4) // sizes of a long and of a page
	for range 2 { // header_page and header_event
		r.CString()
		r.Skip(r.U64())
	}
	for n := r.U32(); n > 0 && r.Err() == nil; n-- {
		r.Skip(r.U64())
	}
	var list []Format
	for n := r.U32(); n > 0 && r.Err() == nil; n-- {
		system := r.CString()
		for k := r.U32(); k > 0 && r.Err() == nil; k-- {
			text := r.Bytes(r.U64())
			if r.Err() != nil {
				break
			}
			if len(list) == maxFormats {
				r.Fail("more than %d formats of tracepoints", maxFormats)
				break
			}
			f := parseFormat(string(text))
			f.System = system
			list = append(list, f)
		}
	}
	return list, r.Err()
}

// parseFormat reads a format; lines that it does not know are left out.
func parseFormat(text string) (f Format) {
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSpace(line)
		switch key, value, _ := strings.Cut(line, ":"); key {
		case "name":
			f.Name = strings.TrimSpace(value)
		case "ID":
			f.ID, _ = strconv.ParseUint(strings.TrimSpace(value), 10, 64)
		case "field":
			x, ok := parseField(value)
			if ok && !strings.HasPrefix(x.Name, "common_") && len(f.Fields) < maxFields {
				f.Fields = append(f.Fields, x)
			}
		case "print fmt":
			return f
		}
	}
	return f
}

// parseField reads "unsigned long call_site;\toffset:8;\tsize:8;\tsigned:0;".
func parseField(text string) (x Field, ok bool) {
	parts := strings.Split(text, ";")
	declaration := strings.TrimSpace(parts[0])
	at := strings.LastIndexAny(declaration, " \t*")
	if at < 0 {
		return x, false
	}
	x.Name, x.Type = declaration[at+1:], strings.TrimSpace(declaration[:at+1])
	if i := strings.IndexByte(x.Name, '['); i >= 0 {
		x.Name, x.Type = x.Name[:i], x.Type+x.Name[i:]
	}
	found := 0
	for _, part := range parts[1:] {
		key, value, _ := strings.Cut(strings.TrimSpace(part), ":")
		n, err := strconv.ParseUint(value, 10, 16)
		if err != nil {
			continue
		}
		switch key {
		case "offset":
			x.Offset = int(n)
			found++
		case "size":
			x.Size = int(n)
			found++
		case "signed":
			x.Signed = n != 0
		}
	}
	rest, data := strings.CutPrefix(x.Type, "__data_loc ")
	rest, relative := strings.CutPrefix(rest, "__rel_loc ")
	x.Dynamic, x.Relative = data || relative, relative
	x.Text = strings.HasPrefix(strings.TrimPrefix(rest, "const "), "char") &&
		strings.HasSuffix(x.Type, "]")
	return x, found == 2 && x.Name != ""
}

// Numeric reports whether a field is a number.
func (x *Field) Numeric() bool {
	switch x.Size {
	case 1, 2, 4, 8:
		return !x.Text && !x.Dynamic && !strings.HasSuffix(x.Type, "]")
	}
	return false
}

// Number returns the value of a field that is a number in the RAW data of a sample, in the byte
// order of the recording; with its sign, where it has one. It is false where the data is too
// short.
func (x *Field) Number(raw []byte, bigEndian bool) (v uint64, ok bool) {
	if !x.Numeric() || x.Offset+x.Size > len(raw) {
		return 0, false
	}
	b := raw[x.Offset : x.Offset+x.Size]
	for i := range b {
		k := len(b) - 1 - i
		if bigEndian {
			k = i
		}
		v = v<<8 | uint64(b[k])
	}
	if x.Signed {
		shift := uint(64 - 8*x.Size)
		v = uint64(int64(v<<shift) >> shift)
	}
	return v, true
}

// Words of a field that has its data elsewhere: the offset in the low half, the size in the
// high one.
const locationSize = 4

// String returns the value of a field as text: strings up to their NUL, numbers in decimal,
// pointers and values as large as the kernel's addresses in hexadecimal. It is "" where the
// data is too short, and for other arrays.
func (x *Field) String(raw []byte, bigEndian bool) string {
	if v, ok := x.Number(raw, bigEndian); ok {
		switch {
		case x.Signed:
			return strconv.FormatInt(int64(v), 10)
		case strings.HasSuffix(x.Type, "*"), v>>48 != 0:
			return "0x" + strconv.FormatUint(v, 16)
		}
		return strconv.FormatUint(v, 10)
	}
	if !x.Text {
		return ""
	}
	from, size := x.Offset, x.Size
	if x.Dynamic {
		place := Field{Type: "u32", Offset: x.Offset, Size: locationSize}
		v, ok := place.Number(raw, bigEndian)
		if !ok {
			return ""
		}
		from, size = int(v&0xffff), int(v>>16)
		if x.Relative {
			from += x.Offset + locationSize
		}
	}
	if from > len(raw) || size > len(raw)-from {
		return ""
	}
	text, _, _ := bytes.Cut(raw[from:from+size], []byte{0})
	return string(text)
}
