package usage

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"symbolize/ingest/format/bpf"
)

func TestMounts(t *testing.T) {
	for _, test := range []struct {
		line string
		want mount
		dev  string
	}{
		{line: "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate",
			want: mount{"/sys/fs/cgroup", "cgroup2"}, dev: "0:26"},
		{line: `31 23 0:27 / /run/a\040b rw - bpf bpf rw`, want: mount{"/run/a b", "bpf"},
			dev: "0:27"},
		{line: "32 23 0:27 /part /mnt rw - bpf bpf rw", want: mount{}},
		{line: "33 23 0:28 / /proc rw - proc proc rw", want: mount{}},
		{want: mount{}},
		{line: " - bpf", want: mount{}},
	} {
		m, dev, ok := parseMount(test.line)
		if m != test.want || dev != test.dev || ok != (test.dev != "") {
			t.Errorf("%q: %+v, %q, %v", test.line, m, dev, ok)
		}
	}
	if got := unescape(`\1`); got != `\1` {
		t.Errorf("a cut escape became %q", got)
	}
}

// TestSame: links that differ only by id count once, as does a link that is found twice.
func TestSame(t *testing.T) {
	u := new(Use)
	for _, n := range []uint32{7, 5, 9} {
		u.addLink(bpf.Attachment{How: "perf_event", To: "cpu-clock", Link: n})
	}
	u.add("perf_event", "cpu-clock")
	u.add("cgroup_device", "/sys/fs/cgroup/a")
	u.sort()
	want := []bpf.Attachment{{How: "cgroup_device", To: "/sys/fs/cgroup/a"},
		{How: "perf_event", To: "cpu-clock", Link: 5, Times: 3}}
	if !slices.Equal(u.Attached, want) {
		t.Errorf("%+v", u.Attached)
	}
}

// attribute is one of rtnetlink.
func attribute(typ uint16, value []byte) []byte {
	b := binary.NativeEndian.AppendUint16(nil, uint16(attrHead+len(value)))
	b = append(binary.NativeEndian.AppendUint16(b, typ), value...)
	return append(b, make([]byte, -len(b)&3)...)
}

// TestInterface reads a message of the kernel, and every prefix of it.
func TestInterface(t *testing.T) {
	id := binary.NativeEndian.AppendUint32(nil, 42)
	data := make([]byte, unix.SizeofIfInfomsg)
	binary.NativeEndian.PutUint32(data[4:], 3)
	data = append(data, attribute(unix.IFLA_IFNAME, []byte("eth0\x00"))...)
	data = append(data, attribute(unix.IFLA_XDP, attribute(xdpFirst, id))...)
	f := parseInterface(data)
	if f.index != 3 || f.name != "eth0" || !f.hasXDP(42) || f.hasXDP(43) {
		t.Errorf("%+v", f)
	}
	for n := unix.SizeofIfInfomsg; n < len(data); n++ {
		if f := parseInterface(data[:n]); len(f.xdp) > 0 {
			t.Errorf("%d of %d bytes: %+v", n, len(data), f)
		}
	}
	s := &scan{ifaces: []iface{f}}
	for _, test := range []struct {
		index, program uint32
		want           string
	}{
		{index: 3, program: 42, want: "eth0"}, {index: 3, program: 1,
			want: "interface 3 of another network namespace"},
		{index: 4, program: 42, want: "interface 4 of another network namespace"}, {index: 0,
			program: 42},
	} {
		if got := s.interfaceOf(test.index, test.program, (*iface).hasXDP); got != test.want {
			t.Errorf("interface %d: %q", test.index, got)
		}
	}
}

func TestAnswerErrors(t *testing.T) {
	for _, test := range []struct {
		data []byte
		want bool
	}{{data: binary.NativeEndian.AppendUint32(nil, 0)},
		{data: binary.NativeEndian.AppendUint32(nil, ^uint32(1)), want: true}, {data: []byte{1},
			want: true}} {
		if err := answerError(test.data); (err != nil) != test.want {
			t.Errorf("%v: %v", test.data, err)
		}
	}
}

func TestPlaces(t *testing.T) {
	for _, test := range []struct {
		name            string
		offset, address uint64
		want            string
	}{{name: "do_exit", offset: 0, address: 1, want: "do_exit"}, {name: "/bin/a", offset: 0x10,
		address: 0, want: "/bin/a+0x10"}, {offset: 4, address: 0xf0, want: "0xf0"},
		{offset: 0, address: 0}} {
		if got := at(test.name, test.offset, test.address); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
	if got := attachType(1000); got != "attach type 1000" {
		t.Errorf("%q", got)
	}
	if how, to := perfEvent(&link.PerfEventInfo{Type: link.PerfEventEvent}); how != "perf_event" || to != "" {
		t.Errorf("%q %q", how, to)
	}
}
