package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"symbolize/analyze/table"
	"symbolize/ingest"
	"symbolize/ingest/format/mapdump"
	"symbolize/ingest/object/btf"
	"symbolize/ingest/object/elf"
	"symbolize/ingest/regular"
)

// maxDataSection bounds a section of variables, bytes.
const maxDataSection = 64 << 20

// objectMap is a map that an object defines, as printed.
type objectMap struct {
	Name       string `json:"name"`
	Type       string `json:"type"`
	Key        string `json:"key,omitempty"` // types as C; "" if only their sizes are told
	Value      string `json:"value,omitempty"`
	KeySize    uint32 `json:"key_size"`
	ValueSize  uint32 `json:"value_size"`
	MaxEntries uint32 `json:"max_entries"`
	Flags      uint32 `json:"flags"`
}

// objectData is a section of variables with what they are at the beginning.
type objectData struct {
	Section string          `json:"section"`
	Value   json.RawMessage `json:"value"`
	text    []byte
}

type objectMaps struct {
	Maps []objectMap  `json:"maps"`
	Data []objectData `json:"data"`

	names []string // of all that there is
}

// isObject reports whether a file is ELF: a map is then what it defines.
func isObject(path string) bool {
	f, err := regular.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, 4)
	_, err = io.ReadFull(f, head)
	return err == nil && elf.IsELF(head)
}

// runMapObject prints the maps that a BPF object defines, and its variables.
func runMapObject(ctx context.Context, a *app, o *mapOptions, path string) error {
	f, err := regular.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	object, err := elf.Open(path, f, fi.Size())
	if err != nil {
		return err
	}
	found, err := a.objectMaps(ctx, object, o.source.name)
	if err != nil {
		return err
	}
	if len(found.Maps)+len(found.Data) == 0 {
		if o.source.name != "" {
			err := fmt.Errorf("%s: no map %s in it", path, o.source.name)
			if len(found.names) > 0 {
				return withHint(err, "there are %s", strings.Join(found.names, ", "))
			}
			return err
		}
		return withHint(fmt.Errorf("%s: it defines no map", path),
			"a dump of a map is wanted, or a BPF object")
	}
	return a.writeOutput(o.output, false, func(w io.Writer) error {
		if o.format == formatJSON {
			return ingest.WriteJSON(w, found)
		}
		return found.write(w)
	})
}

// objectMaps reads the maps of an object, or the one of a name. What is damaged beside them
// is warned of.
func (a *app) objectMaps(ctx context.Context, f *elf.File, name string) (*objectMaps, error) {
	types, _, err := btf.FromELF(f)
	if types == nil && err != nil {
		return nil, err
	}
	defs, badDefs := btf.ObjectMaps(f, types)
	for _, err := range []error{err, badDefs} {
		if err != nil { // lines, symbols or definitions are damaged: types are whole
			a.partial = true
			a.warn(err.Error(), "compile it again")
		}
	}
	if types == nil && len(defs) == 0 {
		return nil, withHint(fmt.Errorf("%s: no BTF in it", f.Name), "compile it with -g")
	}
	return readObjectMaps(ctx, f, types, defs, name)
}

// readObjectMaps reads the maps of an object, or the one of a name. t is nil without BTF.
func readObjectMaps(ctx context.Context, f *elf.File, t *btf.Types, defs []btf.MapDef,
	name string) (*objectMaps, error) {
	out := &objectMaps{Maps: []objectMap{}, Data: []objectData{}}
	for _, d := range defs {
		out.names = append(out.names, d.Name)
		if name != "" && d.Name != name {
			continue
		}
		out.Maps = append(out.Maps, objectMapOf(&d, t))
	}
	if t == nil {
		return out, nil
	}
	var errs []error
	wanted, _ := t.DataSection(name) // ".data", or as the kernel calls its map: "prog.data"
	for i := range f.Sections {
		s := &f.Sections[i]
		id, ok := t.ByName(btf.KindDatasec, s.Name)
		if !ok || !isDataSection(s.Name) {
			continue
		}
		out.names = append(out.names, s.Name)
		if name != "" && (id != wanted || len(out.Maps) > 0) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		d, err := readObjectData(f, s, t, id)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: section %s: %w", f.Name, s.Name, err))
			continue
		}
		out.Data = append(out.Data, *d)
	}
	return out, errors.Join(errs...)
}

// objectMapOf prints what a definition tells.
func objectMapOf(d *btf.MapDef, t *btf.Types) objectMap {
	m := objectMap{Name: d.Name, Type: mapdump.TypeName(d.Type), KeySize: d.KeySize,
		ValueSize: d.ValueSize, MaxEntries: d.MaxEntries, Flags: d.Flags}
	if d.Type == 0 {
		m.Type = "-" // a marker does not tell
	}
	if d.Key != 0 {
		m.Key = t.TypeName(d.Key)
	}
	if d.Value != 0 {
		m.Value = t.TypeName(d.Value)
	}
	return m
}

// isDataSection tells the sections that libbpf makes maps of.
func isDataSection(name string) bool {
	for _, prefix := range []string{".data", ".rodata", ".bss"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

func readObjectData(f *elf.File, s *elf.Section, t *btf.Types, id btf.ID) (*objectData, error) {
	size, err := t.Size(id)
	if err != nil {
		return nil, err
	}
	if size > maxDataSection {
		return nil, fmt.Errorf("%d bytes; %d is the most", size, maxDataSection)
	}
	b := make([]byte, size) // of .bss, which has no bytes in the file
	if !strings.HasPrefix(s.Name, ".bss") {
		if b, err = f.Data(s, maxDataSection); err != nil {
			return nil, err
		}
	}
	d := &objectData{Section: s.Name}
	line, err := t.AppendValue(nil, id, b, &btf.ValueOptions{JSON: true})
	if err != nil {
		return nil, err
	}
	d.Value = line
	d.text, err = t.AppendValue(nil, id, b, &btf.ValueOptions{})
	return d, err
}

// write prints a table of the maps, then the variables.
func (m *objectMaps) write(w io.Writer) error {
	if len(m.Maps) > 0 {
		t := table.New(false, false, false, true, false, true, true, true)
		t.Row("NAME", "TYPE", "KEY", "SIZE", "VALUE", "SIZE", "ENTRIES", "FLAGS")
		for _, x := range m.Maps {
			t.Row(x.Name, x.Type, cmp.Or(x.Key, "-"), fmt.Sprint(x.KeySize), cmp.Or(x.Value, "-"),
				fmt.Sprint(x.ValueSize), fmt.Sprint(x.MaxEntries), fmt.Sprintf("%#x", x.Flags))
		}
		if err := t.Print(w); err != nil {
			return err
		}
	}
	for _, d := range m.Data {
		if _, err := fmt.Fprintf(w, "%s\n", d.text); err != nil {
			return err
		}
	}
	return nil
}
