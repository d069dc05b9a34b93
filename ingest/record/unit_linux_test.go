package record

import (
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/record/changes"
	"symbolize/ingest/record/perfevent"
	"symbolize/ingest/record/sampler"
)

func TestSpool(t *testing.T) {
	s, err := newSpool()
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	for _, x := range []struct {
		id   uint32
		text string
	}{{id: 7, text: "seven"}, {id: 3, text: "three"}, {id: 7, text: "again"}} {
		if err := s.add(x.id, []byte(x.text)); err != nil {
			t.Fatal(err)
		}
	}
	got, err := io.ReadAll(s.section())
	want := string(binary.NativeEndian.AppendUint32(nil, 2)) + "threeseven"
	if err != nil || string(got) != want {
		t.Errorf("%q, %v", got, err)
	}
	if _, ok := s.find(4); ok {
		t.Error("found what is not there")
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
	write := func(name, text string) {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	there := func(lines, syms string) { write("proc/modules", lines); write("proc/kallsyms", syms) }
	s := &session{opts: &Options{}, summary: &Summary{}}
	m := newModules(s, root)
	m.changes = changes.New(func() {}, func() {})
	if err := m.start(); err != nil || len(m.list) != 0 {
		t.Fatalf("a kernel without modules: %v, %v", err, m.list)
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
	m.start()
	there(a+"usb 500 0 - Live 0xffffffffc0200000\n",
		"ffffffffc0100010 t ext4_f\t[ext4]\nffffffffc0200010 t usb_f\t[usb]\n")
	m.sample(moduleSample(1, 50, "usb"))
	m.drain()
	there("usb 500 0 - Live 0xffffffffc0200000\n", "ffffffffc0200010 t usb_f\t[usb]\n")
	m.sample(moduleSample(2, 60, "ext4"))
	m.sample(moduleSample(1, 70, "brief"))
	m.sample(moduleSample(2, 71, "brief"))
	m.sample(moduleSample(9, 71, "of another event"))
	m.stop()
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
	if gone := string(m.gone()); gone != "ffffffffc0100010 t ext4_f\t[ext4]\n" {
		t.Errorf("symbols of modules that are gone: %q", gone)
	}
	for at, want := range map[uint64]uint64{0xffffffffc0100010: 60, 0xffffffffc0200010: 50} {
		if got := m.changes.Epoch([]uint64{at}, 80); got != want {
			t.Errorf("the last change of %#x is that of %d, want %d", at, got, want)
		}
	}
	whole := moduleSample(1, 1, "x")
	for n := range whole { // every prefix
		m.sample(whole[:n])
	}
}

// TestBlindModules: without tracepoints for modules, nothing is known of the code
// where one was found to be gone, or new, since the last look.
func TestBlindModules(t *testing.T) {
	r := newTestRoot(t)
	m := newModules(&session{opts: &Options{}, summary: &Summary{}}, r.dir)
	m.changes = changes.New(func() {}, func() {})
	const stays = "ext4 4096 1 - Live 0xffffffffc0100000\n"
	r.write("proc/modules", stays+"usb 4096 0 - Live 0xffffffffc0200000\n")
	r.write("proc/kallsyms", "")
	if err := m.start(); err != nil {
		t.Fatal(err)
	}
	m.open(nil)
	r.write("proc/modules", stays+"nfs 4096 0 - Live 0xffffffffc0300000\n")
	between := perfevent.Monotonic()
	m.settle()
	for at, want := range map[uint64]uint64{0xffffffffc0100010: 0,
		0xffffffffc0200010: sampler.UnknownTime, 0xffffffffc0300010: sampler.UnknownTime} {
		if got := m.changes.Epoch([]uint64{at}, between); got != want {
			t.Errorf("the last change of %#x is that of %d, want %d", at, got, want)
		}
	}
	if len(m.list) != 3 || m.list[1].Unloaded < between || m.list[2].Loaded < between {
		t.Errorf("modules %+v", m.list)
	}
	m.changes = changes.New(func() {}, func() {})
	between = perfevent.Monotonic()
	m.settle()
	for i := range m.list {
		if got := m.changes.Epoch([]uint64{uint64(m.list[i].Addr) + 16}, between); got != 0 {
			t.Errorf("%s: a change at %d, where nothing has changed since", m.list[i].Name, got)
		}
	}
}

func TestScanKallsyms(t *testing.T) {
	k := &kernel{}
	err := k.scan(strings.NewReader("ffffffff81000000 T _text\nffffffff82000000 T _etext\n" +
		"ffffffffc0000000 t bpf_trampoline_7\t[bpf]\nffffffffc0001000 t bpf_prog_00_x\t[bpf]\nodd\n"))
	if err != nil || k.facts.text != 0xffffffff81000000 || k.facts.end != 0xffffffff82000000 ||
		!reflect.DeepEqual(k.list, []kernelImage{{0xffffffffc0000000, "bpf_trampoline_7"}}) {
		t.Errorf("%v: %+v %+v", err, k.facts, k.list)
	}
}
