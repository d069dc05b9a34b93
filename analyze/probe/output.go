package probe

import (
	stdelf "debug/elf"
	"fmt"
	"strings"

	"symbolize/ingest/object/btf"
	"symbolize/ingest/object/dwarfvar"
	"symbolize/ingest/texts"
)

// returns reports whether the probe is at returns.
func (s *site) returns() bool {
	return len(s.args) > 0 && s.args[len(s.args)-1].text == "$retval"
}

// where returns the place of a probe for tracefs, and sets others.
func (s *site) where() (string, error) {
	p := s.p
	if p.Kernel {
		at := s.symbol
		if n := len(p.Symbols.named(s.symbol)); n > 1 {
			s.others = true
			text, ok := p.fromText(s)
			if !ok {
				return "", fmt.Errorf("%d functions are called %s", n, s.symbol)
			}
			return text, nil
		}
		if s.off > 0 {
			at = fmt.Sprintf("%s+%d", at, s.off)
		}
		if p.Module != "" {
			at = p.Module + ":" + at
		}
		return texts.Printable(at), nil
	}
	off, ok := p.FileOffset(s.table(s.at))
	if !ok {
		return "", fmt.Errorf("%s: layout unknown: a debug file has no file offsets", p.Path)
	}
	return fmt.Sprintf("%s:%#x", texts.Printable(p.Path), off), nil
}

// fromText returns the place of a probe in a kernel relative to _text.
func (p *Program) fromText(s *site) (string, bool) {
	for _, x := range p.Symbols.named("_text") {
		return fmt.Sprintf("_text+%d", s.table(s.at)-x.Start), true
	}
	return "", false
}

// tracefs writes the definitions for tracefs.
func (p *Program) tracefs(b *strings.Builder, list []*site) {
	events := "uprobe_events"
	if p.Kernel {
		events = "kprobe_events"
	}
	fmt.Fprintf(b, "# tracefs: %s\n", events)
	for _, s := range list {
		if s.body {
			fmt.Fprintf(b, "# behind the prologue: %s is not optimized\n", texts.Printable(s.f.Name))
		}
		for _, text := range s.notes() {
			fmt.Fprintf(b, "# %s\n", text)
		}
		kind := "p"
		if s.returns() {
			kind = "r"
		}
		fmt.Fprintf(b, "%s:%s/%s %s", kind, s.group, s.event, s.place)
		for i := range s.args {
			b.WriteString(" " + s.args[i].tracefs())
		}
		b.WriteByte('\n')
	}
}

// attach returns the place of a probe for bpftrace and libbpf.
func (s *site) attach(sep string) string {
	kind := "uprobe"
	if s.p.Kernel {
		kind = "kprobe"
	}
	if s.returns() {
		kind = strings.Replace(kind, "probe", "retprobe", 1)
	}
	at := kind + sep
	if !s.p.Kernel {
		at += texts.Printable(s.p.Path) + ":"
	}
	at += texts.Printable(s.symbol)
	if s.off > 0 {
		at += fmt.Sprintf("+%#x", s.off)
	}
	return at
}

// cast returns the type of bpftrace for a type of tracefs, with "__" for C.
func cast(format string) string {
	size := strings.TrimLeft(format, "usx")
	switch {
	case strings.HasPrefix(format, "s") && size != "":
		return "int" + size
	case size == "8", size == "16", size == "32", size == "64":
		return "uint" + size
	}
	return "uint64"
}

// word returns the type in which the value of a fetch is read: of a bit field its word.
func (f *fetch) word() string {
	if _, size, ok := strings.Cut(f.format, "/"); ok {
		return "x" + size
	}
	return f.format
}

// bits returns where a bit field begins in its word, and the mask of its bits; ok is false for other values.
func (f *fetch) bits() (at int, mask uint64, ok bool) {
	var width, size int
	n, _ := fmt.Sscanf(f.format, "b%d@%d/%d", &width, &at, &size)
	return at, uint64(1)<<width - 1, n == 3
}

