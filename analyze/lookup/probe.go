package lookup

import (
	"context"
	stdelf "debug/elf"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/machine"
	"symbolize/ingest/object/btf"
	"symbolize/ingest/object/dwarfvar"
	"symbolize/ingest/texts"
)

// argument is what a probe reads at a function's entry.
type argument struct {
	name, typ string // C
	fetch     string // for tracefs: "%di", "+8(%sp)"
	format    string // for tracefs: "s32"
	register  string // "di"; "" for memory
	offset    int64  // in memory, from the stack pointer
}

// Probe writes a probe at the entry of a function that reads some of its parameters, all without names,
// as text: for tracefs, bpftrace and BPF programs in C. Nothing is inserted.
func Probe(ctx context.Context, w io.Writer, obj *Object, query string) error {
	words := strings.Fields(query)
	if len(words) == 0 {
		return errors.New("no function is named")
	}
	v, err := obj.readVariables(ctx, dwarfvar.Options{Names: words[:1]})
	if err != nil {
		return err
	}
	defer v.Close()
	if v.Len() == 0 {
		if v.FromBTF() {
			return texts.WithHint(fmt.Errorf("%s: no function %s with known parameters in BTF", obj.Module, words[0]),
				"functions with a suffix (.isra.0), or of a name that several have, need DWARF: name the debug file with -e")
		}
		return texts.WithHint(fmt.Errorf("%s: no function %s in the debug information", obj.Module, words[0]),
			"`symbolize btf %s` lists the functions; one that is inlined everywhere has no entry", obj.Module)
	}
	f, err := v.Function(0)
	if err != nil {
		return err
	}
	if v.Len() > 1 {
		return fmt.Errorf("%s: %d functions are called %s", obj.Module, v.Len(), words[0])
	}
	p := prober{types: v.Types(), btf: v.FromBTF(), arch: machine.Of(stdelf.Machine(obj.manifest.Machine)), f: f}
	args, err := p.arguments(words[1:])
	if err != nil {
		return err
	}
	return p.write(w, obj, args, f.Entry-v.Base)
}

// prober makes a probe for a function.
type prober struct {
	types *btf.Types
	arch  *machine.Arch
	f     *dwarfvar.Function
	btf   bool // of the types: parameters are where the ABI has them
}

// arguments finds parameters at the function's entry.
func (p *prober) arguments(names []string) (args []argument, err error) {
	if p.arch == nil || p.arch.ELF != stdelf.EM_X86_64 && p.arch.ELF != stdelf.EM_AARCH64 {
		return nil, errors.New("probes are written for x86-64 and arm64 only")
	}
	found := make(map[string]bool)
	for i := range p.f.Vars {
		v := &p.f.Vars[i]
		if v.Scope != 0 || !v.Param || len(names) > 0 && !slices.Contains(names, v.Name) {
			continue
		}
		a, reason := p.argument(v)
		if reason != "" && len(names) > 0 {
			return nil, fmt.Errorf("%s of %s is not readable at its entry: %s", v.Name, p.f.Name, reason)
		}
		if found[v.Name] = true; reason == "" {
			args = append(args, a)
		}
	}
	for _, n := range names {
		if !found[n] {
			return nil, fmt.Errorf("%s has no parameter %s", p.f.Name, n)
		}
	}
	return args, nil
}

// argument finds a parameter at the entry, or the reason why it has no place that a probe can read.
func (p *prober) argument(v *dwarfvar.Variable) (a argument, reason string) {
	a = argument{name: texts.Printable(v.Name), typ: texts.Printable(p.types.TypeName(v.Type))}
	if a.format = p.format(v.Type); a.format == "" {
		return a, "it is a " + a.typ + ", and probes read numbers and pointers only"
	}
	where := v.At(p.f.Entry)
	sp := uint16(p.arch.SP)
	switch {
	case where.Kind == dwarfvar.Register:
		a.register = strings.TrimPrefix(p.arch.RegisterName(where.Reg), "%")
		if p.arch.ELF == stdelf.EM_X86_64 {
			if len(a.register) == 3 && a.register[0] == 'r' && a.register[1] > '9' {
				a.register = a.register[1:] // as struct pt_regs has it
			}
			if strings.Contains(a.register, "mm") {
				return a, "it is in " + a.register
			}
		} else if !strings.HasPrefix(a.register, "x") {
			return a, "it is in " + a.register
		}
		a.fetch = "%" + a.register
		return a, ""
	case where.Kind == dwarfvar.Stack:
		a.offset = where.Off + p.returnAddress()
	case where.Kind == dwarfvar.Memory && where.Reg == sp:
		a.offset = where.Off
	default:
		return a, "it is in another place, or optimized out"
	}
	a.fetch = fmt.Sprintf("%+d(%%sp)", a.offset)
	return a, ""
}

