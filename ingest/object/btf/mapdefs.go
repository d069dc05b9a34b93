package btf

import (
	"slices"
	"strings"
)

// MapDef is a map that an object file defines. Missing parts of the definition are 0.
type MapDef struct {
	Name string
	// Type is the kernel's number (enum bpf_map_type), as MaxEntries and Flags are.
	Type, MaxEntries, Flags uint32
	KeySize, ValueSize      uint32 // bytes
	Key, Value              ID     // 0: only their sizes are known, or nothing
}

// KernelName is the map's name in the kernel.
func (d *MapDef) KernelName() string { return KernelMapName(d.Name) }

// KernelMapName returns the kernel's form of a map's name, which is truncated.
func KernelMapName(name string) string { return name[:min(len(name), mapNameLen)] }

// maxMapDefs bounds the maps of one object; the kernel allows a program 64.
const maxMapDefs = 1 << 12

// mapNameLen is the kernel's limit for the name of a map, in bytes.
const mapNameLen = 15

// markerPrefix begins the names of the marker structures of objects before .maps, with the types
// of a map's key and value as members (BPF_ANNOTATE_KV_PAIR of the kernel's samples).
const markerPrefix = "____btf_map_"

// Maps lists the maps that an object file defines, in the order of their types: maps of the section
// .maps, as libbpf reads them, and maps of markers "____btf_map_NAME".
func (t *Types) Maps() []MapDef {
	var out []MapDef
	if id, ok := t.ByName(KindDatasec, ".maps"); ok {
		for _, s := range t.Sections(id) {
			if t.Kind(s.Type) == KindVar && len(out) < maxMapDefs {
				out = append(out, t.mapDef(t.Name(s.Type), t.Strip(t.Ref(s.Type))))
			}
		}
	}
	for id := t.first; int64(id) < int64(t.Len()) && len(out) < maxMapDefs; id++ {
		name, ok := strings.CutPrefix(t.Name(id), markerPrefix)
		if ok && t.Kind(id) == KindStruct && !slices.ContainsFunc(out, func(m MapDef) bool {
			return m.Name == name
		}) {
			out = append(out, t.marker(name, id))
		}
	}
	return out
}

// MapsNamed returns the candidate definitions of a name: the one of that name; else, as the
// kernel may have truncated it, all definitions with that truncated name.
func (t *Types) MapsNamed(name string) []MapDef {
	var cut []MapDef
	for _, m := range t.Maps() {
		if m.Name == name {
			return []MapDef{m}
		}
		if len(name) == mapNameLen && m.KernelName() == name {
			cut = append(cut, m)
		}
	}
	return cut
}

// mapDef reads a definition: numbers are the array lengths behind pointers (__uint of
// bpf_helpers.h), types the targets of pointers (__type).
func (t *Types) mapDef(name string, id ID) MapDef {
	d := MapDef{Name: name}
	for _, m := range t.Members(id) {
		target := t.Ref(t.Strip(m.Type))
		number := t.Array(t.Strip(target)).Len
		switch m.Name {
		case "type":
			d.Type = number
		case "max_entries":
			d.MaxEntries = number
		case "map_flags":
			d.Flags = number
		case "key_size":
			d.KeySize = number
		case "value_size":
			d.ValueSize = number
		case "key":
			d.Key, d.KeySize = target, t.sizeOf(target)
		case "value":
			d.Value, d.ValueSize = target, t.sizeOf(target)
		case "values": // other maps, or programs: the value is a number of one
			d.ValueSize = referenceSize
		}
	}
	return d
}

// referenceSize is the value size of a map of maps, or of programs, bytes.
const referenceSize = 4

func (t *Types) marker(name string, id ID) MapDef {
	d := MapDef{Name: name}
	for _, m := range t.Members(id) {
		switch m.Name {
		case "key":
			d.Key, d.KeySize = m.Type, t.sizeOf(m.Type)
		case "value":
			d.Value, d.ValueSize = m.Type, t.sizeOf(m.Type)
		}
	}
	return d
}

// sizeOf returns the size of a type, 0 if it has none that fits.
func (t *Types) sizeOf(id ID) uint32 {
	n, err := t.Size(id)
	if err != nil || n > 1<<32-1 {
		return 0
	}
	return uint32(n)
}

// DataSection returns the DATASEC that is the value type of the kernel's map of a section: maps
// are called after object and section, "kinds.rodata", and sections ".rodata".
func (t *Types) DataSection(mapName string) (ID, bool) {
	for id := t.first; int64(id) < int64(t.Len()); id++ {
		name := t.Name(id)
		if t.Kind(id) != KindDatasec || !strings.HasPrefix(name, ".") || name == ".maps" {
			continue
		}
		if mapName == name || strings.HasSuffix(mapName, name) ||
			len(mapName) == mapNameLen && strings.Contains(mapName, ".") &&
				strings.HasPrefix(name, mapName[strings.LastIndexByte(mapName, '.'):]) {
			return id, true
		}
	}
	return 0, false
}
