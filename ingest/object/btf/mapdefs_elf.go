package btf

import (
	"cmp"
	stdelf "debug/elf"
	"errors"
	"fmt"
	"slices"
	"strings"

	"symbolize/ingest/decode"
	"symbolize/ingest/object/elf"
)

// A struct bpf_map_def of objects before .maps: five words that are the same for all loaders
// (type, key_size, value_size, max_entries, map_flags); the oldest lacked the last, and loaders
// added others behind.
const (
	mapDefLeast    = 4 * 4
	maxMapsSection = 1 << 20
)

// ObjectMaps lists the maps that an object file defines: the maps of t, which may be nil, and of
// each struct bpf_map_def in the section "maps" or a section "maps/…", with types from the markers
// in t. With an error it returns the valid definitions.
func ObjectMaps(f *elf.File, t *Types) ([]MapDef, error) {
	var out []MapDef
	if t != nil {
		out = t.Maps()
	}
	old, err := oldMaps(f)
	for _, d := range old {
		i := slices.IndexFunc(out, func(m MapDef) bool { return m.Name == d.Name })
		switch {
		case i < 0 && len(out) < maxMapDefs:
			out = append(out, d)
		case i >= 0 && out[i].Type == 0 && out[i].MaxEntries == 0: // a marker
			if m := &out[i]; m.KeySize == d.KeySize && m.ValueSize == d.ValueSize {
				d.Key, d.Value = m.Key, m.Value // else they are another map's
			}
			out[i] = d
		}
	}
	return out, err
}

// oldMaps reads the definitions in sections of maps, in the order of their offsets.
func oldMaps(f *elf.File) ([]MapDef, error) {
	type symbol struct {
		name    string
		section int
		at      uint64
	}
	var symbols []symbol
	err := f.Entries(elf.Symtab, func(e elf.Entry) bool {
		if (e.Type == stdelf.STT_OBJECT || e.Type == stdelf.STT_NOTYPE) && e.Name != "" &&
			e.Section > 0 && isOldMaps(f.Sections[e.Section].Name) {
			symbols = append(symbols, symbol{e.Name, e.Section, e.Value})
		}
		return len(symbols) < maxMapDefs
	})
	errs := []error{err}
	slices.SortStableFunc(symbols, func(a, b symbol) int {
		return cmp.Or(cmp.Compare(a.section, b.section), cmp.Compare(a.at, b.at))
	})
	var out []MapDef
	sections := make(map[int][]byte)
	for i, s := range symbols {
		b, ok := sections[s.section]
		if !ok {
			b, err = f.Data(&f.Sections[s.section], maxMapsSection)
			errs = append(errs, err)
			sections[s.section] = b
		}
		end := uint64(len(b))
		if i+1 < len(symbols) && symbols[i+1].section == s.section {
			end = min(end, symbols[i+1].at)
		}
		if s.at > end || end-s.at < mapDefLeast {
			if b != nil {
				errs = append(errs, fmt.Errorf("%s: section %s: map %s has %d bytes at %#x; %d are the "+
					"least", f.Name, f.Sections[s.section].Name, s.name, end-min(end, s.at), s.at,
					mapDefLeast))
			}
			continue
		}
		out = append(out, oldMap(s.name, b[s.at:end], f.BigEndian))
	}
	return out, errors.Join(errs...)
}

// oldMap reads one definition.
func oldMap(name string, b []byte, big bool) MapDef {
	r := decode.New(name, b, 0, big)
	return MapDef{Name: name, Type: r.U32(), KeySize: r.U32(), ValueSize: r.U32(),
		MaxEntries: r.U32(), Flags: r.U32()}
}

func isOldMaps(section string) bool {
	return section == "maps" || strings.HasPrefix(section, "maps/")
}
