package indexer

import (
	"bytes"
	stdelf "debug/elf"
	"encoding/binary"
	"slices"

	"symbolize/ingest/addr"
	"symbolize/ingest/machine"
	"symbolize/ingest/object/cfi"
	"symbolize/ingest/object/elf"
	"symbolize/store"
	"symbolize/store/unwindtab"
)

// unwindTable adds the rules for unwinding copied stacks: from Go's table, for other code from
// .eh_frame, then from .debug_frame. Without these, from .sframe, which assemblers write from the
// same directives; then the fixed rules of PLT stubs and .init. A debug file, which does not run,
// has .debug_frame alone.
// It returns the rules, nil for a machine whose stacks are not unwound.
func (s *sources) unwindTable(f *elf.File, runs bool) *cfi.Builder {
	b := s.unwindRules(f, runs)
	if b == nil {
		return nil
	}
	if table := unwindtab.Encode(b); table != nil {
		s.c.Sources = append(s.c.Sources, store.SourceOf(store.Unwind, s.path, table))
	}
	return b
}

// unwindRules returns the rules of unwindTable, in the worker's Builder.
func (s *sources) unwindRules(f *elf.File, runs bool) *cfi.Builder {
	arch := cfi.ArchOf(f.Machine)
	if arch == nil || f.BigEndian || f.Class == stdelf.ELFCLASS64 != (arch.Word == 8) {
		return nil
	}
	if s.w.rules == nil {
		s.w.rules = cfi.NewBuilder(arch)
	} else {
		s.w.rules.Reset(arch)
	}
	b := s.w.rules
	goProgram := false
	if runs {
		// For Go's functions .debug_frame has fewer rules: none where they switch stacks.
		if goProgram = sectionRules(s, b, f, s.goTable); !goProgram {
			patterns(b, f)
		}
		sectionRules(s, b, f, cfi.FindEHFrame)
	}
	if !goProgram {
		sectionRules(s, b, f, cfi.FindDebugFrame)
	}
	if runs {
		if b.Funcs() == 0 {
			sectionRules(s, b, f, cfi.FindSFrame)
		}
		weakRules(b, f)
	}
	if n := b.Dropped(); n > 0 {
		s.fail(lostEntries(n, nil))
	}
	return b
}

// searched is how much code is searched for restorers at a time.
const searched = 1 << 20

// patterns adds functions that are recognized by their code: those to which signal handlers return,
// and those at the end of a context's stack. They are in the C library; only a file that needs no
// library except the dynamic linker (the C library itself, or a static program) is searched.
func patterns(b *cfi.Builder, f *elf.File) {
	defer b.NextSource()
	if needsLibraries(f) {
		return
	}
	var buf []byte
	for i := range f.Sections {
		sec := &f.Sections[i]
		if !sec.IsCode() || sec.Type == stdelf.SHT_NOBITS {
			continue
		}
		for at := uint64(0); at < sec.Size; at += searched - uint64(cfi.PatternSize) + 1 {
			n := int(min(sec.Size-at, searched))
			buf = slices.Grow(buf[:0], n) // not all of it: most code is small
			code := buf[:n]
			if f.ReadBytes(sec.Offset+addr.Offset(at), code) != nil {
				break // its frames have the reason
			}
			b.Restorers(sec.Addr+addr.Addr(at), code)
			b.Bottoms(sec.Addr+addr.Addr(at), code)
		}
	}
}

// needsLibraries reports whether a file lists libraries that it needs besides the dynamic linker:
// DT_NEEDED.
func needsLibraries(f *elf.File) bool {
	sec := f.Section(".dynamic")
	if sec == nil {
		return false
	}
	b, err := f.Data(sec, maxDynamic)
	if err != nil {
		return true
	}
	word := 8
	if f.Class == stdelf.ELFCLASS32 {
		word = 4
	}
	for ; len(b) >= 2*word; b = b[2*word:] {
		if stdelf.DynTag(binary.LittleEndian.Uint32(b)) == stdelf.DT_NEEDED &&
			!isDynamicLinker(f, binary.LittleEndian.Uint32(b[word:])) {
			return true
		}
	}
	return false
}

