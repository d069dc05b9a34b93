package db

import (
	"fmt"
	"strconv"

	"symbolize/store"
)

// EachPart calls put with the parts of m.Sources[i], one at a time, in the order that
// store.Assembly needs. put may keep its argument.
func (d *database) EachPart(m *store.Manifest, i int, put func(name string, b []byte) error) error {
	info := &m.Sources[i]
	prefix := sourcePrefix(prefixTable, m.ID, info)
	copyPart := func(name string, part byte, i uint32) error {
		b, err := d.get(tableKey(prefix, part, i))
		if err != nil {
			return fmt.Errorf("%s of %s: %w", info.Kind, m.ID, err)
		}
		return put(name, b)
	}
	if err := copyPart(store.PartTable, partHeader, 0); err != nil {
		return err
	}
	for i := range info.Chunks {
		if err := copyPart(store.PartChunk+strconv.Itoa(int(i)), partChunk, i); err != nil {
			return err
		}
	}
	for i := range info.Strings {
		if err := copyPart(store.PartStrings+strconv.Itoa(int(i)), partStrings, i); err != nil {
			return err
		}
	}
	raw, err := d.Raw(m, i)
	if err != nil || raw == nil {
		return err
	}
	return put(store.PartRaw, raw)
}