// bpftrace writes a program for bpftrace.
func (p *Program) bpftrace(b *strings.Builder, list []*site) {
	b.WriteString("\n# bpftrace\n")
	for _, s := range list {
		if s.others {
			fmt.Fprintf(b, "# not for %s: several functions have its name\n", s.symbol)
			continue
		}
		var format, values strings.Builder
		for i := range s.args {
			f := &s.args[i]
			text, ok := f.expression(p)
			if !ok {
				fmt.Fprintf(b, "# %s: only tracefs reads it\n", f.label(i))
				continue
			}
			if format.Len() > 0 {
				format.WriteByte(' ')
			}
			verb := "0x%lx"
			if f.isText() {
				verb = "%s"
			}
			fmt.Fprintf(&format, "%s=%s", f.label(i), verb)
			values.WriteString(", " + text)
		}
		fmt.Fprintf(b, "%s { printf(\"%s\\n\"%s); }\n", s.attach(":"), format.String(), values.String())
	}
}

// label returns the name of an argument.
func (f *fetch) label(i int) string {
	switch {
	case f.name != "":
		return f.name
	case f.text == "$retval":
		return "retval"
	}
	return fmt.Sprintf("arg%d", i+1)
}

// expression returns the value in the language of bpftrace; ok is false if it has none for it.
func (f *fetch) expression(p *Program) (text string, ok bool) {
	if f.text != "" {
		if name, isRegister := strings.CutPrefix(f.text, "%"); isRegister {
			return p.bpftraceRegister(name), true
		}
		text, ok = map[string]string{"$retval": "retval", "$comm": "comm"}[f.text]
		return text, ok
	}
	refs := f.refs
	switch f.kind {
	case baseRegister:
		text = p.bpftraceRegister(f.base)
	case baseNumber:
		text = f.base
	case baseSymbol:
		text = fmt.Sprintf("kaddr(\"%s\")", f.base)
	default:
		return "", false
	}
	for i, r := range refs {
		if text = parenthesized(plus(text, r.off)); r.user && p.Kernel {
			text = "uptr" + text
		}
		if last := i == len(refs)-1; last && f.isText() {
			return "str" + text, true
		} else if last {
			text = fmt.Sprintf("*(%s *)%s", cast(f.word()), text)
		} else {
			text = fmt.Sprintf("*(uint64 *)%s", text)
		}
	}
	if len(refs) == 0 {
		text = fmt.Sprintf("(%s)%s", cast(f.word()), text)
	}
	if at, mask, ok := f.bits(); ok {
		text = fmt.Sprintf("((%s >> %d) & %#x)", text, at, mask)
	}
	return text, true
}

// bpftraceRegister returns a register as bpftrace names it.
func (p *Program) bpftraceRegister(name string) string {
	if n, ok := strings.CutPrefix(name, "x"); ok && p.Arch.ELF == stdelf.EM_AARCH64 {
		name = "r" + n
	}
	return fmt.Sprintf("reg(\"%s\")", name)
}

func parenthesized(s string) string { return "(" + s + ")" }

// plus adds an offset to a sum.
func plus(sum string, off int64) string {
	switch {
	case off < 0:
		return fmt.Sprintf("%s - %d", sum, -off)
	case off > 0:
		return fmt.Sprintf("%s + %d", sum, off)
	}
	return sum
}

// c writes BPF programs in C.
func (p *Program) c(b *strings.Builder, list []*site) {
	b.WriteString("\n// C, with vmlinux.h, bpf/bpf_helpers.h and bpf/bpf_tracing.h\n")
	for _, s := range list {
		if s.others {
			fmt.Fprintf(b, "// not for %s: several functions have its name\n", s.symbol)
			continue
		}
		fmt.Fprintf(b, "SEC(\"%s\")\n", s.attach("/"))
		switch {
		case s.returns():
			s.cReturn(b)
		case s.entry() && s.f != nil:
			s.cEntry(b)
		default:
			fmt.Fprintf(b, "int on_%s(struct pt_regs *ctx)\n{\n", s.event)
			s.cBody(b, nil)
		}
	}
}

// cReturn writes a program at the returns of a function.
func (s *site) cReturn(b *strings.Builder) {
	f := &s.args[len(s.args)-1]
	if f.ctype == "" || f.ctype == "void" {
		fmt.Fprintf(b, "int BPF_KRETPROBE(on_%s)\n{\n\treturn 0;\n}\n", s.event)
		return
	}
	fmt.Fprintf(b, "int BPF_KRETPROBE(on_%s, %s ret)\n{\n\treturn 0;\n}\n", s.event, f.ctype)
}

