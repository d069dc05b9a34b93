package lookup

import (
	"bytes"
	"context"
	stdelf "debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/machine"
	"symbolize/ingest/object/btf"
	"symbolize/ingest/object/dwarfvar"
	"symbolize/ingest/object/elf"
	"symbolize/ingest/texts"
	"symbolize/store"
	"symbolize/store/indexer"
)

// A Variables answers addresses of an object with the variables that are in scope there, by debug
// information. It is for one goroutine.
type Variables struct {
	obj  *Object
	o    *Options
	v    *indexer.Variables
	arch *machine.Arch
}

// NewVariables opens the debug information of an object: of the functions at Options.Only. The caller
// closes it, before the object.
func NewVariables(ctx context.Context, obj *Object, o *Options) (*Variables, error) {
	x := &Variables{obj: obj, o: o, arch: machine.Of(stdelf.Machine(obj.manifest.Machine))}
	sel := dwarfvar.Options{Addrs: []addr.Addr{}}
	for _, text := range o.Only {
		v, valid := parseAddress([]byte(text))
		if at, ok := obj.place(v); valid && ok {
			sel.Addrs = append(sel.Addrs, at)
		}
	}
	var err error
	x.v, err = obj.readVariables(ctx, sel)
	return x, err
}

// readVariables reads the debug information that a table of the object was made from.
func (obj *Object) readVariables(ctx context.Context, sel dwarfvar.Options) (*indexer.Variables, error) {
	var failed error
	for _, s := range obj.manifest.Sources {
		if s.Kind != store.DWARF && (s.Kind != store.Symtab || hasLines(obj.manifest)) {
			continue
		}
		v, err := obj.readSource(ctx, s.Path, sel)
		if err == nil {
			return v, nil
		}
		if !errors.Is(err, indexer.ErrNoDebugInfo) {
			failed = errors.Join(failed, err)
		}
	}
	if failed == nil {
		return nil, texts.WithHint(fmt.Errorf("%s: %w", obj.Module, indexer.ErrNoDebugInfo),
			"variables need DWARF: install or `symbolize fetch` its debug file, and name it with -e")
	}
	return nil, texts.WithHint(failed, "variables are read from the debug file: name its copy with -e")
}

// readSource reads one file, if it is still the object's.
func (obj *Object) readSource(ctx context.Context, path string, sel dwarfvar.Options) (*indexer.Variables, error) {
	data, size, err := obj.openData(path)
	if err != nil {
		return nil, err
	}
	f, err := elf.Open(path, data, size)
	if err != nil {
		return nil, err
	}
	id, err := identify(f)
	if err != nil {
		return nil, err
	}
	if !id.Matches(obj.manifest.ID) {
		return nil, fmt.Errorf("%s: has the build ID %s now, not %s", path, id, obj.manifest.ID)
	}
	return indexer.ReadVariables(ctx, path, data, f, sel)
}

// Close closes the debug information.
func (x *Variables) Close() error { return x.v.Close() }

// Incomplete is as of indexer.Variables.
func (x *Variables) Incomplete() error { return x.v.Incomplete() }

// Arguments answers addresses.
func (x *Variables) Arguments(w io.Writer, args []string) error {
	return x.o.writeAnswers(w, func(o *Options, w io.Writer) error {
		var out []byte
		for _, arg := range args {
			a, err := x.answer([]byte(arg))
			if err != nil {
				return err
			}
			out = o.appendVariables(out, a)
		}
		_, err := w.Write(out)
		return err
	})
}

// Scope is the answer to an address: its function with the variables in scope.
type Scope struct {
	Input     string // the query
	Valid     bool   // it is an address
	Address   uint64
	Module    string
	Function  string // "" without debug information
	Offset    uint64 // from the function's entry
	BTF       bool   // parameters are known at the entry, by BTF
	Variables []ScopeVariable
}

// ScopeVariable is a variable at an address.
type ScopeVariable struct {
	Name, Type string
	Param      bool
	Place      string
	Inlined    string // the inlined function that it belongs to, "" for the function itself
}

