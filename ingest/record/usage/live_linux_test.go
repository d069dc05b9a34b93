package usage

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"symbolize/ingest/format/bpf"
)

func needLive(t *testing.T) {
	t.Helper()
	if os.Getenv("SYMBOLIZE_LIVE") == "" {
		t.Skip("SKIPPED: live tests run with SYMBOLIZE_LIVE=1")
	}
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: BPF programs are loaded by root")
	}
}

// loadProgram loads a program that does nothing.
func loadProgram(t *testing.T, spec ebpf.ProgramSpec) (*ebpf.Program, uint32) {
	t.Helper()
	spec.Name, spec.License = "usage_test", "GPL"
	// Packets pass while a program is attached.
	pass := int32(1)
	switch spec.Type {
	case ebpf.XDP:
		pass = 2 // XDP_PASS
	case ebpf.SchedCLS:
		pass = 0 // TC_ACT_OK
	}
	spec.Instructions = asm.Instructions{asm.Mov.Imm(asm.R0, pass), asm.Return()}
	p, err := ebpf.NewProgram(&spec)
	if err != nil {
		t.Skipf("SKIPPED: this kernel loads no program of type %v: %v", spec.Type, err)
	}
	t.Cleanup(func() { p.Close() })
	info, err := p.Info()
	if err != nil {
		t.Fatal(err)
	}
	id, _ := info.ID()
	return p, uint32(id)
}

// keep closes a link at the end; without one the test is skipped.
func keep(t *testing.T, l link.Link, err error) {
	t.Helper()
	if err != nil {
		t.Skipf("SKIPPED: this kernel attaches no such program: %v", err)
	}
	t.Cleanup(func() { l.Close() })
}

// TestAttachTypesLive: the names match the running kernel's own enum.
func TestAttachTypesLive(t *testing.T) {
	needLive(t)
	spec, err := btf.LoadKernelSpec()
	if err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	var enum *btf.Enum
	if err := spec.TypeByName("bpf_attach_type", &enum); err != nil {
		t.Fatal(err)
	}
	for _, v := range enum.Values {
		if v.Name == "__MAX_BPF_ATTACH_TYPE" || v.Value >= uint64(len(attachTypes)) {
			continue // of a later kernel
		}
		if want := strings.ToLower(strings.TrimPrefix(v.Name, "BPF_")); attachTypes[v.Value] != want {
			t.Errorf("%d is %s, not %s", v.Value, want, attachTypes[v.Value])
		}
	}
}

// cgroup2 is where the control groups of version 2 are mounted.
func cgroup2(t *testing.T) string {
	t.Helper()
	for _, m := range new(scan).mounts() {
		if m.kind == "cgroup2" {
			return m.path
		}
	}
	t.Skip("SKIPPED: no file system of type cgroup2 is mounted")
	return ""
}