// abi are the registers of the first parameters that BPF_KPROBE reads.
func (p *Program) abi() []string {
	if p.Arch.ELF == stdelf.EM_X86_64 {
		return []string{"di", "si", "dx", "cx", "r8"}
	}
	return []string{"x0", "x1", "x2", "x3", "x4"}
}

// cEntry writes a program at the entry of a function: BPF_KPROBE reads the parameters in the first registers of the
// ABI.
func (s *site) cEntry(b *strings.Builder) {
	fmt.Fprintf(b, "int BPF_KPROBE(on_%s", s.event)
	abi, declared, n := s.p.abi(), make(map[string]bool), 0
	for i := range s.f.Vars {
		v := &s.f.Vars[i]
		if v.Scope != 0 || !v.Param || n == len(abi) {
			continue
		}
		f, err := s.argument(&Arg{Var: v.Name})
		if err != nil || f.kind != baseRegister || len(f.refs) > 0 || f.base != abi[n] || !s.scalar(v) {
			break
		}
		n++
		declared[f.name] = true
		fmt.Fprintf(b, ", %s", declaration(f.ctype, f.name))
	}
	b.WriteString(")\n{\n")
	s.cBody(b, declared)
}

// scalar reports whether a variable is a number or a pointer, which BPF_KPROBE casts to.
func (s *site) scalar(v *dwarfvar.Variable) bool {
	switch t := s.p.Vars.Types(); t.Kind(t.Strip(v.Type)) {
	case btf.KindPtr, btf.KindInt, btf.KindEnum, btf.KindEnum64:
		return true
	}
	return false
}

// declaration declares a variable of a type in C.
func declaration(typ, name string) string {
	if strings.HasSuffix(typ, "*") {
		return typ + name
	}
	return typ + " " + name
}

// cBody writes the reads of the arguments that are not declared.
func (s *site) cBody(b *strings.Builder, declared map[string]bool) {
	for i := range s.args {
		f := &s.args[i]
		if f.kind == baseRegister && f.text == "" && len(f.refs) == 0 && declared[f.name] {
			continue
		}
		s.cRead(b, f, f.label(i))
	}
	b.WriteString("\treturn 0;\n}\n")
}

// cRead writes the read of an argument.
func (s *site) cRead(b *strings.Builder, f *fetch, name string) {
	p := s.p
	if f.text != "" || f.kind == baseSymbol || f.kind == baseFile {
		fmt.Fprintf(b, "\t/* %s: only tracefs reads it */\n", name)
		return
	}
	base := f.base
	if f.kind == baseRegister {
		base = p.cRegister(f.base)
	}
	typ := "__" + strings.Replace(strings.Replace(cast(f.word()), "uint", "u", 1), "int", "s", 1)
	if len(f.refs) == 0 {
		fmt.Fprintf(b, "\t%s %s = %s;\n", typ, name, base)
		return
	}
	read := "bpf_probe_read_user"
	for i, r := range f.refs {
		if p.Kernel && !r.user {
			read = "bpf_probe_read_kernel"
		}
		from := "(void *)" + parenthesized(plus(base, r.off))
		switch last := i == len(f.refs)-1; {
		case last && f.isText():
			fmt.Fprintf(b, "\tchar %s[64];\n\t%s_str(%s, sizeof(%s), %s);\n", name, read, name, name, from)
		case last:
			fmt.Fprintf(b, "\t%s %s;\n\t%s(&%s, sizeof(%s), %s);\n", typ, name, read, name, name, from)
		default:
			next := fmt.Sprintf("%s_%d", name, i+1)
			fmt.Fprintf(b, "\t__u64 %s;\n\t%s(&%s, sizeof(%s), %s);\n", next, read, next, next, from)
			base = next
		}
	}
	if at, mask, ok := f.bits(); ok {
		fmt.Fprintf(b, "\t%s = %s >> %d & %#x;\n", name, name, at, mask)
	}
}

// cRegister returns a register of struct pt_regs in C.
func (p *Program) cRegister(name string) string {
	if p.Arch.ELF == stdelf.EM_X86_64 {
		return "ctx->" + name
	}
	if n, ok := strings.CutPrefix(name, "x"); ok {
		return "ctx->regs[" + n + "]"
	}
	return "ctx->" + name
}