// answer finds the variables at an address.
func (x *Variables) answer(query []byte) (*Scope, error) {
	a := &Scope{Input: string(query), Module: x.obj.Module}
	a.Address, a.Valid = parseAddress(query)
	at, ok := x.obj.place(a.Address)
	if !a.Valid || !ok {
		return a, nil
	}
	at += x.v.Base
	f, err := x.v.FunctionAt(at)
	if f == nil || err != nil {
		return a, err
	}
	a.Function, a.Offset = texts.Printable(f.Name), uint64(at-f.Entry)
	a.BTF = x.v.FromBTF()
	for i := range f.Vars {
		v := &f.Vars[i]
		if !f.Holds(v.Scope, at) {
			continue
		}
		inlined := f.Inlined(v.Scope)
		if inlined != "" && x.o.NoInlines {
			continue
		}
		a.Variables = append(a.Variables, ScopeVariable{Name: texts.Printable(v.Name), Param: v.Param,
			Type: texts.Printable(x.v.Types().TypeName(v.Type)), Inlined: texts.Printable(inlined),
			Place: x.placeOf(v, at)})
	}
	return a, nil
}

// placeOf describes the place of a variable at an address.
func (x *Variables) placeOf(v *dwarfvar.Variable, at addr.Addr) string {
	p := v.At(at)
	if p.Kind == dwarfvar.Lost && x.v.FromBTF() {
		return "unknown"
	}
	return x.text(p, v.Type)
}

// text describes a place.
func (x *Variables) text(p dwarfvar.Place, typ btf.ID) string {
	reg := x.arch.RegisterName(p.Reg)
	plus := ""
	if p.Off != 0 {
		plus = fmt.Sprintf("%+d", p.Off)
	}
	switch p.Kind {
	case dwarfvar.Register:
		return reg
	case dwarfvar.Memory:
		if x.arch != nil && uint16(x.arch.SP) == p.Reg {
			return "stack " + reg + plus
		}
		return "memory " + reg + plus
	case dwarfvar.Stack:
		return "stack CFA" + plus
	case dwarfvar.Static:
		return fmt.Sprintf("memory %#x", uint64(p.Off)-x.static())
	case dwarfvar.ThreadLocal:
		return fmt.Sprintf("thread-local %#x", p.Off)
	case dwarfvar.Constant:
		return "constant " + constant(x.v.Types(), typ, p.Off)
	case dwarfvar.Sum:
		return "value " + reg + plus
	case dwarfvar.StackAddress:
		return "address CFA" + plus
	case dwarfvar.Entry:
		return "entry value " + reg + plus
	case dwarfvar.Bytes:
		return "constant bytes " + hex.EncodeToString(p.Data[:min(len(p.Data), maxBytes)])
	case dwarfvar.Pointee:
		return "optimized out pointer"
	case dwarfvar.Parts:
		return x.parts(p.Parts)
	case dwarfvar.Computed:
		return "computed"
	}
	return "optimized out"
}

// maxBytes bounds the bytes of a constant that are printed.
const maxBytes = 64

// static is what addresses of variables are above the user's: modules have none of their own.
func (x *Variables) static() uint64 {
	if x.obj.manifest.Kind == ingest.Module {
		return uint64(x.v.Base)
	}
	return 0
}

// parts describes places of parts: "8 bytes %rax, 8 bytes optimized out".
func (x *Variables) parts(list []dwarfvar.Part) string {
	var b strings.Builder
	for i, p := range list {
		if i > 0 {
			b.WriteString(", ")
		}
		if p.Bits%8 == 0 {
			fmt.Fprintf(&b, "%d bytes ", p.Bits/8)
		} else {
			fmt.Fprintf(&b, "%d bits ", p.Bits)
		}
		b.WriteString(x.text(p.Place, 0))
	}
	return b.String()
}

