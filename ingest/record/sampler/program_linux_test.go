package sampler

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"symbolize/fixtures/golden"
)

const switchFormat = `name: sched_switch
format:
	field:unsigned short common_type;	offset:0;	size:2;	signed:0;
	field:pid_t prev_pid;	offset:24;	size:4;	signed:1;
	field:long prev_state;	offset:32;	size:8;	signed:1;
	field:char next_comm[16];	offset:40;	size:16;	signed:0;
	field:pid_t next_pid;	offset:56;	size:4;	signed:1;
`

func TestSwitchFormat(t *testing.T) {
	parse := func(text string) (l switchLayout, err error) {
		err = parseFields("format", text, tracepointField{"next_pid", 4, &l.nextPID},
			tracepointField{"prev_state", 8, &l.prevState})
		return l, err
	}
	l, err := parse(switchFormat)
	if err != nil || l != (switchLayout{nextPID: 56, prevState: 32}) {
		t.Errorf("layout %+v, %v", l, err)
	}
	whole := len(switchFormat) - 1 // without the last newline it is whole as well
	for n := range whole - len(" size:4;	signed:1;") {
		if l, err := parse(switchFormat[:n]); err == nil {
			t.Fatalf("the first %d bytes have the layout %+v", n, l)
		}
	}
}

// unloaded are maps that no kernel has, and the numbers in place of their descriptors.
func unloaded(o *Options) (m *kernelMaps, fd func(*ebpf.Map) int) {
	m = &kernelMaps{scratch: new(ebpf.Map), stats: new(ebpf.Map), counts: new(ebpf.Map),
		seen: new(ebpf.Map), ring: new(ebpf.Map), noted: new(ebpf.Map), known: new(ebpf.Map),
		since: new(ebpf.Map)}
	if len(o.PIDs) > 0 {
		m.pids = new(ebpf.Map)
	}
	if o.Cgroup != "" {
		m.cgroup = new(ebpf.Map)
	}
	if o.Event.Kind == OffCPU {
		m.threads = new(ebpf.Map)
	}
	number := make(map[*ebpf.Map]int)
	for i, x := range m.all() {
		if x != nil {
			number[x] = 100 + i
		}
	}
	return m, func(x *ebpf.Map) int {
		if number[x] == 0 {
			panic("a map that these options do not have")
		}
		return number[x]
	}
}

// testProcess is a layout that no kernel has.
var testProcess = &processLayout{leader: 0x510, start: 0x618, execs: 0x7e0, mm: 0x4f0, changes: 0xf8,
	layout: 0x140}

// assemble makes the program of these options without a kernel.
func assemble(o *Options, process *processLayout) asm.Instructions {
	m, fd := unloaded(o)
	a := &assembler{maps: m, fd: fd, process: process, steady: Range{Start: 0xffffffff80000000, End: 0xffffffffc0000000}}
	switch {
	case o.Wakers:
		a.waking(switchLayout{woken: 24})
	case o.Event.Kind == OffCPU:
		a.offCPU(o, switchLayout{nextPID: 56, prevState: 32})
	default:
		a.sample(o)
	}
	return a.ins
}

// TestListing compares the programs with golden listings, in which maps have the numbers
// 100 and up in the order of kernelMaps, and wants all jumps to lead somewhere.
func TestListing(t *testing.T) {
	for name, o := range map[string]*Options{
		"clock":   {},
		"known":   {},
		"filters": {PIDs: []int{1}, Cgroup: "/sys/fs/cgroup"},
		"offcpu":  {Event: Event{Kind: OffCPU}},
		"waking":  {Event: Event{Kind: OffCPU}, Wakers: true},
	} {
		process := testProcess
		if name != "known" {
			process = nil
		}
		ins := assemble(o, process)
		var code bytes.Buffer
		if err := ins.Marshal(&code, binary.LittleEndian); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		got := fmt.Appendf(nil, "%v", ins)
		golden.Compare(t, name+".golden", got)
	}
}

// TestJumps wants each label once, and no jump to one that is not there.
func TestJumps(t *testing.T) {
	for _, o := range []*Options{{}, {PIDs: []int{1}}, {Cgroup: "/"}, {Event: Event{Kind: OffCPU}},
		{Event: Event{Kind: OffCPU}, PIDs: []int{1}, Cgroup: "/"}, {Event: Event{Kind: OffCPU}, Wakers: true}} {
		ins := assemble(o, testProcess)
		labels := make(map[string]bool)
		for _, in := range ins {
			if name := in.Symbol(); name != "" {
				if labels[name] {
					t.Errorf("%v: label %s twice", o.Event, name)
				}
				labels[name] = true
			}
		}
		for i, in := range ins {
			if to := in.Reference(); to != "" && !labels[to] {
				t.Errorf("%v: instruction %d, %v, leads to no %s", o.Event, i, in, to)
			}
		}
	}
}

// TestImageRange: without both symbols of the kernel itself the range is empty.
func TestImageRange(t *testing.T) {
	const start, end = "ffff800080010000 T _stext\n", "ffff800081000000 B _end\n"
	const module = "ffff80007a000000 t _end\t[odd]\n"
	want := Range{Start: 0xffff800080010000, End: 0xffff800081000000}
	for text, want := range map[string]Range{
		start + module + "ffff800080020000 T schedule\n" + end: want,
		start: {}, end: {}, "": {}, "0000000000000000 T _stext\n0000000000000000 B _end\n": {},
		start + "ffff800080000000 B _end\n": {},
	} {
		if got := imageRange("kallsyms", strings.NewReader(text)); got != want {
			t.Errorf("%q: %#x, want %#x", text, got, want)
		}
	}
}
