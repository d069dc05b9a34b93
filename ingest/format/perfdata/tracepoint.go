package perfdata

import (
	"bytes"
	"errors"
	"strconv"
	"strings"

	"symbolize/ingest/decode"
)

// Tracepoint is the format of a tracepoint's samples.
type Tracepoint struct {
	System, Name string
	ID           uint64 // perf_event_attr.config of its events
	Fields       []TracepointField
	Print        string // how the kernel prints it: a format of printf and C expressions
}

// TracepointField is a field of a tracepoint's samples.
type TracepointField struct {
	Name   string
	Type   string // in C, without the name: "size_t", "char[16]"
	Offset int    // in the RAW data of a sample
	Size   int    // in bytes
	Signed bool
	Text   bool // a string: an array of char
	// Dynamic fields hold the offset and size of their data, which follows the fields
	// (__data_loc). Relative offsets count from the end of the field (__rel_loc).
	Dynamic, Relative bool
}

const (
	maxTracepoints = 1 << 14 // a kernel has some 2,500; recordings have only those they recorded
	maxFields      = 256

	tracingMagic = "\x17\x08\x44tracing"
)

// Tracepoints returns the formats of tracepoints in the feature TRACING_DATA, which perf record
// copies from tracefs. With an error it returns the formats before the damage.
//
// The feature is the head of a trace.dat file (tools/perf/util/trace-event-info.c of Linux):
//
//	\x17\x08\x44 "tracing" version NUL; u8 big endian, u8 bytes of a long, u32 size of a page
//	"header_page" NUL u64 size, text; "header_event" NUL u64 size, text
//	u32 number of ftrace's own events, of each: u64 size, format
//	u32 number of systems, of each: name NUL, u32 number of events, of each: u64 size, format
//
// A format is the text of events/SYSTEM/NAME/format in tracefs: lines with the name, the ID and
// the fields. Fields that all tracepoints have (common_pid …) are left out.
func (f *File) Tracepoints() ([]Tracepoint, error) {
	section, ok := f.Features.Section(FeatureTracingData)
	if !ok {
		return nil, nil
	}
	b, err := f.FeatureBytes(FeatureTracingData, maxFeatureBytes)
	if err != nil {
		return nil, err
	}
	return parseTracepoints(f.Name, b, section.Offset)
}

// parseTracepoints parses TRACING_DATA at an offset of the named file.
func parseTracepoints(name string, b []byte, base int64) ([]Tracepoint, error) {
	if !bytes.HasPrefix(b, []byte(tracingMagic)) || len(b) < len(tracingMagic)+2 {
		return nil, errors.New(name + ": TRACING_DATA has no magic number of tracing data")
	}
	head := decode.New(name, b, base, false)
	head.Skip(uint64(len(tracingMagic)))
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
	var list []Tracepoint
	for n := r.U32(); n > 0 && r.Err() == nil; n-- {
		system := r.CString()
		for k := r.U32(); k > 0 && r.Err() == nil; k-- {
			text := r.Bytes(r.U64())
			if r.Err() != nil {
				break
			}
			if len(list) == maxTracepoints {
				r.Fail("more than %d tracepoints", maxTracepoints)
				break
			}
			f := parseTracepoint(string(text))
			f.System = system
			list = append(list, f)
		}
	}
	return list, r.Err()
}

// parseTracepoint parses a format; unknown lines are skipped.
func parseTracepoint(text string) (f Tracepoint) {
	for text != "" {
		var line string
		line, text, _ = strings.Cut(text, "\n")
		line = strings.TrimSpace(line)
		switch key, value, _ := strings.Cut(line, ":"); key {
		case "name":
			f.Name = strings.TrimSpace(value)
		case "ID":
			f.ID, _ = strconv.ParseUint(strings.TrimSpace(value), 10, 64)
		case "field":
			x, ok := parseTracepointField(value)
			if ok && !strings.HasPrefix(x.Name, "common_") && len(f.Fields) < maxFields {
				f.Fields = append(f.Fields, x)
			}
		case "print fmt":
			f.Print = strings.TrimSpace(value + "\n" + text) // some have a line break in a text
			return f
		}
	}
	return f
}

// parseTracepointField parses "unsigned long call_site;\toffset:8;\tsize:8;\tsigned:0;".
func parseTracepointField(text string) (x TracepointField, ok bool) {
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

// Numeric reports whether the field is a number.
func (x *TracepointField) Numeric() bool {
	switch x.Size {
	case 1, 2, 4, 8:
		return !x.Text && !x.Dynamic && !strings.HasSuffix(x.Type, "]")
	}
	return false
}

// Number returns the value of a numeric field in the RAW data of a sample, sign-extended if the
// field is signed. It returns false if the field is not numeric or the data is too short.
func (x *TracepointField) Number(raw []byte, bigEndian bool) (v uint64, ok bool) {
	if !x.Numeric() || x.Offset+x.Size > len(raw) {
		return 0, false
	}
	switch b := raw[x.Offset : x.Offset+x.Size]; len(b) {
	case 4:
		v = uint64(decode.U32(b, bigEndian))
	case 8:
		v = decode.U64(b, bigEndian)
	default:
		for i := range b {
			k := len(b) - 1 - i
			if bigEndian {
				k = i
			}
			v = v<<8 | uint64(b[k])
		}
	}
	if x.Signed {
		shift := uint(64 - 8*x.Size)
		v = uint64(int64(v<<shift) >> shift)
	}
	return v, true
}

// locationSize is the size of a dynamic field: u16 offset of its data, u16 size.
const locationSize = 4

// String returns the value of a field as text: strings up to their NUL, numbers in decimal,
// pointers and values as large as kernel addresses in hexadecimal. It returns "" if the data is
// too short, and for arrays other than strings.
func (x *TracepointField) String(raw []byte, bigEndian bool) string {
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
	b, _ := x.Bytes(raw, bigEndian)
	text, _, _ := bytes.Cut(b, []byte{0})
	return string(text)
}

// Bytes returns the bytes of a field in the RAW data of a sample, of a dynamic one its data. ok is
// false if the data is too short.
func (x *TracepointField) Bytes(raw []byte, bigEndian bool) (b []byte, ok bool) {
	from, size := x.Offset, x.Size
	if x.Dynamic {
		place := TracepointField{Type: "u32", Offset: x.Offset, Size: locationSize}
		v, ok := place.Number(raw, bigEndian)
		if !ok {
			return nil, false
		}
		from, size = int(v&0xffff), int(v>>16)
		if x.Relative {
			from += x.Offset + locationSize
		}
	}
	if from > len(raw) || size > len(raw)-from {
		return nil, false
	}
	return raw[from : from+size], true
}
