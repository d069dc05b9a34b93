package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"symbolize/analyze/bpfmap"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/mapdump"
	"symbolize/ingest/input"
	"symbolize/ingest/object/btf"
	"symbolize/ingest/regular"
)

// mapInput is a dump of a map that can be opened.
type mapInput struct {
	name   string // for messages: the path, and the entry of a bundle
	series string // of a bundle: what dumps of one map have in common
	header bundle.DumpHeader
	layout bpfmap.Layout
	r      io.ReaderAt
	size   int64
	// untyped says why the BTF that the user names does not tell the types; "" if it does.
	untyped string
	program *btf.Types       // of a struct_ops map: BTF of what defines it
	host    *bundle.Manifest // of the bundle that has it; nil for files
}

// mapInputs are the dumps of the command line.
type mapInputs struct {
	list []*mapInput
	open []io.Closer
}

// Close closes the files.
func (in *mapInputs) Close() error {
	var errs []error
	for _, c := range in.open {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// mapSource says what to take of which dumps.
type mapSource struct {
	// name of the map, or its id, or ID=NAME, which says what the map of an id is called
	// whole; "" for the only one.
	name string
	btf  string // path of BTF or of an object with it
	list bool   // several maps of a bundle are listed, not an error
}

// openMaps opens dumps: files in any form, and those of bundles.
func (a *app) openMaps(ctx context.Context, paths []string, src mapSource) (in *mapInputs,
	err error) {
	in = &mapInputs{}
	defer func() {
		if err != nil {
			err = errors.Join(err, in.Close())
		}
	}()
	var types *btf.Types
	if src.btf != "" {
		if types, err = readTypes(src.btf, nil); err != nil {
			return in, fmt.Errorf("--btf: %w", err)
		}
	}
	for _, path := range paths {
		if isBundle(path) {
			err = in.bundle(ctx, a, path)
		} else {
			err = in.file(path)
		}
		if err != nil {
			return in, err
		}
	}
	if src.list && in.several() {
		return in, nil
	}
	if err := in.choose(src.name, paths); err != nil {
		return in, err
	}
	for _, m := range in.list {
		if err := m.types(types, src); err != nil {
			return in, err
		}
	}
	if types == nil {
		in.infer(a)
	}
	return in, nil
}

// file adds a dump that is a file.
func (in *mapInputs) file(path string) error {
	f, err := regular.Open(path)
	if err != nil {
		return err
	}
	in.open = append(in.open, f)
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	return in.add(&mapInput{name: path, r: f, size: fi.Size()}, nil)
}

// add reads what a dump says of its map.
func (in *mapInputs) add(m *mapInput, types map[uint32]*btf.Types) error {
	d, err := mapdump.Open(m.name, m.r, m.size)
	if errors.Is(err, mapdump.ErrNotDump) {
		return withHint(err,
			"dumps are made by `symbolize capture --maps NAME` and `bpftool -j map dump`")
	}
	if err != nil {
		return err
	}
	h := &d.Header
	m.header = *h
	m.layout = bpfmap.Layout{KeySize: int(h.KeySize), ValueSize: int(h.ValueSize), MapType: h.Type,
		BigEndian: h.BigEndian}
	switch t := types[h.BTFID]; {
	case t == nil || h.BTFID == 0:
	case h.Type == mapStructOps:
		m.program, m.untyped = t, untypedOps
	case h.KeyType != 0 || h.ValueType != 0:
		m.layout.Types, m.layout.Key, m.layout.Value = t, btf.ID(h.KeyType), btf.ID(h.ValueType)
	}
	in.list = append(in.list, m)
	return nil
}

// bundle adds the dumps of a bundle.
func (in *mapInputs) bundle(ctx context.Context, a *app, path string) error {
	c, err := input.Open(ctx, path, input.Options{})
	if err != nil {
		return captureError(err)
	}
	in.open = append(in.open, c)
	b, types := c.Bundle(), c.Types()
	for _, entry := range b.Names() {
		name, ok := bundle.CutDump(entry)
		if !ok {
			continue
		}
		m := &mapInput{name: path + ": " + entry, series: name, host: &b.Manifest}
		if series, _, ok := bundle.CutSeries(entry); ok {
			m.series = series
		}
		if m.r, m.size, err = b.Entry(entry); err != nil {
			return err
		}
		if err := in.add(m, types); err != nil {
			a.partial = true
			a.warn(err.Error(), "copy the bundle or capture it again")
		}
	}
	for _, err := range b.Warnings {
		a.partial = true
		a.warn(err.Error(), "copy the bundle or capture it again")
	}
	return nil
}

// choose takes the dumps of a map, by name or id, of those that there are.
func (in *mapInputs) choose(name string, paths []string) error {
	all := in.list
	if name != "" {
		in.list = slices.DeleteFunc(slices.Clone(all), func(m *mapInput) bool {
			return m.host != nil && !m.called(name)
		})
	}
	var titles []string
	for _, m := range all {
		if m.host != nil && !slices.Contains(titles, m.title()) {
			titles = append(titles, m.title())
		}
	}
	switch {
	case len(all) == 0:
		return withHint(fmt.Errorf("%s: no dump of a map in it", strings.Join(paths, ", ")),
			"`symbolize capture --maps NAME` puts some into a bundle")
	case len(in.list) == 0:
		return withHint(fmt.Errorf("%s: no map %s in it", strings.Join(paths, ", "), name),
			"there are %s", strings.Join(titles, ", "))
	}
	for _, m := range in.list[1:] {
		if m.host != nil && m.series != in.list[0].series {
			return withHint(fmt.Errorf("%s: dumps of several maps", strings.Join(paths, ", ")),
				"name one with --map: %s", strings.Join(titles, ", "))
		}
	}
	return nil
}

// called reports whether a map has a name, which the kernel may have cut, or an id.
func (m *mapInput) called(name string) bool {
	if id, _, ok := strings.Cut(name, "="); ok {
		name = id
	}
	id, err := strconv.ParseUint(name, 10, 32)
	return m.header.Name != "" && m.header.Name == btf.KernelMapName(name) || m.series == name ||
		err == nil && uint32(id) == m.header.MapID
}

// definedAs is the name that the object has for the map, given how the user calls it.
func (m *mapInput) definedAs(name string) string {
	if _, whole, ok := strings.Cut(name, "="); ok {
		return whole
	}
	if m.host != nil && m.header.Name != btf.KernelMapName(name) {
		return m.header.Name // it was chosen by its id
	}
	return cmp.Or(name, m.header.Name)
}

// title names the map.
func (m *mapInput) title() string {
	if m.header.Name == "" {
		return m.name
	}
	if m.header.MapID == 0 {
		return m.header.Name
	}
	return fmt.Sprintf("%s (id %d)", m.header.Name, m.header.MapID)
}

// types takes key and value from the BTF that the user names, if the dump has none: by
// the definition of the map, or by the section that it has the variables of.
func (m *mapInput) types(t *btf.Types, src mapSource) error {
	l := &m.layout
	switch {
	case t == nil || l.Types != nil:
		return nil
	case m.header.Type == mapStructOps || m.program != nil:
		if id, ok := m.structOps(t); ok {
			l.Types, l.Key, l.Value = t, 0, id
			m.untyped = ""
		}
		return nil
	}
	name := m.definedAs(src.name)
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
		m.untyped = fmt.Sprintf("no map %q in the BTF that --btf names", name)
	case key != 0 && !m.fits(t, key, l.KeySize):
		m.untyped = fmt.Sprintf("the key of map %q in that BTF is not of %d bytes", name, l.KeySize)
	case !m.fits(t, value, l.ValueSize):
		m.untyped = fmt.Sprintf("the value of map %q in that BTF is not of %d bytes", name,
			l.ValueSize)
	default:
		l.Types, l.Key, l.Value = t, key, value
	}
	return nil
}

// definition finds the definition of a map. Of several whose names begin with the 15
// bytes that the kernel keeps, the sizes of key and value may tell it; else the user has to.
func (m *mapInput) definition(t *btf.Types, name string, src mapSource) (d btf.MapDef, ok bool,
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
	return btf.MapDef{}, false, withHint(fmt.Errorf(
		"%s: of which map is it? %s has %s, and the kernel "+
			"keeps %q of their names", m.name, src.btf, strings.Join(names, ", "), name),
		"name it with --map %s%s", m.idPrefix(), names[0])
}

// idPrefix is what goes before the name of a map in a bundle, where several may be called
// the same.
func (m *mapInput) idPrefix() string {
	if m.host == nil {
		return ""
	}
	return fmt.Sprintf("%d=", m.header.MapID)
}

// fitsDef reports whether a definition can be the map's by all that both tell.
func (m *mapInput) fitsDef(t *btf.Types, d *btf.MapDef) bool {
	sameType := d.Type == 0 || m.header.Type == 0 || d.Type == m.header.Type
	return sameType && (d.Key == 0 || m.fits(t, d.Key, m.layout.KeySize)) &&
		m.fits(t, d.Value, m.layout.ValueSize)
}

// fits reports whether a type has a size. bpftool's dump of an empty map tells none.
func (m *mapInput) fits(t *btf.Types, id btf.ID, size int) bool {
	n, err := t.Size(id)
	unknown := m.layout.KeySize == 0 && m.layout.ValueSize == 0
	return err == nil && (n == uint64(size) || unknown)
}

// pairs reads the dump once more from its beginning; end gives the error at its end.
func (m *mapInput) pairs() (next bpfmap.Pairs, end func() error, err error) {
	d, err := mapdump.Open(m.name, m.r, m.size)
	if err != nil {
		return nil, nil, err
	}
	return d.Next, d.Err, nil
}

// tell says what of a dump is lost: it is damaged, or was not read whole.
func (m *mapInput) tell(a *app, end error) {
	if end != nil {
		a.partial = true
		a.warn(end.Error()+"; all before it is used", "dump it again")
	}
	for _, cause := range slices.Sorted(maps.Keys(m.header.Lost)) {
		a.warn(fmt.Sprintf("%s: lost: %d %s", m.name, m.header.Lost[cause], cause), "")
	}
}

// wall is the wall-clock time of a dump; "" if it is not known.
func (m *mapInput) wall(monotonic uint64) string {
	if m.host == nil || m.host.Begin.Realtime == 0 || m.host.Begin.Monotonic == 0 {
		return ""
	}
	ns := int64(m.host.Begin.Realtime) + int64(monotonic-m.host.Begin.Monotonic)
	return time.Unix(0, ns).UTC().Format("2006-01-02 15:04:05 UTC")
}
