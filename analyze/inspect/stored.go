package inspect

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"symbolize/analyze/resolve"
	"symbolize/analyze/table"
	"symbolize/ingest/texts"
	"symbolize/store"
)

// Stored describes an object of a store. Its JSON names are an interface.
type Stored struct {
	BuildID string         `json:"build_id"`
	Kind    string         `json:"kind"`
	Quality string         `json:"quality"` // the best kind of source, "none"
	Size    int64          `json:"size"`    // bytes stored
	Path    string         `json:"path"`    // of the first source
	Layout  bool           `json:"layout"`  // a runtime file is known
	Sources []StoredSource `json:"sources"`

	Symbol   string          `json:"symbol,omitempty"` // of a JITed function
	Variants []StoredVariant `json:"variants,omitempty"`
	// Processes are the processes with this object as list of compiled code.
	Processes []StoredProcess `json:"processes,omitempty"`
	More      bool            `json:"more_variants,omitempty"` // were captured than are kept
	Probable  []string        `json:"probable,omitempty"`
}

// StoredSource is a source of symbols of an object.
type StoredSource struct {
	Kind      string `json:"kind"`
	Functions uint32 `json:"functions"`
	Named     uint64 `json:"bytes_named"`
	Size      int64  `json:"size"`
	Producer  uint32 `json:"producer"`
	Digest    string `json:"digest"`
	Path      string `json:"path"`
	Captured  uint64 `json:"captured_bytes,omitempty"` // of the input kept raw
}

// NewStored describes the object of a manifest.
func NewStored(m *store.Manifest) *Stored {
	o := &Stored{
		BuildID: m.ID.String(), Kind: m.Kind.String(), Quality: m.Quality().String(),
		Size: m.Size(), Layout: len(m.Layout)+len(m.Sections) > 0,
		Sources: []StoredSource{},
	}
	for _, s := range m.Sources {
		if o.Path == "" {
			o.Path = s.Path
		}
		o.Sources = append(o.Sources, StoredSource{
			Kind: s.Kind.String(), Functions: s.Funcs, Named: s.Named, Size: s.Size,
			Producer: s.Producer, Digest: hex.EncodeToString(s.Digest[:]), Path: s.Path,
			Captured: s.RawSize,
		})
	}
	o.addVariants(m)
	return o
}

// Complete completes the kernel's symbol of a BPF function by the objects of a view with its tag.
func (o *Stored) Complete(v store.View) { o.Symbol = resolve.WholeSymbol(v, o.Symbol) }

// Matches reports whether the build ID begins with one of args, a path or the symbol contains one, or
// one is the own tag of a BPF function. No arguments select all.
func (o *Stored) Matches(args []string) bool {
	for _, arg := range args {
		if strings.HasPrefix(o.BuildID, strings.ToLower(arg)) {
			return true
		}
		if strings.Contains(o.Symbol, arg) || slices.ContainsFunc(o.Variants,
			func(v StoredVariant) bool { return v.OwnTag == arg }) {
			return true
		}
		for _, s := range o.Sources {
			if strings.Contains(s.Path, arg) {
				return true
			}
		}
	}
	return len(args) == 0
}

// Name is how lists name the object: the kernel's symbol of a BPF function, or the path of a file.
func (o *Stored) Name() string { return cmp.Or(o.Symbol, o.Path, o.probable()) }

// WriteStored writes all that a manifest of a view has.
func WriteStored(w io.Writer, v store.View, m *store.Manifest) error {
	o := NewStored(m)
	o.Complete(v)
	t := table.New()
	t.Row("build ID", o.BuildID)
	t.Row("kind", o.Kind)
	t.Row("quality", o.Quality)
	t.Row("size", table.Bytes(o.Size))
	if m.Machine != 0 {
		t.Row("machine", machineText(m.Machine, m.Class, m.BigEndian))
	}
	for _, s := range m.Layout {
		t.Row("segment", fmt.Sprintf("%s offset %#x, address %#x, %#x bytes in the file, "+
			"%#x in memory", permissions(s.Flags), uint64(s.Offset), uint64(s.Addr),
			s.FileSize, s.MemSize))
	}
	for _, s := range m.Sections {
		t.Row("section", fmt.Sprintf("%s at %#x, %#x bytes", s.Name, uint64(s.Addr), s.Size))
	}
	if !o.Layout && o.Kind != "kernel" && o.Kind != "jit" {
		t.Row("layout", "unknown until the runtime file is indexed")
	}
	for _, r := range m.RefSyms {
		t.Row("reference", fmt.Sprintf("%s at %#x", r.Name, uint64(r.Addr)))
	}
	for _, id := range m.VDSO {
		t.Row("vdso", id.String())
	}
	for _, s := range o.Sources {
		t.Row("source", fmt.Sprintf("%s, %d functions, %s of code, %s stored, from %s",
			s.Kind, s.Functions, table.Bytes(s.Named), table.Bytes(s.Size), s.Path))
	}
	o.variantRows(t)
	return t.Print(w)
}

// WriteList writes a row for each object. It visits the objects twice and keeps none of them.
func WriteList(w io.Writer, objects iter.Seq2[*Stored, error]) error {
	t := table.New(false, false, false, true, false).Names(4)
	t.Row("BUILD ID", "KIND", "QUALITY", "SIZE", "PATH")
	return t.PrintAll(w, func(yield func([]string, error) bool) {
		for o, err := range objects {
			var row []string
			if err == nil {
				row = []string{o.BuildID, o.Kind, o.Quality, table.Bytes(o.Size), o.Name()}
			}
			if !yield(row, err) {
				return
			}
		}
	})
}

// StoredFunction is a function of a source of an object. Its JSON names are an interface.
type StoredFunction struct {
	Source string `json:"source"`
	Start  uint64 `json:"address"`
	Size   uint64 `json:"size"`
	Name   string `json:"name"`
}

// WriteFunctions writes a line for each function of each source of an object.
func WriteFunctions(ctx context.Context, w io.Writer, v store.View, m *store.Manifest) error {
	return eachFunction(ctx, v, m, func(f StoredFunction) error {
		_, err := fmt.Fprintf(w, "%s\t%#x\t%d\t%s\n", f.Source, f.Start, f.Size,
			texts.OneLine(f.Name))
		return err
	})
}

// WriteFunctionsJSON writes the functions as JSON, an object on each line.
func WriteFunctionsJSON(ctx context.Context, w io.Writer, v store.View, m *store.Manifest) error {
	enc := texts.NewJSONEncoder(w)
	return eachFunction(ctx, v, m, func(f StoredFunction) error { return enc.Encode(f) })
}

// eachFunction calls body for the functions of an object, source by source.
func eachFunction(ctx context.Context, v store.View, m *store.Manifest,
	body func(StoredFunction) error) error {
	for i, s := range m.Sources {
		if !s.Kind.Names() {
			continue
		}
		symbols, err := v.Open(m, i)
		if err != nil {
			return err
		}
		for f, err := range symbols.All() {
			if err == nil {
				err = body(StoredFunction{s.Kind.String(), uint64(f.Start), uint64(f.Size), f.Name})
			}
			if err != nil {
				return err
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}
