package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"symbolize/analyze/table"
	"symbolize/ingest"
	"symbolize/ingest/object/btf"
)

const btfLong = `btf lists the types in a file's BTF, the type information of BPF and of the kernel:
number, kind, size in bytes, name. With TYPE it prints the types of that name as C, with
offset and size of each member in bytes, holes and padding, as pahole does. TYPE is a name
("list_head"), a name of one kind ("struct list_head", "var jiffies") or a number from the
list ("#12").

--format c prints a C header that compiles, as ` + "`bpftool btf dump FILE format c`" + `: all types,
or those that are named, with what they need, in the order that C wants. A name that C does
not allow a second time gets a suffix, NAME___2. Of 8-byte enumerations that clang before 15
compiled, BTF has the low halves of the values only: there are comments on these.

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
	out := btfReport{File: path, c: o.format != formatC && len(names) > 0, wants: wants(names)}
	for _, b := range blobs {
		if err := out.add(b); err != nil {
			return err
		}
	}
	if missing := out.missing(names); len(missing) > 0 {
		return withHint(fmt.Errorf("%s: no type %s in its BTF", path, strings.Join(missing, ", ")),
			"`symbolize btf %s` lists the types", path)
	}
	return a.writeOutput("", false, func(w io.Writer) error {
		switch o.format {
		case formatJSON:
			return ingest.WriteJSON(w, out)
		case formatC:
			return out.writeC(w, blobs)
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
	wants map[string]bool // the names that were asked for, and whether they were found
}

// wants returns the names to look for: thousands of them cost no more than one.
func wants(names []string) map[string]bool {
	out := make(map[string]bool, len(names))
	for _, n := range names {
		out[n] = false
	}
	return out
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

// add takes in the types of one BTF: all, or those that were asked for.
func (r *btfReport) add(b btfBlob) error {
	list := btfTypeList{Source: b.source, Types: []btfType{}}
	first := btf.ID(1)
	if base := b.types.Base(); base != nil && len(r.wants) == 0 {
		first = btf.ID(base.Len()) // the list is of the module's own
	}
	for id := first; id < btf.ID(b.types.Len()); id++ {
		if len(r.wants) > 0 && !r.wanted(b.types, id) {
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
func (r *btfReport) wanted(types *btf.Types, id btf.ID) bool {
	name, kind := types.Name(id), types.Kind(id)
	found := r.find("#" + strconv.Itoa(int(id)))
	if name == "" {
		return found
	}
	word := strings.ToLower(strings.TrimSuffix(kind.String(), "64"))
	found = r.find(word+" "+name) || found
	if _, ok := r.wants[name]; ok && (isType(kind) || !namesType(types, name)) {
		found = r.find(name)
	}
	return found
}

// find tells whether a name was asked for, and notes that it is there.
func (r *btfReport) find(name string) bool {
	_, ok := r.wants[name]
	if ok {
		r.wants[name] = true
	}
	return ok
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
		if !r.wants[n] {
			out = append(out, strconv.Quote(n))
		}
	}
	return out
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
			fmt.Fprintf(w, "/* %s */\n", strings.ReplaceAll(oneLine(list.Source), "*/", "*?"))
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
	t := table.New(true, false, true)
	t.Row("ID", "KIND", "SIZE", "NAME")
	for _, x := range l.Types {
		size, name := "-", x.Name
		if x.Size != nil {
			size = strconv.FormatUint(*x.Size, 10)
		}
		if name == "" {
			name = "-"
		}
		t.Row(strconv.Itoa(int(x.ID)), x.Kind, size, name)
	}
	return t.Print(w)
}