// TestScanLive attaches a program in every way that this kernel has, and finds it there.
func TestScanLive(t *testing.T) {
	needLive(t)
	const loopback = 1
	for _, test := range []struct {
		name   string
		spec   ebpf.ProgramSpec
		attach func(t *testing.T, p *ebpf.Program) (to string)
		how    string
		link   bool
	}{
		{name: "raw tracepoint", spec: ebpf.ProgramSpec{Type: ebpf.RawTracepoint},
			attach: func(t *testing.T, p *ebpf.Program) string {
				l, err := link.AttachRawTracepoint(link.RawTracepointOptions{Name: "sys_enter", Program: p})
				keep(t, l, err)
				return "sys_enter"
			}, how: "raw_tracepoint", link: true},
		{name: "tracepoint", spec: ebpf.ProgramSpec{Type: ebpf.TracePoint},
			attach: func(t *testing.T, p *ebpf.Program) string {
				l, err := link.Tracepoint("sched", "sched_process_exit", p, nil)
				keep(t, l, err)
				return "sched_process_exit"
			}, how: "tracepoint", link: true},
		{name: "raw tracepoint with types",
			spec: ebpf.ProgramSpec{Type: ebpf.Tracing, AttachType: ebpf.AttachTraceRawTp,
				AttachTo: "sched_process_exit"},
			attach: func(t *testing.T, p *ebpf.Program) string {
				l, err := link.AttachTracing(link.TracingOptions{Program: p})
				keep(t, l, err)
				return "sched_process_exit" // the kernel has no other link for it
			}, how: "raw_tracepoint", link: true},
		{name: "fentry",
			spec: ebpf.ProgramSpec{Type: ebpf.Tracing, AttachType: ebpf.AttachTraceFEntry,
				AttachTo: "do_unlinkat"},
			attach: func(t *testing.T, p *ebpf.Program) string {
				l, err := link.AttachTracing(link.TracingOptions{Program: p})
				keep(t, l, err)
				return "do_unlinkat"
			}, how: "trace_fentry", link: true},
		{name: "control group, by a link", spec: ebpf.ProgramSpec{Type: ebpf.CGroupSKB,
			AttachType: ebpf.AttachCGroupInetEgress},
			attach: func(t *testing.T, p *ebpf.Program) string {
				dir := newGroup(t)
				l, err := link.AttachCgroup(link.CgroupOptions{Path: dir, Program: p,
					Attach: ebpf.AttachCGroupInetEgress})
				keep(t, l, err)
				return dir
			}, how: "cgroup_inet_egress", link: true},
		{name: "control group", spec: ebpf.ProgramSpec{Type: ebpf.CGroupSKB,
			AttachType: ebpf.AttachCGroupInetIngress},
			attach: func(t *testing.T, p *ebpf.Program) string {
				dir := newGroup(t)
				f, err := os.Open(dir)
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				if err := link.RawAttachProgram(link.RawAttachProgramOptions{Target: int(f.Fd()),
					Program: p, Attach: ebpf.AttachCGroupInetIngress}); err != nil {
					t.Skipf("SKIPPED: %v", err)
				}
				return dir
			}, how: "cgroup_inet_ingress"},
		{name: "XDP", spec: ebpf.ProgramSpec{Type: ebpf.XDP},
			attach: func(t *testing.T, p *ebpf.Program) string {
				l, err := link.AttachXDP(link.XDPOptions{Program: p, Interface: loopback,
					Flags: link.XDPGenericMode})
				keep(t, l, err)
				return "lo"
			}, how: "xdp", link: true},
		{name: "TCX",
			spec: ebpf.ProgramSpec{Type: ebpf.SchedCLS, AttachType: ebpf.AttachTCXIngress},
			attach: func(t *testing.T, p *ebpf.Program) string {
				l, err := link.AttachTCX(link.TCXOptions{Program: p, Interface: loopback,
					Attach: ebpf.AttachTCXIngress})
				keep(t, l, err)
				return "lo"
			}, how: "tcx_ingress", link: true},
		{name: "filter", spec: ebpf.ProgramSpec{Type: ebpf.SchedCLS}, attach: addFilter,
			how: "tc_egress"},
		{name: "perf event", spec: ebpf.ProgramSpec{Type: ebpf.TracePoint}, attach: attachEvent,
			how: "tracepoint"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, id := loadProgram(t, test.spec)
			to := test.attach(t, p)
			uses, err := scanHost(Options{})
			u := uses[id]
			if err != nil || u == nil {
				t.Fatalf("%+v, %v", u, err)
			}
			if len(u.Attached) != 1 || u.Attached[0].How != test.how || u.Attached[0].To != to ||
				(u.Attached[0].Link != 0) != test.link {
				t.Errorf("attached %+v, want %s to %s", u.Attached, test.how, to)
			}
			for _, by := range []string{bpf.ByProgram, bpf.ByLink} {
				want := bpf.Holder{PID: int32(os.Getpid()), Comm: comm(t), By: by}
				if has := slices.Contains(u.Holders, want); has != (test.link || by == bpf.ByProgram) {
					t.Errorf("%s: holders %+v", by, u.Holders)
				}
			}
		})
	}
}

// addFilter attaches a program as a filter of traffic, which no link does.
func addFilter(t *testing.T, p *ebpf.Program) string {
	path := pin(t, p)
	for _, args := range [][]string{{"qdisc", "add", "dev", "lo", "clsact"},
		{"filter", "add", "dev", "lo", "egress", "bpf", "direct-action", "pinned", path}} {
		if out, err := exec.Command("tc", args...).CombinedOutput(); err != nil {
			t.Skipf("SKIPPED: tc %v: %v: %s", args, err, out)
		}
		if args[0] == "qdisc" {
			t.Cleanup(func() { _ = exec.Command("tc", "qdisc", "del", "dev", "lo", "clsact").Run() })
		}
	}
	return "lo"
}

// attachEvent attaches a program to a perf event of a tracepoint, as it was done before links.
func attachEvent(t *testing.T, p *ebpf.Program) string {
	text, err := os.ReadFile("/sys/kernel/tracing/events/sched/sched_process_fork/id")
	if err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	number, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.PerfEventOpen(&unix.PerfEventAttr{Type: unix.PERF_TYPE_TRACEPOINT, Config: number,
		Sample: 1}, -1, 0, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if err := unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_SET_BPF, p.FD()); err != nil {
		t.Fatal(err)
	}
	return "sched_process_fork"
}

func comm(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("/proc/self/comm")
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

// newGroup makes a control group.
func newGroup(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(cgroup2(t), fmt.Sprintf("symbolize-usage-%d", os.Getpid()))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	t.Cleanup(func() { os.Remove(dir) })
	return dir
}

// pin pins a program.
func pin(t *testing.T, p *ebpf.Program) string {
	t.Helper()
	for _, m := range new(scan).mounts() {
		if m.kind != "bpf" {
			continue
		}
		path := filepath.Join(m.path, fmt.Sprintf("symbolize-usage-%d", os.Getpid()))
		if err := p.Pin(path); err != nil {
			t.Skipf("SKIPPED: %v", err)
		}
		t.Cleanup(func() { os.Remove(path) })
		return path
	}
	t.Skip("SKIPPED: no file system of type bpf is mounted")
	return ""
}

// TestPinsLive: a program that no process holds is found where it is pinned.
func TestPinsLive(t *testing.T) {
	needLive(t)
	p, id := loadProgram(t, ebpf.ProgramSpec{Type: ebpf.SocketFilter})
	path := pin(t, p)
	p.Close()
	uses, err := scanHost(Options{})
	if u := uses[id]; err != nil || u == nil || !slices.Equal(u.Pins, []string{path}) ||
		len(u.Holders) > 0 {
		t.Errorf("%+v, %v", u, err)
	}
}
