package inspect

import (
	"context"
	"errors"
	"strings"

	"symbolize/ingest/files"
	"symbolize/ingest/object/btf"
	"symbolize/ingest/object/dwarfvar"
	"symbolize/ingest/object/elf"
	"symbolize/store/indexer"
)

// readDWARF reads the types of a file's DWARF: all, or those with names and what they refer to. damage
// is what could not be read of it.
func readDWARF(ctx context.Context, path string, names []string) (t *btf.Types, damage, err error) {
	file, err := files.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	fi, err := file.Stat()
	if err != nil {
		return nil, nil, err
	}
	data, size, _, err := files.Unpack(path, file, fi.Size())
	if err != nil {
		return nil, nil, err
	}
	f, err := elf.Open(path, data, size)
	if err != nil {
		return nil, nil, err
	}
	v, err := indexer.ReadVariables(ctx, path, data, f, selectTypes(names))
	if v == nil {
		return nil, nil, err
	}
	t, damage = v.Types(), errors.Join(err, v.Incomplete())
	return t, damage, v.Close()
}

// selectTypes returns what to read for types with names as NewTypes has them.
func selectTypes(names []string) dwarfvar.Options {
	o := dwarfvar.Options{All: len(names) == 0}
	for _, n := range names {
		kind, name, ok := strings.Cut(n, " ")
		switch kind {
		case "struct", "union", "enum", "typedef":
			o.Types = append(o.Types, name)
		default:
			if ok && !strings.ContainsAny(kind, "<:") || strings.HasPrefix(n, "#") {
				o.All = true // of another kind, or a number of the whole list
			}
			o.Types = append(o.Types, n)
			o.Names = append(o.Names, n)
		}
	}
	return o
}
