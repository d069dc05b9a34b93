package cfi

import (
	"bytes"
	"debug/elf"

	"symbolize/ingest/addr"
	"symbolize/ingest/machine"
)

// SignalRule returns the rule of code that a signal handler returns to, with the stack pointer
// popped bytes above where the handler's return has left it; false if there are too many
// expressions.
func (b *Builder) SignalRule(f *machine.SignalFrame, popped int) (r Rule, ok bool) {
	const breg0, deref = 0x70, 0x06
	ok = true
	at := func(off int, code ...byte) int32 {
		off -= popped
		code = append([]byte{breg0 + b.Arch.SP, byte(off&0x7f) | 0x80, byte(off >> 7)}, code...)
		n, added := b.Expr(code)
		ok = ok && added
		return n
	}
	r = Rule{Kind: Frame, Signal: true, CFA: Where{How: Expr, Off: at(f.SP, deref)},
		RA: Where{How: AtExpr, Off: at(f.PC)}}
	for i := range b.Arch.Saved {
		r.Saved[i] = Where{How: AtExpr, Off: at(f.Saved[i])}
	}
	return r, ok
}

// restorer is a function that signal handlers return to: a system call.
type restorer struct {
	machine elf.Machine
	code    string
	frame   int // number of its SignalFrame
	pop     int // length of the instruction at its start that pops a word
}

// The functions of C libraries and of the kernel's vdso.
var restorers = []restorer{
	{elf.EM_X86_64, "\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05", 0, 0}, // mov $15, %rax; syscall
	{elf.EM_386, "\xb8\xad\x00\x00\x00\xcd\x80", 0, 0},            // mov $173, %eax; int $0x80
	{elf.EM_386, "\x58\xb8\x77\x00\x00\x00\xcd\x80", 1, 1},        // pop %eax; mov $119, %eax; int $0x80
	{elf.EM_AARCH64, "\x68\x11\x80\xd2\x01\x00\x00\xd4", 0, 0},    // mov x8, #139; svc #0
}

// PatternSize is the length of the longest function that Restorers and Bottoms find: code that is
// searched in pieces overlaps by one byte less.
const PatternSize = len(endbr64) + 11

// endbr64 is the instruction that a function with checks of indirect calls begins with.
const endbr64 = "\xf3\x0f\x1e\xfa"

// bottoms are the beginnings of functions that no code calls: makecontext(3) puts their address
// where the return address of a context's function is. glibc's __start_context, since 2.28 and
// before: mov %rbx, %rsp; mov (%rsp), %rdi, or pop %rdi; test %rdi, %rdi; je.
var bottoms = []struct {
	machine elf.Machine
	code    string
}{
	{elf.EM_X86_64, "\x48\x89\xdc\x48\x8b\x3c\x24\x48\x85\xff\x74"},
	{elf.EM_X86_64, "\x48\x89\xdc\x5f\x48\x85\xff\x74"},
}

// Bottoms adds the functions in a piece of code, at an address, in which the stacks of contexts
// end. Their directives do not show that, and a return to their first byte would be looked up in
// the function before.
func (b *Builder) Bottoms(at addr.Addr, code []byte) {
	for i := range bottoms {
		p := &bottoms[i]
		if p.machine != b.Arch.ELF {
			continue
		}
		for from := 0; ; {
			n := bytes.Index(code[from:], []byte(p.code))
			if n < 0 {
				break
			}
			start := from + n
			from = start + len(p.code)
			end := at + addr.Addr(from)
			if bytes.HasSuffix(code[:start], []byte(endbr64)) {
				start -= len(endbr64)
			}
			first := at + addr.Addr(start)
			if first > 0 && b.Func(addr.Range{Start: first - 1, End: end}) {
				b.Row(first-1, &Rule{Kind: End})
			}
		}
	}
}

// Restorers adds the functions in a piece of code, at an address, that signal handlers return
// to, for C libraries that describe them by no directives (musl) or as ordinary ones. Nobody
// calls them and unwinders look up the byte before a return address: each begins with the byte
// before it. It ends with the one after it, where the system call is.
func (b *Builder) Restorers(at addr.Addr, code []byte) {
	for i := range restorers {
		r := &restorers[i]
		if r.machine != b.Arch.ELF {
			continue
		}
		for from := 0; ; {
			n := bytes.Index(code[from:], []byte(r.code))
			if n < 0 {
				break
			}
			b.restorer(r, at+addr.Addr(from+n))
			from += n + len(r.code)
		}
	}
}

func (b *Builder) restorer(r *restorer, at addr.Addr) {
	frame := &b.Arch.Signals[r.frame]
	rule, ok := b.SignalRule(frame, 0)
	if !ok || at == 0 || !b.Func(addr.Range{Start: at - 1, End: at + addr.Addr(len(r.code)) + 1}) {
		return
	}
	b.Row(at-1, &rule)
	if r.pop == 0 {
		return
	}
	if rule, ok = b.SignalRule(frame, b.Arch.Word); ok {
		b.Row(at+addr.Addr(r.pop), &rule)
	}
}
