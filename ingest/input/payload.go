package input

import (
	"fmt"
	"strconv"
	"strings"

	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/format/tracefmt"
)

// Payload is the RAW data of a sample: the fields of a tracepoint, or the bytes that a BPF program
// wrote. It is valid until the visit of its sample returns.
type Payload struct {
	of    *replayer
	event int // of the file
}

// SymbolFunc returns the name of the symbol at an offset of an object, and the distance from its
// start; "" if it is unknown.
type SymbolFunc func(o *ingest.Object, offset addr.Offset) (name string, distance uint64)

// AppendFields appends the fields of a tracepoint as perf script prints them: by the print format of
// the kernel, those of one that is not understood as name=value. Other samples, and tracepoints
// without a format in the recording, have none.
func (p *Payload) AppendFields(dst []byte, symbol SymbolFunc) []byte {
	r, raw, file := p.of, p.of.sample.Raw, p.of.c.Records.File
	f := r.c.format(p.event)
	if f == nil {
		return dst
	}
	s := tracefmt.Sample{Fields: f.Fields, Raw: raw, BigEndian: file.BigEndian}
	if symbol != nil {
		s.Symbol = func(address uint64, offset bool) string { return p.symbol(symbol, address, offset) }
	}
	if f.print != nil {
		if text, ok := f.print.Append(dst, &s); ok {
			return text
		}
	}
	for i := range f.Fields {
		x := &f.Fields[i]
		if i > 0 {
			dst = append(dst, ' ')
		}
		dst = append(append(append(dst, x.Name...), '='), f.text(x, &s)...)
	}
	return dst
}

// symbol returns the text of an address of the kernel; "" if it is unknown.
func (p *Payload) symbol(symbol SymbolFunc, address uint64, offset bool) string {
	r := p.of
	m, at := r.c.KernelCode(r.kernel, addr.PC(address), false)
	if m == nil || r.number[m.Object] == ingest.NoObject {
		return ""
	}
	name, distance := symbol(&r.p.Objects[r.number[m.Object]], m.Offset(at))
	if name != "" && offset {
		name += "+0x" + strconv.FormatUint(distance, 16)
	}
	return name
}

// AppendOutput appends the bytes that a BPF program wrote as perf script prints them, below the
// sample: eight in a line, and as a string if they are one. Other samples have none.
func (p *Payload) AppendOutput(dst []byte) []byte {
	ev, raw := &p.of.c.Records.File.Events[p.event], p.of.sample.Raw
	if !ev.BPFOutput() || ev.Name == perfdata.OffCPUEvent {
		return dst
	}
	const width = 8
	dst = append(dst, '\n')
	head := "BPF output:"
	for at := 0; at < len(raw); at += width {
		line := raw[at:min(at+width, len(raw))]
		dst = fmt.Appendf(dst, "%17s %04x:", head, at)
		for _, b := range line {
			dst = fmt.Appendf(dst, " %02x", b)
		}
		for range width - len(line) {
			dst = append(dst, "   "...)
		}
		dst = append(dst, "  "...)
		for _, b := range line {
			if !printable(b) {
				b = '.'
			}
			dst = append(dst, b)
		}
		for range width - len(line) {
			dst = append(dst, ' ')
		}
		dst, head = append(dst, '\n'), ""
	}
	text, zeros, ok := strings.Cut(string(raw), "\x00")
	if ok && strings.Trim(zeros, "\x00") == "" && !strings.ContainsFunc(text, func(r rune) bool {
		return r > 0x7e || !printable(byte(r))
	}) {
		dst = fmt.Appendf(dst, "%17s \"%s\"\n", "BPF string:", text)
	}
	return dst
}

func printable(b byte) bool { return b >= ' ' && b <= '~' }
