package bpfmap

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"symbolize/analyze/table"
	"symbolize/ingest/files"
	"symbolize/ingest/format/mapdump"
	"symbolize/ingest/object/btf"
	"symbolize/ingest/object/elf"
	"symbolize/ingest/texts"
)

// maxDataSection bounds a section of variables, bytes.
const maxDataSection = 64 << 20

// ObjectMap is a map that an object defines. Its JSON names are an interface.
type ObjectMap struct {
	Name       string `json:"name"`
	Type       string `json:"type"`
	Key        string `json:"key,omitempty"` // types as C; "" if only their sizes are known
	Value      string `json:"value,omitempty"`
	KeySize    uint32 `json:"key_size"`
	ValueSize  uint32 `json:"value_size"`
	MaxEntries uint32 `json:"max_entries"`
	Flags      uint32 `json:"flags"`
}

// ObjectData is a section of variables with their initial values.
type ObjectData struct {
	Section string          `json:"section"`
	Value   json.RawMessage `json:"value"`
	text    []byte
}

// ObjectMaps are the maps and the variables of a BPF object.
type ObjectMaps struct {
	Maps []ObjectMap  `json:"maps"`
	Data []ObjectData `json:"data"`

	names []string // of all maps and sections, wanted or not
}

// ReadObject reads the maps that a BPF object defines, or the one of a name, with its
// variables. Definitions that are damaged are logged, the others are returned.
func ReadObject(ctx context.Context, path, name string, log Log) (*ObjectMaps, error) {
	r, err := files.Open(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	fi, err := r.Stat()
	if err != nil {
		return nil, err
	}
	f, err := elf.Open(path, r, fi.Size())
	if err != nil {
		return nil, err
	}
	types, _, err := btf.FromELF(f)
	if types == nil && err != nil {
		return nil, err
	}
	defs, badDefs := btf.ObjectMaps(f, types)
	for _, err := range []error{err, badDefs} {
		if err != nil { // lines, symbols or definitions are damaged: types are whole
			log.Damage(err.Error(), "compile it again")
		}
	}
	if types == nil && len(defs) == 0 {
		return nil, texts.WithHint(fmt.Errorf("%s: no BTF in it", path), "compile it with -g")
	}
	found, err := readObjectMaps(ctx, f, types, defs, name)
	if err == nil && len(found.Maps)+len(found.Data) == 0 {
		err = found.none(path, name)
	}
	return found, err
}

// none is the error for an object without maps, or without a map of the name.
func (m *ObjectMaps) none(path, name string) error {
	if name == "" {
		return texts.WithHint(fmt.Errorf("%s: it defines no map", path),
			"a dump of a map is wanted, or a BPF object")
	}
	err := fmt.Errorf("%s: no map %s in it", path, name)
	if len(m.names) > 0 {
		return texts.WithHint(err, "there are %s", strings.Join(m.names, ", "))
	}
	return err
}

// readObjectMaps reads the maps of an object, or the one of a name. t is nil without BTF.
func readObjectMaps(ctx context.Context, f *elf.File, t *btf.Types, defs []btf.MapDef,
	name string) (*ObjectMaps, error) {
	out := &ObjectMaps{Maps: []ObjectMap{}, Data: []ObjectData{}}
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

// Definitions returns the maps that a BPF object with the types t, nil without BTF, defines. With an
// error it returns the valid definitions.
func Definitions(f *elf.File, t *btf.Types) ([]ObjectMap, error) {
	out := []ObjectMap{}
	defs, err := btf.ObjectMaps(f, t)
	for i := range defs {
		out = append(out, objectMapOf(&defs[i], t))
	}
	return out, err
}

// WriteDefinitions writes a row for each map, nothing without maps.
func WriteDefinitions(w io.Writer, maps []ObjectMap) error {
	if len(maps) == 0 {
		return nil
	}
	t := table.New(false, false, false, true, false, true, true, true).Names(1, 0, 2, 4)
	t.Row("NAME", "TYPE", "KEY", "SIZE", "VALUE", "SIZE", "ENTRIES", "FLAGS")
	for _, x := range maps {
		t.Row(x.Name, x.Type, cmp.Or(x.Key, "-"), fmt.Sprint(x.KeySize), cmp.Or(x.Value, "-"),
			fmt.Sprint(x.ValueSize), fmt.Sprint(x.MaxEntries), fmt.Sprintf("%#x", x.Flags))
	}
	return t.Print(w)
}

// objectMapOf converts a definition.
func objectMapOf(d *btf.MapDef, t *btf.Types) ObjectMap {
	m := ObjectMap{Name: d.Name, Type: mapdump.TypeName(d.Type), KeySize: d.KeySize,
		ValueSize: d.ValueSize, MaxEntries: d.MaxEntries, Flags: d.Flags}
	if d.Type == 0 {
		m.Type = "-" // a marker has none
	}
	if d.Key != 0 {
		m.Key = t.TypeName(d.Key)
	}
	if d.Value != 0 {
		m.Value = t.TypeName(d.Value)
	}
	return m
}

// isDataSection reports whether libbpf makes a map of a section.
func isDataSection(name string) bool {
	for _, prefix := range []string{".data", ".rodata", ".bss"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

func readObjectData(f *elf.File, s *elf.Section, t *btf.Types, id btf.ID) (*ObjectData, error) {
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
	d := &ObjectData{Section: s.Name}
	line, err := t.AppendValue(nil, id, b, &btf.ValueOptions{JSON: true})
	if err != nil {
		return nil, err
	}
	d.Value = line
	d.text, err = t.AppendValue(nil, id, b, &btf.ValueOptions{})
	return d, err
}

// WriteText writes a table of the maps, then the variables.
func (m *ObjectMaps) WriteText(w io.Writer) error {
	if err := WriteDefinitions(w, m.Maps); err != nil {
		return err
	}
	for _, d := range m.Data {
		if _, err := fmt.Fprintf(w, "%s\n", d.text); err != nil {
			return err
		}
	}
	return nil
}