// returnAddress is the distance from the stack pointer at the entry to the CFA.
func (p *prober) returnAddress() int64 {
	if p.arch.LinkRegister {
		return 0
	}
	return int64(p.arch.Word)
}

// format returns the type of a value for tracefs, "" for a value that is not a number.
func (p *prober) format(id btf.ID) string {
	id = p.types.Strip(id)
	size, err := p.types.Size(id)
	if err != nil || size != 1 && size != 2 && size != 4 && size != 8 {
		return ""
	}
	switch p.types.Kind(id) {
	case btf.KindPtr:
		return fmt.Sprintf("x%d", 8*size)
	case btf.KindInt:
		if p.types.Int(id).Signed {
			return fmt.Sprintf("s%d", 8*size)
		}
		return fmt.Sprintf("u%d", 8*size)
	case btf.KindEnum, btf.KindEnum64:
		if p.types.EnumSigned(id) {
			return fmt.Sprintf("s%d", 8*size)
		}
		return fmt.Sprintf("u%d", 8*size)
	}
	return ""
}

// notWord is what names of events must not have.
var notWord = regexp.MustCompile(`\W+`)

func (p *prober) write(w io.Writer, obj *Object, args []argument, entry addr.Addr) error {
	symbol := p.f.Linkage
	if symbol == "" {
		symbol = p.f.Name
	}
	symbol = texts.Printable(symbol)
	event := notWord.ReplaceAllString(symbol, "_")
	var at, list, attach, section string
	switch obj.manifest.Kind {
	case ingest.Kernel, ingest.Module:
		at, list, attach, section = symbol, "kprobe_events", "kprobe:"+symbol, "kprobe/"+symbol
	default:
		off, ok := fileOffset(obj, entry)
		if !ok {
			return fmt.Errorf("%s: layout unknown: a debug file has no file offsets", obj.Module)
		}
		path := texts.Printable(obj.Module)
		at, list = fmt.Sprintf("%s:%#x", path, off), "uprobe_events"
		attach, section = "uprobe:"+path+":"+symbol, "uprobe/"+path+":"+symbol
	}
	var b strings.Builder
	if p.btf {
		b.WriteString("# by BTF: parameters are where the ABI has them\n\n")
	}
	fmt.Fprintf(&b, "# tracefs: %s\np:symbolize/%s %s", list, event, at)
	for _, a := range args {
		fmt.Fprintf(&b, " %s=%s:%s", a.name, a.fetch, a.format)
	}
	fmt.Fprintf(&b, "\n\n# bpftrace\n%s { printf(\"", attach)
	for i, a := range args {
		fmt.Fprintf(&b, "%s%s=0x%%lx", " "[:min(i, 1)], a.name)
	}
	b.WriteString(`\n"`)
	for _, a := range args {
		if a.register != "" {
			fmt.Fprintf(&b, ", (%s)reg(\"%s\")", cast(a.format), a.register)
		} else {
			fmt.Fprintf(&b, ", *(%s *)(reg(\"sp\") %+d)", cast(a.format), a.offset)
		}
	}
	b.WriteString("); }\n")
	p.writeC(&b, section, event)
	_, err := io.WriteString(w, b.String())
	return err
}

// cast returns the type of bpftrace for a type of tracefs.
func cast(format string) string {
	if format[0] == 's' {
		return "int" + format[1:]
	}
	return "uint" + format[1:]
}

// writeC writes a BPF program: BPF_KPROBE reads the parameters in the first registers of the ABI.
func (p *prober) writeC(b *strings.Builder, section, event string) {
	fmt.Fprintf(b, "\n// C, with bpf/bpf_tracing.h\nSEC(\"%s\")\nint BPF_KPROBE(on_%s", section, event)
	abi := []string{"x0", "x1", "x2", "x3", "x4"}
	if p.arch.ELF == stdelf.EM_X86_64 {
		abi = []string{"di", "si", "dx", "cx", "r8"}
	}
	n, left := 0, ""
	for i := range p.f.Vars {
		v := &p.f.Vars[i]
		if v.Scope != 0 || !v.Param || n == len(abi) {
			continue
		}
		a, _ := p.argument(v)
		if a.register != abi[n] {
			left = a.name
			break
		}
		n++
		fmt.Fprintf(b, ", %s %s", a.typ, a.name)
	}
	b.WriteString(")\n{\n\treturn 0;\n}\n")
	if left != "" {
		fmt.Fprintf(b, "// %s and what follows it are not in the registers that BPF_KPROBE reads\n", left)
	}
}

// fileOffset returns the offset of a table address in an object's file.
func fileOffset(obj *Object, a addr.Addr) (uint64, bool) {
	for _, s := range obj.manifest.Layout {
		if a >= s.Addr && a-s.Addr < addr.Addr(s.FileSize) {
			return uint64(s.Offset) + uint64(a-s.Addr), true
		}
	}
	return 0, false
}
