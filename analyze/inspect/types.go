package inspect

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"symbolize/analyze/table"
	"symbolize/ingest/object/btf"
	"symbolize/ingest/texts"
)

// Types are types of the BTF of a file. Its JSON names are an interface.
type Types struct {
	File string     `json:"file"`
	BTF  []TypeList `json:"btf"`

	blobs []BTF
	c     bool            // types are printed as C
	wants map[string]bool // the requested names, and whether they were found
}

// NewTypes lists the types of blobs, or only the types with names: "list_head", "struct list_head"
// or "#12". With definitions, named types have their members and their C.
func NewTypes(path string, blobs []BTF, names []string, definitions bool) (*Types, error) {
	r := &Types{File: path, blobs: blobs, c: definitions && len(names) > 0, wants: wants(names)}
	for _, b := range blobs {
		if err := r.add(b); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// wants returns the requested names; thousands cost no more than one.
func wants(names []string) map[string]bool {
	out := make(map[string]bool, len(names))
	for _, n := range names {
		out[n] = false
	}
	return out
}

// TypeList are the types of one BTF.
type TypeList struct {
	Source string `json:"source"` // source of the types: ".BTF", or programs of a capture
	Types  []Type `json:"types"`
}

// Type is a type, variable or function.
type Type struct {
	ID      btf.ID   `json:"id"`
	Kind    string   `json:"kind"`
	Name    string   `json:"name,omitempty"`
	Size    *uint64  `json:"size,omitempty"` // bytes; absent for functions, for example
	Members []Member `json:"members,omitempty"`
	C       string   `json:"c,omitempty"`
}

// Member is a member of a structure or union.
type Member struct {
	Name    string `json:"name"`
	Type    btf.ID `json:"type"`
	Offset  uint32 `json:"bit_offset"`
	BitSize uint8  `json:"bit_size,omitempty"` // of bit fields
}

// add adds the types of one BTF: all, or the requested ones.
func (r *Types) add(b BTF) error {
	list := TypeList{Source: b.Source, Types: []Type{}}
	first := btf.ID(1)
	if base := b.Types.Base(); base != nil && len(r.wants) == 0 {
		first = btf.ID(base.Len()) // the list is of the module's own
	}
	for id := first; id < btf.ID(b.Types.Len()); id++ {
		if len(r.wants) > 0 && !r.wanted(b.Types, id) {
			continue
		}
		x := Type{ID: id, Kind: b.Types.Kind(id).String(), Name: b.Types.Name(id)}
		if size, err := b.Types.Size(id); err == nil {
			x.Size = &size
		}
		if r.c {
			if err := x.detail(b.Types); err != nil {
				return err
			}
		}
		list.Types = append(list.Types, x)
	}
	r.BTF = append(r.BTF, list)
	return nil
}

// detail adds the members and the C of a type.
func (x *Type) detail(types *btf.Types) error {
	c, err := types.AppendC(nil, x.ID, nil)
	if err != nil {
		return err
	}
	x.C = string(c)
	for _, m := range types.Members(x.ID) {
		x.Members = append(x.Members, Member{m.Name, m.Type, m.BitOffset, m.BitSize})
	}
	return nil
}

// wanted reports whether a type is requested, and notes its name.
func (r *Types) wanted(types *btf.Types, id btf.ID) bool {
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

// find reports whether a name is requested, and notes that it exists.
func (r *Types) find(name string) bool {
	_, ok := r.wants[name]
	if ok {
		r.wants[name] = true
	}
	return ok
}

// typeKinds are the kinds that name a type, not a variable or function.
var typeKinds = []btf.Kind{btf.KindStruct, btf.KindUnion, btf.KindEnum, btf.KindEnum64,
	btf.KindTypedef, btf.KindInt, btf.KindFloat, btf.KindFwd}

func isType(kind btf.Kind) bool { return slices.Contains(typeKinds, kind) }

// namesType reports whether there is a type of this name: variables and functions of the
// same name are requested as "var NAME" and "func NAME".
func namesType(types *btf.Types, name string) bool {
	return slices.ContainsFunc(typeKinds, func(k btf.Kind) bool {
		_, ok := types.ByName(k, name)
		return ok
	})
}

// Missing returns the requested names that no BTF has, quoted.
func (r *Types) Missing(names []string) (out []string) {
	for _, n := range names {
		if !r.wants[n] {
			out = append(out, strconv.Quote(n))
		}
	}
	return out
}

// WriteText writes a table, or the C of the types that were named.
func (r *Types) WriteText(w io.Writer) error {
	for i, list := range r.BTF {
		if len(list.Types) == 0 && r.c {
			continue
		}
		if i > 0 {
			fmt.Fprintln(w)
		}
		if len(r.BTF) > 1 {
			fmt.Fprintf(w, "/* %s */\n", strings.ReplaceAll(texts.OneLine(list.Source), "*/", "*?"))
		}
		if err := list.writeText(w, r.c); err != nil {
			return err
		}
	}
	return nil
}

func (l *TypeList) writeText(w io.Writer, c bool) error {
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
