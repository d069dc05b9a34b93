package symlist

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"symbolize/ingest/decode"
)

// IsKallsyms reports whether a file begins like "ffffffff81000000 T _text\n".
func IsKallsyms(head []byte) bool {
	line, _, _ := bytes.Cut(head, []byte("\n"))
	f := bytes.Fields(line)
	if len(f) < 3 || len(f[0]) < 8 || len(f[0]) > 16 || len(f[1]) != 1 {
		return false
	}
	for _, c := range f[0] {
		if bytes.IndexByte([]byte("0123456789abcdefABCDEF"), c) < 0 {
			return false
		}
	}
	return true
}

// KernelPadding is the prefix of symbols for the padding before functions (CONFIG_CALL_PADDING,
// CONFIG_CFI_CLANG): "__pfx_" and the function's name. No call has them as target.
const KernelPadding = "__pfx_"

// KernelSymbol is a line of kallsyms.
type KernelSymbol struct {
	Addr   uint64 // run-time address
	Type   byte   // as nm: 't', 'T', 'w', 'W' and some others are code
	Name   string
	Module string // "" for the kernel proper, else without brackets
}

// IsCode reports whether the type letter is one of code, as perf counts it
// (tools/lib/symbol/kallsyms.c): text, or weak. Mapping symbols ("$x", "$xrv64…") and local labels
// (".L12") are not symbols: kernels before 6.5 list them for RISC-V modules.
func (s *KernelSymbol) IsCode() bool {
	switch s.Type {
	case 'T', 't', 'W', 'w':
		label := len(s.Name) > 2 && s.Name[:2] == ".L" && s.Name[2] <= '9'
		return !label && !strings.HasPrefix(s.Name, "$")
	}
	return false
}

// SortKernelSymbols sorts symbols by address. Symbols of one address keep their order.
func SortKernelSymbols(list []KernelSymbol) {
	slices.SortStableFunc(list, func(a, b KernelSymbol) int { return cmp.Compare(a.Addr, b.Addr) })
}

// KernelStats counts the lines of kallsyms.
type KernelStats struct {
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

// ReadKallsyms visits the symbols as ScanKallsyms does, without BPF programs. A line of another
// form is an error, after all valid lines were visited.
func ReadKallsyms(name string, r io.Reader, visit func(KernelSymbol) bool) error {
	stats, err := ScanKallsyms(name, r, false, visit)
	if err == nil && stats.Bad > 0 {
		err = fmt.Errorf("%d of %d lines are not kernel symbols, the first: %w",
			stats.Bad, stats.Lines, stats.FirstBad)
	}
	return err
}

// errStopped is the error of eachLine after the caller of ScanKallsyms stopped it.
var errStopped = errors.New("stopped")

// ScanKallsyms visits the symbols in the order of the file until visit returns false; lines that
// KernelStats counts as left out are not visited. bpf includes the BPF programs that were loaded
// when the list was read, as symbols of a module "bpf". The names stay valid. If every address is
// zero the error wraps ErrRestricted; a list without a valid line is an error, too. Single lines of
// another form are only counted.
func ScanKallsyms(name string, r io.Reader, bpf bool, visit func(KernelSymbol) bool) (KernelStats,
	error) {
	p := &parser{name: name, modules: make(map[string]string), bpf: bpf}
	err := eachLine(name, "list", r, func(line []byte, offset int64, reason string) error {
		p.stats.Lines++
		s, ok := p.line(line, offset, reason)
		if !ok {
			return nil
		}
		p.stats.Symbols++
		if !visit(s) {
			return errStopped
		}
		return nil
	})
	switch {
	case errors.Is(err, errStopped):
		err = nil
	case err == nil:
		err = p.verdict()
	}
	return p.stats, err
}

// parser holds the state between lines.
type parser struct {
	name    string
	stats   KernelStats
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

func (p *parser) bad(offset int64, reason string) (KernelSymbol, bool) {
	p.stats.Bad++
	if p.stats.FirstBad == nil {
		p.stats.FirstBad = &decode.Error{Name: p.name, Offset: offset, Reason: reason}
	}
	return KernelSymbol{}, false
}

// line decodes a line, unless there is a reason not to use it; ok is false for lines that are left
// out.
func (p *parser) line(b []byte, offset int64, reason string) (s KernelSymbol, ok bool) {
	if reason != "" {
		return p.bad(offset, reason)
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
