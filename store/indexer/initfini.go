package indexer

import (
	"bytes"

	"symbolize/ingest/addr"
	"symbolize/ingest/object/cfi"
	"symbolize/ingest/object/elf"
)

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