// constant prints the value of a variable by its type.
func constant(t *btf.Types, typ btf.ID, v int64) string {
	id := t.Strip(typ)
	switch t.Kind(id) {
	case btf.KindEnum, btf.KindEnum64:
		for _, e := range t.Enumerators(id) {
			if int64(e.Value) == v {
				return texts.Printable(e.Name)
			}
		}
	case btf.KindPtr:
		if v < 0 || v > 9 {
			return fmt.Sprintf("%#x", uint64(v))
		}
	case btf.KindInt:
		if i := t.Int(id); !i.Signed && i.Size < 8 {
			return strconv.FormatUint(uint64(v)&(1<<(8*i.Size)-1), 10)
		} else if !i.Signed {
			return strconv.FormatUint(uint64(v), 10)
		}
	}
	return strconv.FormatInt(v, 10)
}

// appendVariables appends the answer to an address.
func (o *Options) appendVariables(b []byte, a *Scope) []byte {
	if o.Style == JSON {
		if o.list {
			b = append(b, ',')
		}
		b = a.appendJSON(b)
		if !o.list {
			b = append(b, '\n')
		}
		return b
	}
	return a.appendText(b)
}

// maxColumn bounds the columns of names and types that places are aligned by.
const maxColumn = 40

func (a *Scope) appendText(b []byte) []byte {
	switch {
	case !a.Valid:
		return append(append(b, a.Input...), '\n')
	case a.Function == "":
		return append(fmt.Appendf(b, "%#x: no function in the debug information", a.Address), "\n\n"...)
	}
	b = fmt.Appendf(b, "%s+%#x", a.Function, a.Offset)
	if a.BTF {
		b = append(b, "  (BTF: parameters, at the entry)"...)
	}
	b = append(b, '\n')
	name, typ, place := 0, 0, 0
	for i := range a.Variables {
		v := &a.Variables[i]
		name, typ = max(name, utf8.RuneCountInString(v.Name)), max(typ, utf8.RuneCountInString(v.Type))
		place = max(place, utf8.RuneCountInString(v.Place))
	}
	name, typ, place = min(name, maxColumn), min(typ, maxColumn), min(place, maxColumn)
	for i := range a.Variables {
		v := &a.Variables[i]
		line := fmt.Appendf(nil, "  %-9s %-*s  %-*s  ", kindOf(v.Param), name, v.Name, typ, v.Type)
		if v.Inlined == "" {
			line = append(line, v.Place...)
		} else {
			line = fmt.Appendf(line, "%-*s  in %s (inlined)", place, v.Place, v.Inlined)
		}
		b = append(append(b, bytes.TrimRight(line, " ")...), '\n')
	}
	return append(b, '\n')
}

func kindOf(param bool) string {
	if param {
		return "parameter"
	}
	return "variable"
}

func (a *Scope) appendJSON(b []byte) []byte {
	if !a.Valid {
		b = texts.AppendJSONString(append(b, `{"Error":{"Message":`...), "unable to parse arguments: "+a.Input)
		return append(texts.AppendJSONString(append(b, `},"ModuleName":`...), a.Module), '}')
	}
	b = fmt.Appendf(b, `{"Address":"%#x","ModuleName":`, a.Address)
	b = texts.AppendJSONString(b, a.Module)
	b = append(b, `,"FunctionName":`...)
	b = texts.AppendJSONString(b, a.Function)
	b = strconv.AppendUint(append(b, `,"Offset":`...), a.Offset, 10)
	if a.BTF {
		b = append(b, `,"Source":"BTF"`...)
	}
	b = append(b, `,"Variables":[`...)
	for i := range a.Variables {
		v := &a.Variables[i]
		if i > 0 {
			b = append(b, ',')
		}
		for j, field := range []struct{ key, text string }{{"Name", v.Name}, {"Kind", kindOf(v.Param)},
			{"Type", v.Type}, {"Place", v.Place}, {"Inlined", v.Inlined}} {
			b = append(b, "{,"[min(j, 1)])
			b = append(append(append(b, '"'), field.key...), `":`...)
			b = texts.AppendJSONString(b, field.text)
		}
		b = append(b, '}')
	}
	return append(b, "]}"...)
}
