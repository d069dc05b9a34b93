// Package kallsyms reads the kernel's list of symbols, /proc/kallsyms, or a copy of it such as
// perf's cache and "perf buildid-cache --kcore" keep.
//
// A line is
//
//	ffffffffc0a01000 t ext4_map_blocks	[ext4]
//
// the address in hexadecimal, the type letter as nm prints it, the name, and after a tab the
// module, if any (kernel/kallsyms.c, s_show). The lines of the kernel proper come first, sorted by
// address; then symbols of modules, of ftrace's and kprobes' trampolines, and of BPF programs.
package kallsyms

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"symbolize/ingest/decode"
)

// Padding is the prefix of symbols for the padding before functions
// (CONFIG_CALL_PADDING, CONFIG_CFI_CLANG): "__pfx_" and the function's name. None is the
// target of a call.
const Padding = "__pfx_"

// Symbol is one line.
type Symbol struct {
	Addr   uint64 // run-time address
	Type   byte   // as nm: 't', 'T', 'w', 'W' and some others are code
	Name   string
	Module string // "" for the kernel proper, else without brackets
}

// IsCode reports whether the type letter is one of code, as perf counts it
// (tools/lib/symbol/kallsyms.c): text, or weak. Mapping symbols ("$x", "$xrv64…") and local labels
// (".L12") are not symbols: kernels before 6.5 list them for RISC-V modules.
func (s *Symbol) IsCode() bool {
	switch s.Type {
	case 'T', 't', 'W', 'w':
		label := len(s.Name) > 2 && s.Name[:2] == ".L" && s.Name[2] <= '9'
		return !label && !strings.HasPrefix(s.Name, "$")
	}
	return false
}

// Stats counts the lines of a scanLines.
type Stats struct {
	Lines       uint64 // in all
	Symbols     uint64 // visited
	BPF         uint64 // of BPF programs, left out: they come and go, captures record them
	Trampolines uint64 // of ftrace and kprobes, left out for the same reason
	Zero        uint64 // with address zero, left out
	Bad         uint64 // of another form, left out
	FirstBad    error  // *decode.Error about the first of those, or nil
}

// ErrRestricted is returned for a list in which every address is zero: the kernel hides them from
// those without CAP_SYSLOG (sysctl kernel.kptr_restrict).
var ErrRestricted = errors.New("all addresses are zero (kernel.kptr_restrict)")

// maxLine bounds a line. The kernel's own bound on a name is KSYM_NAME_LEN, 512.
const maxLine = 64 << 10

// Read visits the symbols as scanLines does. A line of another form is an error, too,
// after all valid ones have been visited.
func Read(name string, r io.Reader, visit func(Symbol) bool) error {
	stats, err := scanLines(name, r, visit)
	if err == nil && stats.Bad > 0 {
		err = fmt.Errorf("%d of %d lines are no kernel symbols, the first: %w",
			stats.Bad, stats.Lines, stats.FirstBad)
	}
	return err
}

// scanLines visits the symbols in the order of the file until visit returns false; lines that Stats
// counts as left out are not visited. The names given stay valid. If every address is zero the
// error wraps ErrRestricted; a list without one good line is an error, too. Single lines of another
// form are counted only.
func scanLines(name string, r io.Reader, visit func(Symbol) bool) (Stats, error) {
	return scan(&parser{name: name, modules: map[string]string{}}, r, visit)
}

// ScanAll visits the symbols as scanLines does, and those of BPF programs, too, as of a
// module "bpf": the programs loaded when the list was read.
func ScanAll(name string, r io.Reader, visit func(Symbol) bool) (Stats, error) {
	return scan(&parser{name: name, modules: map[string]string{}, bpf: true}, r, visit)
}

func scan(p *parser, r io.Reader, visit func(Symbol) bool) (Stats, error) {
	in := bufio.NewReaderSize(r, maxLine)
	for offset := int64(0); ; {
		line, err := in.ReadSlice('\n')
		if len(line) > 0 {
			p.stats.Lines++
			sym, ok := p.line(bytes.TrimRight(line, "\r\n"), offset, err)
			if ok {
				p.stats.Symbols++
				if !visit(sym) {
					return p.stats, nil
				}
			}
			offset += int64(len(line))
		}
		for errors.Is(err, bufio.ErrBufferFull) { // the rest of an endless line
			line, err = in.ReadSlice('\n')
			offset += int64(len(line))
		}
		if errors.Is(err, io.EOF) {
			return p.stats, p.verdict()
		}
		if err != nil {
			return p.stats, fmt.Errorf("%s: offset %#x: %w", p.name, offset, err)
		}
	}
}

