package bpfmap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"symbolize/ingest/files"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/mapdump"
	"symbolize/ingest/input"
	"symbolize/ingest/input/container"
	"symbolize/ingest/object/btf"
	"symbolize/ingest/texts"
)

// Dumps are open dumps: of one map, unless Source asks for a list of all.
type Dumps struct {
	List []*Dump
	open []io.Closer
}

// Log receives remarks for people beside the results.
type Log interface {
	// Note receives decisions that a user may want to override.
	Note(text string)
	// Warn is for results that lack something; hint may be empty.
	Warn(text, hint string)
	// Damage is for inputs of which a part could not be read.
	Damage(text, hint string)
}

// Close closes the files.
func (in *Dumps) Close() error {
	var errs []error
	for _, c := range in.open {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// Source selects dumps in the files, and types for them.
type Source struct {
	// Map is the name of the map, or its ID, or ID=NAME with the whole name where the kernel
	// cut it; "" for the only one.
	Map   string
	Types *btf.Types // for dumps without types of their own; may be nil
	File  string     // of Types, for messages
	All   bool       // several maps are no error: they are to be listed
}

// Open opens dumps: files in any form, and dumps in bundles.
func Open(ctx context.Context, paths []string, src Source, log Log) (*Dumps, error) {
	in := &Dumps{}
	if err := in.read(ctx, paths, &src, log); err != nil {
		return nil, errors.Join(err, in.Close())
	}
	return in, nil
}

func (in *Dumps) read(ctx context.Context, paths []string, src *Source, log Log) error {
	for _, path := range paths {
		if err := in.file(ctx, path, log); err != nil {
			return err
		}
	}
	if src.All && in.Several() {
		return nil
	}
	if err := in.choose(src.Map, paths); err != nil {
		return err
	}
	for _, m := range in.List {
		if err := m.types(src); err != nil {
			return err
		}
	}
	if src.Types == nil {
		in.infer(log)
	}
	return nil
}

// file adds the dump in a file, or the dumps of a bundle.
func (in *Dumps) file(ctx context.Context, path string, log Log) error {
	if container.TypeOfPath(path) == container.TypeBundle {
		return in.bundle(ctx, path, log)
	}
	f, err := files.Open(path)
	if err != nil {
		return err
	}
	fi, err := f.Stat()
	if err != nil {
		return errors.Join(err, f.Close())
	}
	in.open = append(in.open, f)
	return in.add(&Dump{Name: path, r: f, size: fi.Size()}, nil)
}

// add reads the header of a dump; types are the types of its bundle, by ID.
func (in *Dumps) add(m *Dump, types map[uint32]*btf.Types) error {
	d, err := mapdump.Open(m.Name, m.r, m.size)
	if errors.Is(err, mapdump.ErrNotDump) {
		return texts.WithHint(err,
			"dumps are made by `symbolize capture --maps NAME` and `bpftool -j map dump`")
	}
	if err != nil {
		return err
	}
	h := &d.Header
	m.Header = *h
	m.Layout = Layout{KeySize: int(h.KeySize), ValueSize: int(h.ValueSize), MapType: h.Type,
		BigEndian: h.BigEndian}
	switch t := types[h.BTFID]; {
	case d.Types != nil:
		m.Layout.Types, m.Layout.Key, m.Layout.Value = d.Types, btf.ID(h.KeyType), btf.ID(h.ValueType)
	case t == nil || h.BTFID == 0:
	case h.Type == structOps:
		m.program, m.Untyped = t, untypedOps
	case h.KeyType != 0 || h.ValueType != 0:
		m.Layout.Types, m.Layout.Key, m.Layout.Value = t, btf.ID(h.KeyType), btf.ID(h.ValueType)
	}
	in.List = append(in.List, m)
	return nil
}

// bundle adds the dumps of a bundle.
func (in *Dumps) bundle(ctx context.Context, path string, log Log) error {
	c, err := input.Open(ctx, path, input.Options{})
	if err != nil {
		return err
	}
	in.open = append(in.open, c)
	b, types := c.Bundle(), c.Types()
	for _, entry := range b.Names() {
		name, ok := bundle.CutDump(entry)
		if !ok {
			continue
		}
		m := &Dump{Name: path + ": " + entry, Series: name, Host: &b.Manifest}
		if series, _, ok := bundle.CutSeries(entry); ok {
			m.Series = series
		}
		if m.r, m.size, err = b.Entry(entry); err != nil {
			return err
		}
		if err := in.add(m, types); err != nil {
			log.Damage(err.Error(), "copy the bundle or capture it again")
		}
	}
	for _, err := range b.Warnings {
		log.Damage(err.Error(), "copy the bundle or capture it again")
	}
	return nil
}

// choose keeps the dumps of one map, by name or ID.
func (in *Dumps) choose(name string, paths []string) error {
	all := in.List
	if name != "" {
		in.List = slices.DeleteFunc(slices.Clone(all), func(m *Dump) bool {
			return m.Host != nil && !m.called(name)
		})
	}
	files := strings.Join(paths, ", ")
	switch {
	case len(all) == 0:
		return texts.WithHint(fmt.Errorf("%s: no dump of a map in it", files),
			"`symbolize capture --maps NAME` puts some into a bundle")
	case len(in.List) == 0:
		return texts.WithHint(fmt.Errorf("%s: no map %s in it", files, name), "there are %s",
			titles(all))
	}
	if in.Several() {
		if name != "" { // several maps of one name
			return texts.WithHint(fmt.Errorf("%s: %d maps match --map %s", files, numMaps(in.List), name),
				"name one by its id, --map ID: %s", titles(in.List))
		}
		return texts.WithHint(fmt.Errorf("%s: dumps of several maps", files), "name one with --map: %s",
			titles(in.List))
	}
	return nil
}

// titles lists the maps of bundles.
func titles(list []*Dump) string {
	var names []string
	for _, m := range list {
		if m.Host != nil && !slices.Contains(names, m.Title()) {
			names = append(names, m.Title())
		}
	}
	return strings.Join(names, ", ")
}

// numMaps returns the number of maps that dumps are of.
func numMaps(list []*Dump) int {
	series := make(map[string]bool)
	for _, m := range list {
		series[m.Series] = true
	}
	return len(series)
}

// Last returns the dump that holds all counts: the latest of a series. Files are no series:
// of these the error is ErrSeveral.
func (in *Dumps) Last(log Log) (*Dump, error) {
	m := in.List[len(in.List)-1]
	if n := len(in.List); n > 1 {
		if m.Host == nil {
			return nil, ErrSeveral
		}
		log.Note(fmt.Sprintf("%s: the last of %d dumps", m.Title(), n))
	}
	return m, nil
}

// ErrSeveral is the error of a result that can be of one dump only.
var ErrSeveral = errors.New("one dump at a time")

// byTime sorts the dumps by time. It returns false if not all have one of their own.
func (in *Dumps) byTime() bool {
	seen := make(map[uint64]bool)
	for _, m := range in.List {
		if m.Header.Time == 0 || seen[m.Header.Time] {
			return false
		}
		seen[m.Header.Time] = true
	}
	slices.SortFunc(in.List, func(a, b *Dump) int {
		if a.Header.Time < b.Header.Time {
			return -1
		}
		return 1
	})
	return true
}

// Several reports whether there are dumps of several maps of a bundle.
func (in *Dumps) Several() bool {
	return slices.ContainsFunc(in.List, func(m *Dump) bool {
		return m.Host != nil && m.Series != in.List[0].Series
	})
}
