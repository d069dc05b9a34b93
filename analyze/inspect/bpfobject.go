package inspect

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"symbolize/analyze/bpfmap"
	"symbolize/analyze/table"
	"symbolize/ingest/object/bpf"
	"symbolize/ingest/object/bpfobj"
	"symbolize/ingest/object/btf"
	"symbolize/ingest/object/elf"
)

// BPFObject describes what only a BPF object file has. Its JSON names are an interface.
type BPFObject struct {
	Functions []BPFFunction      `json:"functions"` // programs, and the subprograms that they call
	Maps      []bpfmap.ObjectMap `json:"maps"`
	BTF       *BTFSize           `json:"btf,omitempty"`
}

// BPFFunction is a program or a subprogram of an object file.
type BPFFunction struct {
	Section string `json:"section"`
	Name    string `json:"name"`
	Program bool   `json:"program"` // else it is appended to its callers
	// Instructions are those of a program as it is loaded, with its subprograms.
	Instructions uint32 `json:"instructions"`
	// Tags are the possible tags on Linux 6.18 and later, OldTags before. A program has several if
	// loaders append its subprograms in different orders.
	Tags    []string `json:"tags"`
	OldTags []string `json:"tags_before_6_18"`
	// OwnTags and OldOwnTags are likewise those that the kernel gives the function by itself, in a
	// program with subprograms.
	OwnTags    []string `json:"own_tags"`
	OldOwnTags []string `json:"own_tags_before_6_18"`
	// Uncertain and Rewritten are what the kernel may change before it computes Tags and OwnTags.
	Uncertain string `json:"tags_depend_on,omitempty"`
	Rewritten string `json:"own_tags_depend_on,omitempty"`
	File      string `json:"file,omitempty"`
	Line      uint32 `json:"line,omitempty"`
}

// BTFSize is how much BTF a file has.
type BTFSize struct {
	Size  uint64 `json:"size"`     // bytes of .BTF
	Types int    `json:"types"`    // without void
	Ext   uint64 `json:"ext_size"` // bytes of .BTF.ext
}

// addBPF describes what a BPF object has besides other files. Damage of a part is a warning.
func (info *Object) addBPF(f *elf.File) {
	if !bpfobj.Is(f) {
		return
	}
	info.Kind = "BPF object"
	x := &BPFObject{Functions: []BPFFunction{}}
	warn := func(err error) {
		if err != nil {
			info.Warnings = append(info.Warnings, strings.Split(err.Error(), "\n")...)
		}
	}
	o, err := bpfobj.Read(f)
	warn(err)
	n := SymbolCount{Source: "symtab"} // without the compiler's labels
	for i := range o.Functions {
		x.Functions = append(x.Functions, newBPFFunction(&o.Functions[i]))
		n.Functions, n.Bytes = n.Functions+1, n.Bytes+uint64(o.Functions[i].Length)
	}
	if n.Functions > 0 {
		info.Symbols = []SymbolCount{n}
	}
	types, _, bad := btf.FromELF(f)
	if err == nil { // else the programs have reported it
		warn(bad)
	}
	if s := f.Section(".BTF"); s != nil && types != nil {
		x.BTF = &BTFSize{Size: s.Size, Types: types.Len() - 1}
		if s := f.Section(".BTF.ext"); s != nil {
			x.BTF.Ext = s.Size
		}
	}
	x.Maps, err = bpfmap.Definitions(f, types)
	warn(err)
	info.BPF = x
}

func newBPFFunction(f *bpfobj.Function) BPFFunction {
	x := BPFFunction{Section: f.Section, Name: f.Name, Program: f.Program,
		Instructions: cmp.Or(f.Count, f.Length/bpf.InsnSize), Uncertain: f.Uncertain,
		Rewritten: f.Rewritten, File: f.File, Line: f.Line}
	x.Tags, x.OldTags = tagTexts(f, f.Tags)
	x.OwnTags, x.OldOwnTags = tagTexts(f, f.OwnTags)
	return x
}

// tagTexts divides tags by the kernels that compute them.
func tagTexts(f *bpfobj.Function, tags []bpf.Tag) (now, old []string) {
	now, old = []string{}, []string{}
	for _, t := range tags {
		if slices.Contains(f.SHA1, t) {
			old = append(old, t.String())
		} else {
			now = append(now, t.String())
		}
	}
	return now, old
}

// row adds the size of the BTF.
func (x *BPFObject) row(t *table.Table) {
	switch {
	case x == nil:
	case x.BTF == nil:
		t.Row("BTF", "none: clang -g makes it")
	default:
		t.Row("BTF", fmt.Sprintf("%s, %d types; %s of .BTF.ext", table.Bytes(int64(x.BTF.Size)),
			x.BTF.Types, table.Bytes(int64(x.BTF.Ext))))
	}
}

// write writes a row for each function, then the maps.
func (x *BPFObject) write(w io.Writer) error {
	if x == nil {
		return nil
	}
	if len(x.Functions) > 0 {
		t := table.New(false, false, true, false, false, false).Names(1, 0)
		t.Row("SECTION", "FUNCTION", "INSNS", "TAG", "TAG BEFORE 6.18", "NOTE")
		for i := range x.Functions {
			f := &x.Functions[i]
			now, old, note := f.Tags, f.OldTags, f.Uncertain
			if !f.Program {
				now, old, note = f.OwnTags, f.OldOwnTags, f.Rewritten
			}
			if note != "" {
				note = "depends on " + note
			}
			if !f.Program {
				note = strings.TrimSuffix("subprogram, "+note, ", ")
			}
			t.Row(f.Section, f.Name, strconv.Itoa(int(f.Instructions)),
				cmp.Or(strings.Join(now, " "), "-"), cmp.Or(strings.Join(old, " "), "-"), cmp.Or(note, "-"))
		}
		if err := t.Print(w); err != nil {
			return err
		}
	}
	return bpfmap.WriteDefinitions(w, x.Maps)
}