// parser holds the state between lines.
type parser struct {
	name    string
	stats   Stats
	names   strings.Builder   // the present block of names
	modules map[string]string // names of modules seen
	bpf     bool              // visit the symbols of BPF programs
}

// verdict returns the error of the whole list at its end.
func (p *parser) verdict() error {
	s := &p.stats
	switch {
	case s.Symbols+s.BPF+s.Trampolines > 0:
		return nil
	case s.Zero > 0:
		return fmt.Errorf("%s: %w", p.name, ErrRestricted)
	case s.FirstBad != nil:
		return fmt.Errorf("not a list of kernel symbols: %w", s.FirstBad)
	}
	return &decode.Error{Name: p.name, Reason: "the list of kernel symbols is empty"}
}

func (p *parser) bad(offset int64, reason string) (Symbol, bool) {
	p.stats.Bad++
	if p.stats.FirstBad == nil {
		p.stats.FirstBad = &decode.Error{Name: p.name, Offset: offset, Reason: reason}
	}
	return Symbol{}, false
}

// line decodes one line; ok is false for those left out. ReadErr is the reader's error
// for it: a line without its newline was cut off, and the rest of its name could be
// another function's.
func (p *parser) line(b []byte, offset int64, readErr error) (s Symbol, ok bool) {
	if errors.Is(readErr, bufio.ErrBufferFull) {
		return p.bad(offset, "line is longer than 64 KiB")
	}
	if readErr != nil {
		return p.bad(offset, "the list breaks off in this line")
	}
	at, n := decode.Hex(b)
	switch {
	case n == 0 || n > 16:
		return p.bad(offset, "no address of 1 to 16 hexadecimal digits")
	case len(b) < n+4 || b[n] != ' ' || b[n+1] <= ' ' || b[n+2] != ' ':
		return p.bad(offset+int64(n), "no type and name after the address")
	}
	s.Addr, s.Type = at, b[n+1]
	name, module := b[n+3:], []byte(nil)
	if i := bytes.IndexAny(name, "\t "); i >= 0 {
		name, module = name[:i], bytes.TrimSpace(name[i:])
	}
	if len(name) == 0 {
		return p.bad(offset+int64(n)+3, "no name")
	}
	if len(module) > 0 {
		if len(module) < 3 || module[0] != '[' || module[len(module)-1] != ']' {
			return p.bad(offset+int64(n)+3+int64(len(name)), "no [module] after the name")
		}
		module = module[1 : len(module)-1]
	}
	switch {
	case at == 0: // in a hidden list those of BPF programs and trampolines, too
		p.stats.Zero++
		return s, false
	case string(module) == "bpf":
		p.stats.BPF++
		if !p.bpf {
			return s, false
		}
	case bytes.HasPrefix(module, []byte("__builtin__")): // __builtin__ftrace, __builtin__kprobes
		p.stats.Trampolines++
		return s, false
	}
	s.Name, s.Module = p.intern(name), p.module(module)
	return s, true
}

// nameBlock is the number of bytes of names that are allocated together: a kernel has
// 200,000 names of 20 bytes.
const nameBlock = 64 << 10

// intern returns a string of b that is in a block with its neighbours.
func (p *parser) intern(b []byte) string {
	if p.names.Cap()-p.names.Len() < len(b) {
		p.names = strings.Builder{}
		p.names.Grow(max(nameBlock, len(b)))
	}
	start := p.names.Len()
	p.names.Write(b)
	return p.names.String()[start:]
}

// maxModules bounds the names of modules that are kept; a host has hundreds.
const maxModules = 1 << 16

func (p *parser) module(b []byte) string {
	if m, ok := p.modules[string(b)]; ok || len(b) == 0 {
		return m
	}
	m := string(b)
	if len(p.modules) < maxModules {
		p.modules[m] = m
	}
	return m
}
