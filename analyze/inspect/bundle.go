package inspect

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"symbolize/analyze/table"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/rawdump"
)

// Bundle describes the contents that only a bundle of `symbolize capture` has. Its JSON names
// are an interface.
type Bundle struct {
	Format    int               `json:"format"`
	BootID    string            `json:"boot_id,omitempty"`
	KernelID  string            `json:"kernel_build_id,omitempty"`
	Text      string            `json:"text,omitempty"` // run-time address of _text
	Omitted   bool              `json:"kernel_omitted,omitempty"`
	ByteOrder string            `json:"byte_order,omitempty"`
	PageSize  int               `json:"page_size,omitempty"`
	Begin     bundle.Clocks     `json:"begin"`
	End       bundle.Clocks     `json:"end"`
	Lost      map[string]uint64 `json:"lost,omitempty"`
	Modules   []Module          `json:"modules,omitempty"`
	Dumps     []Dump            `json:"dumps,omitempty"`
	Entries   []Entry           `json:"entries"`

	maps, perfMaps, jitDumps, vdsos int
}

// Module is a kernel module, with the times it came and went at.
type Module struct {
	Name     string `json:"name"`
	BuildID  string `json:"build_id,omitempty"`
	Address  string `json:"address,omitempty"`
	Size     uint64 `json:"size"`
	Loaded   uint64 `json:"loaded_ns,omitempty"`
	Unloaded uint64 `json:"unloaded_ns,omitempty"`
}

// Dump is the dump of a BPF map.
type Dump struct {
	Entry     string            `json:"entry"`
	Map       string            `json:"map"`
	MapID     uint32            `json:"map_id"`
	Type      uint32            `json:"type"`
	KeySize   uint32            `json:"key_size"`
	ValueSize uint32            `json:"value_size"`
	CPUs      uint32            `json:"cpus,omitempty"`
	Pairs     uint64            `json:"pairs"`
	Lost      map[string]uint64 `json:"lost,omitempty"`
	Damage    string            `json:"damage,omitempty"`
}

// Entry is a file of the bundle.
type Entry struct {
	Name string `json:"name"`
	Size int64  `json:"size"`
}

// newBundle collects it; nil for captures that are no bundles. Damaged entries in the tar are among
// the warnings of the capture's profile.
func newBundle(b *bundle.Bundle) (*Bundle, error) {
	if b == nil {
		return nil, nil
	}
	m := &b.Manifest
	info := &Bundle{Format: m.Format, BootID: m.BootID, KernelID: m.KernelBuildID,
		Omitted: m.KernelOmitted, ByteOrder: m.ByteOrder, PageSize: m.PageSize, Begin: m.Begin,
		End: m.End, Lost: m.Lost}
	if m.Text != 0 {
		info.Text = fmt.Sprintf("%#x", uint64(m.Text))
	}
	for _, name := range b.Names() {
		r, size, err := b.Entry(name)
		if err != nil {
			return info, err
		}
		info.Entries = append(info.Entries, Entry{name, size})
		if _, ok := bundle.CutDump(name); ok {
			info.Dumps = append(info.Dumps, newDump(name, r, size))
		}
		info.count(name)
	}
	modules, err := b.Modules()
	for i := range modules {
		x := &modules[i]
		mod := Module{Name: x.Name, Size: x.Size, Loaded: x.Loaded, Unloaded: x.Unloaded}
		if !x.BuildID.IsZero() {
			mod.BuildID = x.BuildID.Hex()
		}
		if x.Addr != 0 {
			mod.Address = fmt.Sprintf("%#x", uint64(x.Addr))
		}
		info.Modules = append(info.Modules, mod)
	}
	return info, err
}

func (info *Bundle) count(name string) {
	if _, ok := bundle.MapsPID(name); ok {
		info.maps++
	}
	if _, ok := bundle.PerfMapPID(name); ok {
		info.perfMaps++
	}
	if _, ok := bundle.JITDumpPID(name); ok {
		info.jitDumps++
	}
	if _, ok := bundle.CutVDSO(name); ok {
		info.vdsos++
	}
}

// newDump reads a dump to its end, which finds its damage.
func newDump(name string, r io.ReaderAt, size int64) Dump {
	d, err := rawdump.Open(name, r, size)
	if err != nil {
		return Dump{Entry: name, Damage: err.Error()}
	}
	h := &d.Header
	info := Dump{Entry: name, Map: h.Name, MapID: h.MapID, Type: h.Type, KeySize: h.KeySize,
		ValueSize: h.ValueSize, CPUs: h.CPUs, Lost: h.Lost}
	for _, _, ok := d.Next(); ok; _, _, ok = d.Next() {
		info.Pairs++
	}
	if err := d.Err(); err != nil {
		info.Damage = err.Error()
	}
	return info
}

