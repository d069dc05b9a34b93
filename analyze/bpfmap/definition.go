package bpfmap

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"symbolize/ingest/object/btf"
	"symbolize/ingest/texts"
)

// called reports whether a map has a name, which the kernel may have cut, or an id.
func (m *Dump) called(name string) bool {
	if id, _, ok := strings.Cut(name, "="); ok {
		name = id
	}
	id, err := strconv.ParseUint(name, 10, 32)
	return m.Header.Name != "" && m.Header.Name == btf.KernelMapName(name) || m.Series == name ||
		err == nil && uint32(id) == m.Header.MapID
}

// definedAs is the map's name in the object, by the name that the user selects it with.
func (m *Dump) definedAs(name string) string {
	if _, whole, ok := strings.Cut(name, "="); ok {
		return whole
	}
	if m.Host != nil && m.Header.Name != btf.KernelMapName(name) {
		return m.Header.Name // it was chosen by its id
	}
	return cmp.Or(name, m.Header.Name)
}

// types sets key and value from the BTF of src, if the dump has none: by the definition of
// the map, or by the section that it has the variables of.
func (m *Dump) types(src *Source) error {
	t, l := src.Types, &m.Layout
	switch {
	case t == nil || l.Types != nil:
		return nil
	case m.Header.Type == structOps || m.program != nil:
		if id, ok := m.structOps(t); ok {
			l.Types, l.Key, l.Value = t, 0, id
			m.Untyped = ""
		}
		return nil
	}
	name := m.definedAs(src.Map)
	d, ok, err := m.definition(t, name, src)
	if err != nil {
		return err
	}
	key, value := d.Key, d.Value
	if id, isData := t.DataSection(name); !ok && isData {
		key, value, ok = 0, id, true
	}
	switch {
	case !ok:
		m.Untyped = fmt.Sprintf("no map %q in the BTF that --btf names", name)
	case key != 0 && !m.fits(t, key, l.KeySize):
		m.Untyped = fmt.Sprintf("the key of map %q in that BTF does not have %d bytes", name, l.KeySize)
	case !m.fits(t, value, l.ValueSize):
		m.Untyped = fmt.Sprintf("the value of map %q in that BTF does not have %d bytes", name,
			l.ValueSize)
	default:
		l.Types, l.Key, l.Value = t, key, value
	}
	return nil
}

// definition finds the definition of a map. The kernel keeps 15 bytes of the name: if several names
// begin with them, the sizes of key and value may decide, else the user must.
func (m *Dump) definition(t *btf.Types, name string, src *Source) (d btf.MapDef, ok bool,
	err error) {
	found := t.MapsNamed(name)
	if len(found) > 1 {
		fit := slices.DeleteFunc(slices.Clone(found), func(d btf.MapDef) bool {
			return !m.fitsDef(t, &d)
		})
		if len(fit) > 0 {
			found = fit
		}
	}
	if len(found) == 0 {
		return btf.MapDef{}, false, nil
	}
	if !slices.ContainsFunc(found[1:], func(d btf.MapDef) bool {
		return d.Key != found[0].Key || d.Value != found[0].Value
	}) {
		return found[0], true, nil
	}
	var names []string
	for _, d := range found {
		names = append(names, d.Name)
	}
	return btf.MapDef{}, false, texts.WithHint(fmt.Errorf(
		"%s: of which map is it? %s has %s, and the kernel "+
			"keeps %q of their names", m.Name, src.File, strings.Join(names, ", "), name),
		"name it with --map %s%s", m.idPrefix(), names[0])
}

// idPrefix precedes the name of a map in a bundle, where several may be called the same.
func (m *Dump) idPrefix() string {
	if m.Host == nil {
		return ""
	}
	return fmt.Sprintf("%d=", m.Header.MapID)
}

// fitsDef reports whether a definition can be the map's by all that both have.
func (m *Dump) fitsDef(t *btf.Types, d *btf.MapDef) bool {
	sameType := d.Type == 0 || m.Header.Type == 0 || d.Type == m.Header.Type
	return sameType && (d.Key == 0 || m.fits(t, d.Key, m.Layout.KeySize)) &&
		m.fits(t, d.Value, m.Layout.ValueSize)
}

// fits reports whether a type has a size. bpftool's dump of an empty map has no size.
func (m *Dump) fits(t *btf.Types, id btf.ID, size int) bool {
	n, err := t.Size(id)
	unknown := m.Layout.KeySize == 0 && m.Layout.ValueSize == 0
	return err == nil && (n == uint64(size) || unknown)
}
