package inspect

import (
	debugelf "debug/elf"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"symbolize/analyze/table"
	"symbolize/buildid"
	"symbolize/ingest/object/dwarf"
	"symbolize/ingest/object/elf"
	"symbolize/store/indexer"
)

// DWARF describes the debug information of an object file. Its JSON names are an interface.
type DWARF struct {
	Units       int           `json:"units"`
	Versions    map[uint8]int `json:"versions"` // units by version
	Split       int           `json:"split_units"`
	Damaged     int           `json:"damaged_units,omitempty"`
	Size        uint64        `json:"size"`                  // of its sections in the file, bytes
	Compression []string      `json:"compression,omitempty"` // "zlib", "zstd", "GNU zlib"
	// Missing lists the files that have more of it and are not where they are looked for.
	Missing []string `json:"missing,omitempty"`
}

// newDWARF reads the headers of the debug information of a file. It returns nil where the file has
// none and names none.
func newDWARF(f *elf.File, r io.ReaderAt, path string) *DWARF {
	d := &DWARF{Versions: make(map[uint8]int)}
	has := d.addSections(f, r)
	if has {
		l := indexer.LoadDWARF(r, f, strings.HasSuffix(path, ".dwo"), 1)
		defer l.Close()
		sum := dwarf.New(l.Sections, dwarf.Options{Name: path}).Summary()
		d.Units, d.Versions, d.Split, d.Damaged = sum.Units, sum.Versions, sum.Skeleton, sum.Damaged
	}
	d.addMissing(f, path, has)
	if !has && len(d.Missing) == 0 {
		return nil
	}
	return d
}

// addSections sums the sections, and reports whether there is .debug_info.
func (d *DWARF) addSections(f *elf.File, r io.ReaderAt) (has bool) {
	packed := make(map[string]bool)
	for i := range f.Sections {
		s := &f.Sections[i]
		name, gnu := strings.CutPrefix(s.Name, ".zdebug_")
		if !gnu {
			var ok bool
			if name, ok = strings.CutPrefix(s.Name, ".debug_"); !ok {
				continue
			}
		}
		if s.Type == debugelf.SHT_NOBITS {
			continue
		}
		has = has || strings.TrimSuffix(name, ".dwo") == "info"
		d.Size += s.Size
		switch {
		case gnu:
			packed["GNU zlib"] = true
		case s.Flags&debugelf.SHF_COMPRESSED != 0:
			packed[compressionOf(r, uint64(s.Offset), f.BigEndian)] = true
		}
	}
	d.Compression = slices.Sorted(maps.Keys(packed))
	return has
}

// compressionOf names the compression in the header of a section, Elf32_Chdr or Elf64_Chdr.
func compressionOf(r io.ReaderAt, at uint64, big bool) string {
	var b [4]byte
	if _, err := r.ReadAt(b[:], int64(at)); err != nil {
		return "unreadable"
	}
	kind := binary.LittleEndian.Uint32(b[:])
	if big {
		kind = binary.BigEndian.Uint32(b[:])
	}
	switch debugelf.CompressionType(kind) {
	case debugelf.COMPRESS_ZLIB:
		return "zlib"
	case debugelf.COMPRESS_ZSTD:
		return "zstd"
	}
	return fmt.Sprintf("type %d", kind)
}

// debugRoot is where distributions install debug files.
const debugRoot = "/usr/lib/debug"

// addMissing lists the files that are named and not found.
func (d *DWARF) addMissing(f *elf.File, path string, has bool) {
	dir := filepath.Dir(path)
	if name, _, ok := f.DebugLink(); ok && !has {
		places := buildid.DebugPaths(f.ID, []string{debugRoot})
		places = append(places, filepath.Join(dir, name), filepath.Join(dir, ".debug", name))
		if abs, err := filepath.Abs(dir); err == nil {
			places = append(places, filepath.Join(debugRoot, abs, name))
		}
		if !anyExists(places) {
			d.Missing = append(d.Missing, "the debug file "+name+": none of "+
				strings.Join(places, ", "))
		}
	}
	if name, id, ok := f.AltLink(); ok {
		at := path
		if abs, err := filepath.Abs(path); err == nil {
			at = abs
		}
		places := buildid.AltPaths(at, name, id, []string{debugRoot})
		if !anyExists(places) {
			d.Missing = append(d.Missing, "the supplementary file (dwz) "+name+": none of "+
				strings.Join(places, ", "))
		}
	}
	if dwp := path + ".dwp"; d.Split > 0 && !anyExists([]string{dwp}) {
		d.Missing = append(d.Missing, fmt.Sprintf("%s, with the rest of %s: it may be in .dwo files "+
			"where they were compiled", dwp, table.Count(d.Split, "unit", "units")))
	}
}

func anyExists(paths []string) bool {
	return slices.ContainsFunc(paths, func(path string) bool {
		_, err := os.Stat(path)
		return err == nil
	})
}

// rows adds the debug information to the description of an object.
func (d *DWARF) rows(t *table.Table) {
	if d == nil {
		return
	}
	if d.Units > 0 {
		var versions []string
		for _, v := range slices.Sorted(maps.Keys(d.Versions)) {
			versions = append(versions, fmt.Sprintf("%d (%d)", v, d.Versions[v]))
		}
		packed := ""
		if len(d.Compression) > 0 {
			packed = "compressed by " + strings.Join(d.Compression, " and ")
		}
		split, damaged := "", ""
		if d.Split > 0 {
			split = fmt.Sprintf("%d split", d.Split)
		}
		if d.Damaged > 0 {
			damaged = fmt.Sprintf("%d damaged", d.Damaged)
		}
		if len(versions) == 1 {
			versions[0], _, _ = strings.Cut(versions[0], " ")
		}
		t.Row("DWARF", table.Join(", ", table.Count(d.Units, "unit", "units")+" of version "+
			strings.Join(versions, " and "), split, damaged, table.Bytes(d.Size), packed))
	}
	for _, text := range d.Missing {
		t.Row("missing", text)
	}
}
