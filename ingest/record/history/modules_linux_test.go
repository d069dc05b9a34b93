package history

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"symbolize/fixtures/must"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/record/sampler"
	"symbolize/ingest/record/sys"
)

// ignored drops all reports.
var ignored = ModuleReports{Warn: func(string, ...any) {}, Lost: func(string, uint64) {}, Wake: func() {}}

// writer returns a function that writes a file below a directory.
func writer(t *testing.T, root string) func(name, text string) {
	return func(name, text string) {
		t.Helper()
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		must.Write(t, path, []byte(text))
	}
}

const moduleFormat = `name: module_load
format:
	field:unsigned int taints;	offset:8;	size:4;	signed:0;
	field:__data_loc char[] name;	offset:12;	size:4;	signed:0;
`

// moduleSample is a sample of a module tracepoint.
func moduleSample(id, time uint64, name string) []byte {
	o := binary.NativeEndian
	raw := make([]byte, 16)
	o.PutUint32(raw[12:], uint32(len(name)+1)<<16|16)
	raw = append(append(raw, name...), 0)
	b := o.AppendUint32(nil, uint32(perfdata.TypeSample))
	b = o.AppendUint32(b, 0)
	b = o.AppendUint64(b, id)
	b = o.AppendUint64(b, 0)
	b = o.AppendUint64(b, time)
	b = o.AppendUint64(b, 0)
	b = o.AppendUint32(b, uint32(len(raw)))
	return append(b, raw...)
}

// TestModules plays a host on which modules come and go.
func TestModules(t *testing.T) {
	root := t.TempDir()
	write := writer(t, root)
	there := func(lines, syms string) { write("proc/modules", lines); write("proc/kallsyms", syms) }
	m := NewModules(sys.Host{Root: root}, ignored)
	m.SetChanges(NewCodeLog(func() {}, func() {}))
	if m.Start(); len(m.list) != 0 {
		t.Fatalf("a kernel without modules: %v", m.list)
	}
	for i := range m.points {
		base := "sys/kernel/tracing/events/module/" + m.points[i].name
		write(base+"/id", "12\n")
		write(base+"/format", moduleFormat)
		if err := m.describe(&m.points[i]); err != nil || m.points[i].at != 12 {
			t.Fatal(err, m.points[i])
		}
		m.points[i].ids = []uint64{uint64(i + 1)}
	}
	const a = "ext4 1000 1 - Live 0xffffffffc0100000\n"
	there(a, "ffffffffc0100010 t ext4_f\t[ext4]\n")
	m.Start()
	there(a+"usb 500 0 - Live 0xffffffffc0200000\n",
		"ffffffffc0100010 t ext4_f\t[ext4]\nffffffffc0200010 t usb_f\t[usb]\n")
	m.Sample(moduleSample(1, 50, "usb"))
	m.Drain()
	there("usb 500 0 - Live 0xffffffffc0200000\n", "ffffffffc0200010 t usb_f\t[usb]\n")
	m.Sample(moduleSample(2, 60, "ext4"))
	m.Sample(moduleSample(1, 70, "brief"))
	m.Sample(moduleSample(2, 71, "brief"))
	m.Sample(moduleSample(9, 71, "of another event"))
	m.Update()
	var got []string
	for _, x := range m.list {
		got = append(got, x.Name)
		switch x.Name {
		case "ext4":
			if x.Loaded != 0 || x.Unloaded != 60 || uint64(x.Addr) != 0xffffffffc0100000 {
				t.Errorf("%+v", x)
			}
		case "usb":
			if x.Loaded != 50 || x.Unloaded != 0 || x.Size != 500 {
				t.Errorf("%+v", x)
			}
		case "brief":
			if x.Loaded != 70 || x.Unloaded != 71 || x.Addr != 0 {
				t.Errorf("%+v", x)
			}
		}
	}
	if !slices.Equal(got, []string{"ext4", "usb", "brief"}) {
		t.Errorf("modules %v", got)
	}
	if gone := string(m.Gone()); gone != "ffffffffc0100010 t ext4_f\t[ext4]\n" {
		t.Errorf("symbols of modules that are gone: %q", gone)
	}
	for at, want := range map[uint64]uint64{0xffffffffc0100010: 60, 0xffffffffc0200010: 50} {
		if got := m.changes.Epoch([]uint64{at}, 80); got != want {
			t.Errorf("the last change of %#x is that of %d, want %d", at, got, want)
		}
	}
	whole := moduleSample(1, 1, "x")
	for n := range whole { // every prefix
		m.Sample(whole[:n])
	}
}

// TestBlindModules: without tracepoints for modules, nothing is known of the code where one was
// found to be gone, or new, since the last look.
func TestBlindModules(t *testing.T) {
	root := t.TempDir()
	write := writer(t, root)
	now := uint64(time.Second)
	h := sys.Host{Root: root, Clocks: func() bundle.Clocks {
		now++
		return bundle.Clocks{Monotonic: now}
	}}
	m := NewModules(h, ignored)
	m.SetChanges(NewCodeLog(func() {}, func() {}))
	const stays = "ext4 4096 1 - Live 0xffffffffc0100000\n"
	write("proc/modules", stays+"usb 4096 0 - Live 0xffffffffc0200000\n")
	write("proc/kallsyms", "")
	m.Start()
	m.Open(nil)
	write("proc/modules", stays+"nfs 4096 0 - Live 0xffffffffc0300000\n")
	between := h.Monotonic()
	m.Update()
	for at, want := range map[uint64]uint64{0xffffffffc0100010: 0,
		0xffffffffc0200010: sampler.UnknownTime, 0xffffffffc0300010: sampler.UnknownTime} {
		if got := m.changes.Epoch([]uint64{at}, between); got != want {
			t.Errorf("the last change of %#x is that of %d, want %d", at, got, want)
		}
	}
	if len(m.list) != 3 || m.list[1].Unloaded < between || m.list[2].Loaded < between {
		t.Errorf("modules %+v", m.list)
	}
	m.SetChanges(NewCodeLog(func() {}, func() {}))
	between = h.Monotonic()
	m.Update()
	for i := range m.list {
		if got := m.changes.Epoch([]uint64{uint64(m.list[i].Addr) + 16}, between); got != 0 {
			t.Errorf("%s: a change at %d, where nothing has changed since", m.list[i].Name, got)
		}
	}
}

// FuzzSample handles samples with any content.
func FuzzSample(f *testing.F) {
	f.Add(moduleSample(1, 2, "mod"))
	f.Fuzz(func(t *testing.T, rec []byte) {
		m := NewModules(sys.Host{}, ignored)
		m.points[0].ids, m.points[0].at = []uint64{1}, 12
		m.Sample(rec)
		for _, e := range m.events {
			if len(e.name) > len(rec) {
				t.Errorf("a name of %d bytes from a record of %d", len(e.name), len(rec))
			}
		}
	})
}
