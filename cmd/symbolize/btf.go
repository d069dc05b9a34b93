package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"symbolize/ingest/object/btf"
)

const btfLong = `btf lists the types in a file's BTF, the type information of BPF and of the kernel:
number, kind, size in bytes, name. With TYPE it prints the types of that name as C, with
offset and size of each member in bytes, holes and padding, as pahole does. TYPE is a name
("list_head"), a name of one kind ("struct list_head", "var jiffies") or a number from the
list ("#12"). --format c prints all that have a name so, in the order of the list.

FILE is a BPF object or another ELF file with a section .BTF (also packed: .ko.zst), BTF as
it is (/sys/kernel/btf/vmlinux), or a capture or bundle, whose BPF programs have BTF.

Exit status: 0 done; 1 failed, or no type of a name; 2 usage; 3 of a capture only some could
be read; 130 interrupted.`

// btfOptions are the flags of btf.
type btfOptions struct {
	base, format string
}

func newBTFCommand(a *app) *cobra.Command {
	var o btfOptions
	cmd := &cobra.Command{
		Use:     "btf FILE [TYPE…]",
		Short:   "List the types in a file's BTF, or print them as C",
		Long:    btfLong,
		GroupID: groupLook,
		Example: "  symbolize btf prog.bpf.o\n" +
			"  symbolize btf /sys/kernel/btf/vmlinux 'struct task_struct'",
		Args: cobra.MinimumNArgs(1),
		RunE: a.runE(func(ctx context.Context, args []string) error {
			return runBTF(ctx, a, &o, args[0], args[1:])
		}),
	}
	cmd.Flags().StringVar(&o.base, "base", "",
		"the `FILE` whose types a kernel module's BTF continues, mostly /sys/kernel/btf/vmlinux")
	addFormatFlag(cmd, &o.format, formatText, formatJSON, formatC)
	return cmd
}

func runBTF(ctx context.Context, a *app, o *btfOptions, path string, names []string) error {
	if err := checkFormat(o.format, formatText, formatJSON, formatC); err != nil {
		return err
	}
	blobs, err := a.readBTF(ctx, path, o.base)
	if err != nil {
		return err
	}
	out := btfReport{File: path, c: o.format == formatC || len(names) > 0}
	for _, b := range blobs {
		if err := out.add(b, names); err != nil {
			return err
		}
	}
	if missing := out.missing(names); len(missing) > 0 {
		return withHint(fmt.Errorf("%s: no type %s in its BTF", path, strings.Join(missing, ", ")),
			"`symbolize btf %s` lists the types", path)
	}
	return a.writeOutput("", false, func(w io.Writer) error {
		if o.format == formatJSON {
			return writeJSON(w, out)
		}
		return out.writeText(w)
	})
}

// formatC prints the types of --format as C, all of them where none is named.
const formatC = "c"

// btfReport is what btf prints. Its JSON names are an interface.
type btfReport struct {
	File string        `json:"file"`
	BTF  []btfTypeList `json:"btf"`

	c     bool            // types are printed as C
	found map[string]bool // of the names that were asked for
}

type btfTypeList struct {
	Source string    `json:"source"` // whose types: ".BTF", or programs of a capture
	Types  []btfType `json:"types"`
}

type btfType struct {
	ID      btf.ID      `json:"id"`
	Kind    string      `json:"kind"`
	Name    string      `json:"name,omitempty"`
	Size    *uint64     `json:"size,omitempty"` // bytes; absent for what has none
	Members []btfMember `json:"members,omitempty"`
	C       string      `json:"c,omitempty"`
}

type btfMember struct {
	Name    string `json:"name"`
	Type    btf.ID `json:"type"`
	Offset  uint32 `json:"bit_offset"`
	BitSize uint8  `json:"bit_size,omitempty"` // of bit fields
}

