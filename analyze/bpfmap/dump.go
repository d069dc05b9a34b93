package bpfmap

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/mapdump"
	"symbolize/ingest/format/rawdump"
	"symbolize/ingest/object/btf"
)

// Dump is a dump of a map, which is read from its beginning for each result.
type Dump struct {
	Name    string // for messages: the path, and the entry of a bundle
	Series  string // of a bundle: the name that dumps of one map share
	Header  rawdump.Header
	Layout  Layout
	Untyped string           // why the BTF of Source has no types for it; "" if it has
	Host    *bundle.Manifest // of the bundle that has it; nil for files

	r       io.ReaderAt
	size    int64
	program *btf.Types // of a struct_ops map: BTF of the object that defines it
}

// Title names the map, else the file.
func (m *Dump) Title() string {
	if m.Header.Name == "" {
		return m.Name
	}
	if m.Header.MapID == 0 {
		return m.Header.Name
	}
	return fmt.Sprintf("%s (id %d)", m.Header.Name, m.Header.MapID)
}

// MapName has the name and the ID of a map as reports print them.
type MapName struct {
	Map string `json:"map"`              // its name, else that of the dump
	ID  uint32 `json:"map_id,omitempty"` // 0 if the dump has none
}

func (m *Dump) mapName() MapName { return MapName{cmp.Or(m.Header.Name, m.Name), m.Header.MapID} }

// pairs reads the dump from its beginning; end returns the error at its end.
func (m *Dump) pairs() (next Pairs, end func() error, err error) {
	d, err := mapdump.Open(m.Name, m.r, m.size)
	if err != nil {
		return nil, nil, err
	}
	return d.Next, d.Err, nil
}

// report logs the damage of a dump, and the pairs that its recorder lost.
func (m *Dump) report(log Log, end error) {
	if end != nil {
		log.Damage(end.Error()+"; all before it is used", "dump it again")
	}
	for _, cause := range slices.Sorted(maps.Keys(m.Header.Lost)) {
		log.Warn(fmt.Sprintf("%s: lost: %d %s", m.Name, m.Header.Lost[cause], cause), "")
	}
}

// wall is the wall-clock time of a dump; "" if it is not known.
func (m *Dump) wall(monotonic uint64) string {
	if m.Host == nil || m.Host.Begin.Realtime == 0 || m.Host.Begin.Monotonic == 0 {
		return ""
	}
	ns := int64(m.Host.Begin.Realtime) + int64(monotonic-m.Host.Begin.Monotonic)
	return time.Unix(0, ns).UTC().Format("2006-01-02 15:04:05 UTC")
}
