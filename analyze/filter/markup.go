package filter

import (
	"bytes"
	"slices"
	"strconv"

	"symbolize/buildid"
)

// maxMarkup bounds the modules and the mappings of the markup.
const maxMarkup = 4096

// markup is the state of a process by elements of LLVM's symbolizer markup
// (llvm/docs/SymbolizerMarkupFormat.rst).
type markup struct {
	modules map[uint64]buildid.ID
	maps    []markupMap // in the order of the text
}

// markupMap is an mmap element: the mapping of a module.
type markupMap struct{ start, size, module, relative uint64 }

// maxElement bounds an element, in bytes. Backends cut longer ones too.
const maxElement = 4096

// braces reads "{{{TAG:FIELD:…}}}", which begins at i.
func (s *scanner) braces(i int) {
	rest := s.text[i:min(len(s.text), i+maxElement)]
	if !bytes.HasPrefix(rest, []byte("{{{")) {
		return
	}
	n := bytes.Index(rest, []byte("}}}"))
	if n < 0 {
		return
	}
	fields := bytes.Split(rest[3:n], []byte(":"))
	p := place{start: i, end: i + n + 3, form: formAddress}
	switch tag := string(fields[0]); {
	case tag == "reset":
		s.markup = markup{}
	case tag == "module" && len(fields) >= 5:
		s.markupModule(fields)
	case tag == "mmap" && len(fields) >= 7:
		s.markupMmap(fields)
	case tag == "pc" && len(fields) >= 2:
		s.markupAddress(p, fields[1], fields[2:], true)
	case tag == "bt" && len(fields) >= 3:
		s.markupAddress(p, fields[2], fields[3:], string(fields[1]) == "0")
	}
}

// markupModule reads {{{module:NUMBER:NAME:elf:ID}}}.
func (s *scanner) markupModule(fields [][]byte) {
	number, ok := markupNumber(fields[1])
	id := fields[4]
	if !ok || string(fields[3]) != "elf" || hexLen(id) != len(id) || len(id) > maxIDDigits ||
		len(s.markup.modules) >= maxMarkup {
		return
	}
	if s.markup.modules == nil {
		s.markup.modules = make(map[uint64]buildid.ID)
	}
	s.markup.modules[number] = parseID(id)
}

// markupMmap reads {{{mmap:START:SIZE:load:MODULE:FLAGS:RELATIVE}}}.
func (s *scanner) markupMmap(fields [][]byte) {
	var m markupMap
	if string(fields[3]) != "load" || len(s.markup.maps) >= maxMarkup {
		return
	}
	for i, v := range map[int]*uint64{1: &m.start, 2: &m.size, 4: &m.module, 6: &m.relative} {
		ok := false
		if *v, ok = markupNumber(fields[i]); !ok {
			return
		}
	}
	s.markup.maps = append(s.markup.maps, m)
}

// markupAddress reads an address with the optional word after it: "pc" or "ra".
func (s *scanner) markupAddress(p place, address []byte, words [][]byte, exact bool) {
	at, ok := markupNumber(address)
	if !ok {
		return
	}
	p.exact = exact
	if len(words) > 0 {
		p.exact = string(words[0]) == "pc"
	}
	for _, m := range slices.Backward(s.markup.maps) {
		if at-m.start < m.size {
			p.object, p.offset = s.markup.modules[m.module], at-m.start+m.relative
			break
		}
	}
	s.add(p, p.end)
}

// markupNumber reads a number: 0x and hexadecimal digits, or decimal ones.
func markupNumber(b []byte) (uint64, bool) {
	v, err := strconv.ParseUint(string(b), 0, 64)
	return v, err == nil
}