// rows adds the fields of one line each.
func (info *Bundle) rows(t *table.Table) {
	if info == nil {
		return
	}
	kernel := info.KernelID
	if info.Text != "" {
		kernel = table.Join(", ", kernel, "_text at "+info.Text)
	}
	t.Field("kernel", kernel)
	t.Field("boot", info.BootID)
	if info.End.Realtime >= info.Begin.Realtime && info.End.Realtime > 0 {
		t.Row("up", table.Join(" to ", uptime(info.Begin.Boottime), uptime(info.End.Boottime))+
			" after boot")
	}
	kallsyms := "kallsyms"
	if info.Omitted {
		kallsyms = "kallsyms of modules and BPF only"
	}
	var holds []string
	for _, x := range []struct {
		n         int
		one, many string
	}{
		{info.has(bundle.KallsymsName), kallsyms, ""},
		{len(info.Modules), "1 module", "%d modules"}, {info.vdsos, "1 vdso", "%d vdsos"},
		{info.maps, "mappings of 1 process", "mappings of %d processes"},
		{info.perfMaps, "1 perf map", "%d perf maps"},
		{info.jitDumps, "1 jitdump file", "%d jitdump files"}, {len(info.Dumps), "1 dump", "%d dumps"},
	} {
		switch {
		case x.n == 1:
			holds = append(holds, x.one)
		case x.n > 1:
			holds = append(holds, fmt.Sprintf(x.many, x.n))
		}
	}
	t.Field("holds", strings.Join(holds, ", "))
}

func (info *Bundle) has(name string) int {
	if slices.ContainsFunc(info.Entries, func(e Entry) bool { return e.Name == name }) {
		return 1
	}
	return 0
}

func uptime(nanos uint64) string {
	return time.Duration(nanos).Round(time.Millisecond).String()
}

// writeTables writes the modules that came or went, and the dumps.
func (info *Bundle) writeTables(w io.Writer) error {
	if info == nil {
		return nil
	}
	modules := table.New()
	modules.Row("LOADED", "UNLOADED", "BUILD ID", "MODULE")
	moved := false
	for _, m := range info.Modules {
		if m.Loaded+m.Unloaded == 0 {
			continue
		}
		moved = true
		modules.Row(info.since(m.Loaded), info.since(m.Unloaded), cmp.Or(m.BuildID, "-"), m.Name)
	}
	if moved {
		if err := modules.Print(w); err != nil {
			return err
		}
	}
	if len(info.Dumps) == 0 {
		return nil
	}
	t := table.New(true, true, true)
	t.Row("PAIRS", "KEY", "VALUE", "TYPE", "MAP", "DUMP")
	run := 0 // dumps of a series so far, without loss or damage but for the last
	for i, d := range info.Dumps {
		if run++; i+1 < len(info.Dumps) && d.continues(info.Dumps[i+1]) {
			continue
		}
		value := fmt.Sprint(d.ValueSize)
		if d.CPUs > 0 {
			value = fmt.Sprintf("%d×%d", d.CPUs, d.ValueSize)
		}
		var lost []string
		for _, cause := range slices.Sorted(maps.Keys(d.Lost)) {
			lost = append(lost, fmt.Sprintf("%d lost: %s", d.Lost[cause], cause))
		}
		of := ""
		if run > 1 {
			of = fmt.Sprintf("the last of %d", run)
		}
		t.Row(fmt.Sprint(d.Pairs), fmt.Sprint(d.KeySize), value, fmt.Sprint(d.Type),
			cmp.Or(d.Map, "-"),
			table.Join(", ", d.Entry, of, strings.Join(lost, ", "), d.Damage))
		run = 0
	}
	return t.Print(w)
}

// continues reports whether another dump is the next one of the same series, and this one is
// neither damaged nor did it lose pairs.
func (d Dump) continues(next Dump) bool {
	series, _, ok := bundle.CutSeries(d.Entry)
	after, _, _ := bundle.CutSeries(next.Entry)
	return ok && series == after && len(d.Lost) == 0 && d.Damage == ""
}

// since converts a time of perf's clock to one since the start of the bundle, "-" for none.
func (info *Bundle) since(perf uint64) string {
	if perf == 0 {
		return "-"
	}
	return "+" + time.Duration(perf-info.Begin.Perf).Round(time.Microsecond).String()
}