// add takes in the types of one BTF: all, or those of these names.
func (r *btfReport) add(b btfBlob, names []string) error {
	list := btfTypeList{Source: b.source, Types: []btfType{}}
	first := btf.ID(1)
	if base := b.types.Base(); base != nil && len(names) == 0 {
		first = btf.ID(base.Len()) // the list is of the module's own
	}
	if r.found == nil {
		r.found = make(map[string]bool)
	}
	for id := first; id < btf.ID(b.types.Len()); id++ {
		switch {
		case len(names) > 0 && !r.wanted(b.types, id, names):
			continue
		case len(names) == 0 && r.c && (b.types.Name(id) == "" || !isDeclared(b.types.Kind(id))):
			continue
		}
		x := btfType{ID: id, Kind: b.types.Kind(id).String(), Name: b.types.Name(id)}
		if size, err := b.types.Size(id); err == nil {
			x.Size = &size
		}
		if r.c {
			if err := x.detail(b.types); err != nil {
				return err
			}
		}
		list.Types = append(list.Types, x)
	}
	r.BTF = append(r.BTF, list)
	return nil
}

// detail adds what a type that was asked for is made of.
func (x *btfType) detail(types *btf.Types) error {
	c, err := types.AppendC(nil, x.ID, nil)
	if err != nil {
		return err
	}
	x.C = string(c)
	for _, m := range types.Members(x.ID) {
		x.Members = append(x.Members, btfMember{m.Name, m.Type, m.BitOffset, m.BitSize})
	}
	return nil
}

// wanted tells whether a type is one of those that were named, and notes which.
func (r *btfReport) wanted(types *btf.Types, id btf.ID, names []string) bool {
	name, kind := types.Name(id), types.Kind(id)
	word := strings.ToLower(strings.TrimSuffix(kind.String(), "64"))
	found := false
	for _, n := range names {
		switch {
		case n == "#"+strconv.Itoa(int(id)):
		case name == "":
			continue
		case n == word+" "+name:
		case n != name || !isType(kind) && namesType(types, name):
			continue
		}
		found, r.found[n] = true, true
	}
	return found
}

// typeKinds are the kinds whose name is that of a type, and not of a variable or function.
var typeKinds = []btf.Kind{btf.KindStruct, btf.KindUnion, btf.KindEnum, btf.KindEnum64,
	btf.KindTypedef, btf.KindInt, btf.KindFloat, btf.KindFwd}

func isType(kind btf.Kind) bool { return slices.Contains(typeKinds, kind) }

// namesType tells whether there is a type of this name: variables and functions of the
// same name are then asked for as "var NAME" and "func NAME".
func namesType(types *btf.Types, name string) bool {
	return slices.ContainsFunc(typeKinds, func(k btf.Kind) bool {
		_, ok := types.ByName(k, name)
		return ok
	})
}

func (r *btfReport) missing(names []string) (out []string) {
	for _, n := range names {
		if !r.found[n] {
			out = append(out, strconv.Quote(n))
		}
	}
	return out
}

// isDeclared tells the kinds that a listing of all types as C has: those that C has without
// a declaration, and what is only part of others, are left out.
func isDeclared(kind btf.Kind) bool {
	switch kind {
	case btf.KindInt, btf.KindFloat, btf.KindTypeTag, btf.KindDeclTag:
		return false
	}
	return true
}

func (r *btfReport) writeText(w io.Writer) error {
	for i, list := range r.BTF {
		if len(list.Types) == 0 && r.c {
			continue
		}
		if i > 0 {
			fmt.Fprintln(w)
		}
		if len(r.BTF) > 1 {
			fmt.Fprintf(w, "/* %s */\n", strings.ReplaceAll(list.Source, "*/", "*?"))
		}
		if err := list.writeText(w, r.c); err != nil {
			return err
		}
	}
	return nil
}

func (l *btfTypeList) writeText(w io.Writer, c bool) error {
	if c {
		for i, x := range l.Types {
			if i > 0 {
				fmt.Fprintln(w)
			}
			if _, err := io.WriteString(w, x.C); err != nil {
				return err
			}
		}
		return nil
	}
	t := newTable(true, false, true)
	t.row("ID", "KIND", "SIZE", "NAME")
	for _, x := range l.Types {
		size, name := "-", x.Name
		if x.Size != nil {
			size = strconv.FormatUint(*x.Size, 10)
		}
		if name == "" {
			name = "-"
		}
		t.row(strconv.Itoa(int(x.ID)), x.Kind, size, name)
	}
	return t.writeTo(w)
}