// isDynamicLinker reports whether a library is the dynamic linker by its name, at an offset of the
// strings of dynamic linking.
func isDynamicLinker(f *elf.File, name uint32) bool {
	const prefix = "ld-linux" // ld-linux-x86-64.so.2
	sec := f.Section(".dynstr")
	if sec == nil || uint64(name)+uint64(len(prefix)) > sec.Size {
		return false
	}
	var b [len(prefix)]byte
	return f.ReadBytes(sec.Offset+addr.Offset(name), b[:]) == nil && string(b[:]) == prefix
}

// maxDynamic is the largest dynamic section that is read. Real ones have some hundred bytes.
const maxDynamic = 1 << 20

// ruleSection is a section of rules.
type ruleSection interface {
	comparable
	Rules(*cfi.Builder) (lost int, err error)
}

// sectionRules adds the rules of the section that find returns, and reports whether there is one.
func sectionRules[S ruleSection](s *sources, b *cfi.Builder, f *elf.File,
	find func(*elf.File) (S, error)) bool {
	section, err := find(f)
	if err != nil {
		s.fail(incompleteError(err.Error()))
	}
	var none S
	if section == none {
		return false
	}
	if err := lostEntries(section.Rules(b)); err != nil {
		s.fail(err)
	}
	b.NextSource()
	return true
}

// maxEntryCode is the maximum length of code that belongs to the entry point: in ld.so it is 0x60
// bytes long, and calls the dynamic linker and the initializers.
const maxEntryCode = 128

// weakRules adds rules for code that linkers and C libraries leave without: stubs of the
// procedure linkage table, which have not touched the stack, .init and .fini, and the code at the
// entry point, which has no caller.
func weakRules(b *cfi.Builder, f *elf.File) {
	for i := range f.Sections {
		sec := &f.Sections[i]
		if !sec.IsCode() {
			continue
		}
		switch sec.Name {
		case ".plt", ".plt.sec", ".plt.got", ".plt.bnd", ".iplt":
			if b.Func(addr.Range{Start: sec.Addr, End: sec.Addr + addr.Addr(sec.Size)}) {
				b.Row(sec.Addr, stubRule(b.Arch))
			}
		}
	}
	if f.Machine == stdelf.EM_X86_64 {
		initRules(b, f)
	}
	b.NextSource()
	if f.Entry == 0 || b.Covered(f.Entry) || f.Type == stdelf.ET_REL {
		return
	}
	end := f.Entry + maxEntryCode
	if next, ok := b.Next(f.Entry); ok {
		end = min(end, next)
	}
	if b.Func(addr.Range{Start: f.Entry, End: end}) {
		b.Row(f.Entry, &cfi.Rule{Kind: cfi.End})
	}
}

// stubRule is the rule of code that has pushed nothing.
func stubRule(a *machine.Arch) *cfi.Rule {
	r := &cfi.Rule{Kind: cfi.Frame, CFA: cfi.Where{How: cfi.Register, Reg: a.SP}}
	if !a.LinkRegister {
		r.CFA.Off = int32(a.Word)
		r.RA = cfi.Where{How: cfi.AtCFA, Off: int32(-a.Word)}
	}
	return r
}

// maxInit bounds the bytes of .init and .fini that are read; theirs is one function of some 30.
const maxInit = 4 << 10

// initRules adds the rules of .init and .fini of x86-64, which C libraries put together of pieces
// without any: the stack pointer goes down by a word at the start, and up before the end.
func initRules(b *cfi.Builder, f *elf.File) {
	for _, name := range []string{".init", ".fini"} {
		s := f.Section(name)
		if s == nil || !s.IsCode() || s.Size > maxInit {
			continue
		}
		code, err := f.Data(s, maxInit)
		if err != nil {
			continue // its frames have the reason
		}
		sub := bytes.Index(code, []byte{0x48, 0x83, 0xec, 0x08}) // sub $8, %rsp
		add := bytes.LastIndex(code, []byte{0x48, 0x83, 0xc4, 0x08})
		const endbr = 4
		if sub < 0 || sub > endbr || add < sub ||
			!b.Func(addr.Range{Start: s.Addr, End: s.Addr + addr.Addr(s.Size)}) {
			continue
		}
		plain, down := *stubRule(b.Arch), *stubRule(b.Arch)
		down.CFA.Off += int32(b.Arch.Word)
		b.Row(s.Addr, &plain)
		b.Row(s.Addr+addr.Addr(sub)+4, &down)
		b.Row(s.Addr+addr.Addr(add)+4, &plain)
	}
}
