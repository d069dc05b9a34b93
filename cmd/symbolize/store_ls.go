package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"symbolize/analyze/inspect"
	"symbolize/analyze/table"
	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/store"
	"symbolize/store/db"
)

// storedObject is an object as `store ls` and `store show` print it. Its JSON
// names are an interface.
type storedObject struct {
	BuildID string         `json:"build_id"`
	Kind    string         `json:"kind"`
	Quality string         `json:"quality"` // the best kind of source, "none"
	Size    int64          `json:"size"`    // bytes stored
	Path    string         `json:"path"`    // of the first source
	Layout  bool           `json:"layout"`  // a runtime file is known
	Sources []storedSource `json:"sources"`

	Symbol   string          `json:"symbol,omitempty"` // of a JITed function
	Variants []storedVariant `json:"variants,omitempty"`
	More     bool            `json:"more_variants,omitempty"` // were captured than are kept
	Probable []string        `json:"probable,omitempty"`

	manifest *store.Manifest
}

type storedSource struct {
	Kind      string `json:"kind"`
	Functions uint32 `json:"functions"`
	Named     uint64 `json:"bytes_named"`
	Size      int64  `json:"size"`
	Producer  uint32 `json:"producer"`
	Digest    string `json:"digest"`
	Path      string `json:"path"`
	Captured  uint64 `json:"captured_bytes,omitempty"` // of the input kept raw
}

func newStoredObject(m *store.Manifest) *storedObject {
	o := &storedObject{
		BuildID: m.ID.String(), Kind: m.Kind.String(), Quality: qualityText(m.Quality()),
		Size: m.Size(), Layout: len(m.Layout)+len(m.Sections) > 0,
		Sources: []storedSource{}, manifest: m,
	}
	for _, s := range m.Sources {
		if o.Path == "" {
			o.Path = s.Path
		}
		o.Sources = append(o.Sources, storedSource{
			Kind: s.Kind.String(), Functions: s.Funcs, Named: s.Named, Size: s.Size,
			Producer: s.Producer, Digest: fmt.Sprintf("%x", s.Digest), Path: s.Path,
			Captured: s.RawSize,
		})
	}
	o.addVariants(m)
	return o
}

func qualityText(k store.SourceKind) string {
	if k == 0 {
		return "none"
	}
	return k.String()
}

func newStoreLsCommand(a *app) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "ls [PREFIX|TEXT…]",
		Short: "List the objects: build ID, kind, quality, size, path",
		Long: `ls lists the objects of the store, sorted by build ID. Arguments leave those whose
build ID begins with one of them or whose path contains one. Quality is the best kind of
source that an object has. A BPF function has the kernel's name for it in place of a path;
one of quality "probable" stands for what captures tell of others: their name, tag and
length, or their tag alone.`,
		RunE: a.runE(func(ctx context.Context, args []string) error {
			if err := checkFormat(format, formatText, formatJSON); err != nil {
				return err
			}
			return a.withReader(func(r *db.Reader) error {
				return runStoreLs(ctx, a, r, format, args)
			})
		}),
	}
	addFormatFlag(cmd, &format, formatText, formatJSON)
	return cmd
}

func runStoreLs(ctx context.Context, a *app, r *db.Reader, format string, args []string) error {
	list := []*storedObject{}
	for m, err := range r.Objects() {
		if err != nil {
			a.partial = true
			a.warn(err.Error(), "`symbolize store verify` says what is damaged")
			continue
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if o := newStoredObject(m); o.matches(args) {
			o.manifest = nil
			list = append(list, o)
		}
	}
	return a.writeOutput("", false, func(w io.Writer) error {
		if format == formatJSON {
			return ingest.WriteJSON(w, list)
		}
		t := table.New(false, false, false, true, false)
		t.Row("BUILD ID", "KIND", "QUALITY", "SIZE", "PATH")
		for _, o := range list {
			t.Row(o.BuildID, o.Kind, o.Quality, table.Bytes(o.Size), cmp.Or(o.Symbol, o.Path, o.perhaps()))
		}
		return t.Print(w)
	})
}

// matches reports whether an object is among those asked for; no arguments ask
// for all.
func (o *storedObject) matches(args []string) bool {
	for _, arg := range args {
		if strings.HasPrefix(o.BuildID, strings.ToLower(arg)) {
			return true
		}
		if strings.Contains(o.Symbol, arg) {
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

func newStoreShowCommand(a *app) *cobra.Command {
	var format string
	var functions bool
	cmd := &cobra.Command{
		Use:   "show BUILD-ID",
		Short: "Show what the store knows of one object",
		Long: `show prints the sources and the layout of the object with this build ID; a prefix
will do. With --functions it prints the functions of each source, in the order in which
sources are asked.`,
		Args: cobra.ExactArgs(1),
		RunE: a.runE(func(ctx context.Context, args []string) error {
			if err := checkFormat(format, formatText, formatJSON); err != nil {
				return err
			}
			return a.withReader(func(r *db.Reader) error {
				m, err := findByPrefix(r, args[0])
				if err != nil {
					return err
				}
				return a.writeOutput("", false, func(w io.Writer) error {
					switch {
					case functions:
						return writeFunctions(ctx, w, r, m)
					case format == formatJSON:
						return ingest.WriteJSON(w, newStoredObject(m))
					}
					return writeObject(w, newStoredObject(m))
				})
			})
		}),
	}
	addFormatFlag(cmd, &format, formatText, formatJSON)
	cmd.Flags().BoolVar(&functions, "functions", false,
		"print all functions: source, address, size, name")
	return cmd
}

// findByPrefix returns the only object whose build ID begins with prefix.
func findByPrefix(r *db.Reader, prefix string) (*store.Manifest, error) {
	if id, err := buildid.Parse(prefix); err == nil {
		if m, _, _ := store.FindOne(r, id); m != nil {
			return m, nil
		}
	}
	var found []*store.Manifest
	for m, err := range r.Objects() {
		if err == nil && strings.HasPrefix(m.ID.String(), strings.ToLower(prefix)) {
			found = append(found, m)
		}
	}
	switch len(found) {
	case 0:
		return nil, withHint(fmt.Errorf("no object %s in the store", prefix),
			"`symbolize store ls` lists them")
	case 1:
		return found[0], nil
	}
	return nil, withHint(fmt.Errorf("%d objects begin with %s", len(found), prefix),
		"the first two are %s and %s", found[0].ID, found[1].ID)
}

func writeObject(w io.Writer, o *storedObject) error {
	m := o.manifest
	t := table.New()
	t.Row("build ID", o.BuildID)
	t.Row("kind", o.Kind)
	t.Row("quality", o.Quality)
	t.Row("size", table.Bytes(o.Size))
	if m.Machine != 0 {
		t.Row("machine", inspect.MachineText(m.Machine, m.Class, m.BigEndian))
	}
	for _, s := range m.Layout {
		t.Row("segment", fmt.Sprintf("%s offset %#x, address %#x, %#x bytes in the file, "+
			"%#x in memory", inspect.Permissions(s.Flags), uint64(s.Offset), uint64(s.Addr),
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

func writeFunctions(ctx context.Context, w io.Writer, r *db.Reader, m *store.Manifest) error {
	for i, s := range m.Sources {
		table, err := r.Open(m, i)
		if err != nil {
			return err
		}
		for f, err := range table.All() {
			if err != nil {
				return err
			}
			if _, err := fmt.Fprintf(w, "%s\t%#x\t%d\t%s\n", s.Kind, uint64(f.Start), f.Size,
				oneLine(f.Name)); err != nil {
				return err
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}
