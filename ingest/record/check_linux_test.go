package record

import (
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"symbolize/ingest/record/sys"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// builtHost is a host for CheckHost. Unset fields are the fields of a host that lacks nothing.
type builtHost struct {
	lacks     uint64            // capabilities
	settings  map[string]string // beside those of goodSettings; absent: not there
	container bool
	memlock   uint64           // 0: no limit
	probe     map[string]error // by name of a feature
}

const absent = "\x00"

var goodSettings = map[string]string{
	vmlinuxBTFPath:                    "",
	releasePath:                       "6.1.0-18-amd64",
	maxStackPath:                      "127",
	mountsPath:                        "x /sys/fs/cgroup cgroup2 rw 0 0\nx /sys/kernel/tracing tracefs rw 0 0",
	uprobePath:                        "9",
	sys.TracingDirs[0] + switchFormat: "name: sched_switch",
	sys.TracingDirs[0] + wakingFormat: "name: sched_waking",
	sys.TracingDirs[0] + uprobeEvents: "",
}

const (
	allCaps = 1<<unix.CAP_SYS_ADMIN | 1<<unix.CAP_SYSLOG | 1<<unix.CAP_SYS_PTRACE |
		1<<unix.CAP_PERFMON | 1<<unix.CAP_DAC_READ_SEARCH
	readsAll = 1 << unix.CAP_DAC_READ_SEARCH
)

func (b builtHost) needs() []Need {
	settings := maps.Clone(goodSettings)
	maps.Copy(settings, b.settings)
	h := host{caps: allCaps &^ b.lacks, container: b.container, memlock: b.memlock,
		read: func(path string) (string, bool) {
			v, ok := settings[path]
			return v, ok && v != absent
		},
		probe: func(f *kernelFeature) error { return b.probe[f.name] }}
	if h.memlock == 0 {
		h.memlock = math.MaxUint64
	}
	return h.needs()
}

// needNames returns the names of needs, followed by "!" if fatal, and by their option if any.
func needNames(t *testing.T, needs []Need) []string {
	t.Helper()
	var got []string
	for _, n := range needs {
		if n.For == "" || n.Fix == "" || n.Fatal && n.Option != "" {
			t.Errorf("%+v says too little, or that nothing works for want of an option", n)
		}
		name := n.Name
		if n.Fatal {
			name += "!"
		}
		if n.Option != "" {
			name += " " + n.Option
		}
		got = append(got, name)
	}
	return got
}

func TestNeeds(t *testing.T) {
	for _, tt := range []struct {
		host builtHost
		want []string
	}{
		{host: builtHost{}},
		{host: builtHost{lacks: allCaps, settings: map[string]string{paranoidPath: "2"}},
			want: []string{"CAP_SYS_ADMIN!", "CAP_PERFMON!", "CAP_SYSLOG", "CAP_SYS_PTRACE"}},
		{host: builtHost{lacks: allCaps, settings: map[string]string{paranoidPath: "0", kptrPath: "0"}},
			want: []string{"CAP_SYS_ADMIN!", "CAP_SYS_PTRACE"}},
		{host: builtHost{lacks: 1 << unix.CAP_SYSLOG, settings: map[string]string{kptrPath: "1"}},
			want: []string{"CAP_SYSLOG"}},
		{host: builtHost{settings: map[string]string{kptrPath: "2", jitPath: "0",
			lockdownPath: "none integrity [confidentiality]"}},
			want: []string{"kernel.kptr_restrict", "net.core.bpf_jit_enable", "lockdown"}},
		{host: builtHost{settings: map[string]string{
			"/sys/kernel/btf/vmlinux": absent}}, want: wantVMLinux()},
	} {
		if got := needNames(t, tt.host.needs()); !slices.Equal(got, tt.want) {
			t.Errorf("%+v: %v, want %v", tt.host, got, tt.want)
		}
	}
}

// wantVMLinux is the need that is reported without a kernel's BTF: Check opens the file, too.
func wantVMLinux() []string {
	if _, err := os.Stat(vmlinuxBTFPath); err == nil {
		return nil
	}
	return []string{vmlinuxBTFPath}
}

// TestNeedsOfStacks removes the needs of sampling one by one.
func TestNeedsOfStacks(t *testing.T) {
	denied := fmt.Errorf("probe: %w", unix.EPERM)
	refused := fmt.Errorf("probe: %w", ebpf.ErrNotSupported)
	every := func(err error) map[string]error {
		probe := make(map[string]error)
		for _, f := range samplerFeatures {
			probe[f.name] = err
		}
		return probe
	}
	set := func(pairs ...string) map[string]string {
		m := make(map[string]string)
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i]] = pairs[i+1]
		}
		return m
	}
	noFormat := sys.TracingDirs[0] + switchFormat
	for _, tt := range []struct {
		name     string
		host     builtHost
		want     []string
		contains string // in one of them
	}{
		{name: "features of 4.14, asked",
			host: builtHost{settings: set(releasePath, "4.14.1"), probe: every(refused)},
			want: []string{"bpf_get_stack --stacks", "bounded loops in BPF --stacks",
				"batches of BPF maps --stacks", "BPF ring buffer --stacks"},
			contains: "Linux has it since 4.18, this is 4.14.1"},
		{name: "features of 5.4, by its version",
			host: builtHost{settings: set(releasePath, "5.4.0-42-generic"),
				probe: every(denied)},
			want:     []string{"batches of BPF maps --stacks", "BPF ring buffer --stacks"},
			contains: "Linux has it since 5.8, this is 5.4.0-42-generic"},
		{name: "a distribution's kernel has what its version has not",
			host: builtHost{settings: set(releasePath, "4.18.0-553.el8")}},
		{name: "no CONFIG_BPF_EVENTS",
			host: builtHost{probe: map[string]error{"bpf_get_stack": refused}},
			want: []string{"bpf_get_stack --stacks"}, contains: "CONFIG_BPF_EVENTS"},
		{name: "a kernel with all, not asked", host: builtHost{probe: every(denied)}},
		{name: "nothing is known",
			host: builtHost{settings: set(releasePath, absent), probe: every(denied)}},
		{name: "odd version",
			host: builtHost{settings: set(releasePath, "six"), probe: every(denied)}},
		{name: "small limit",
			host: builtHost{settings: set(releasePath, "5.10.0-28-amd64"), memlock: 64 << 10},
			want: []string{"RLIMIT_MEMLOCK --stacks"}, contains: "which is 64 KiB"},
		{name: "small limit that counts no maps",
			host: builtHost{settings: set(releasePath, "5.11.0"),
				memlock: 64 << 10}},
		{name: "shallow stacks", host: builtHost{settings: set(maxStackPath, "64")},
			want:     []string{"kernel.perf_event_max_stack --stacks"},
			contains: "127 frames: they are truncated to 64"},
		{name: "deep stacks", host: builtHost{settings: set(maxStackPath, "1024")}},
		{name: "no tracefs", host: builtHost{settings: set(noFormat, absent,
			mountsPath, "x /sys/fs/cgroup cgroup2 rw 0 0\nx /srv/tracing tracefs rw 0 0")},
			want:     []string{"tracefs " + tracingOptions},
			contains: "mount -t tracefs nodev /sys/kernel/tracing"},
		{name: "tracefs in debugfs", host: builtHost{settings: set(noFormat, absent,
			sys.TracingDirs[1]+switchFormat, "name: sched_switch",
			sys.TracingDirs[1]+wakingFormat, "name: sched_waking",
			mountsPath, "x /sys/fs/cgroup cgroup2 rw 0 0\nx /sys/kernel/debug debugfs rw 0 0")}},
		{name: "tracefs of root",
			host:     builtHost{lacks: readsAll, settings: set(noFormat, absent)},
			want:     []string{"CAP_DAC_READ_SEARCH " + tracingOptions},
			contains: "only root can read tracefs"},
		{name: "no sched_switch", host: builtHost{settings: set(noFormat, absent)},
			want:     []string{"sched:sched_switch " + offCPUOption},
			contains: "CONFIG_EVENT_TRACING"},
		{name: "no sched_waking", host: builtHost{settings: set(sys.TracingDirs[0]+wakingFormat, absent)},
			want:     []string{"sched:sched_waking " + wakersOption},
			contains: "CONFIG_EVENT_TRACING"},
		{name: "uprobes by tracefs", host: builtHost{settings: set(uprobePath, absent)}},
		{name: "no uprobes",
			host: builtHost{settings: set(uprobePath, absent, sys.TracingDirs[0]+uprobeEvents, absent)},
			want: []string{"uprobes " + uprobeOption}, contains: uprobePath},
		{name: "cgroup v1", host: builtHost{settings: set(mountsPath,
			"cgroup /sys/fs/cgroup/cpu cgroup rw 0 0\nodd\nx /sys/kernel/tracing tracefs rw")},
			want: []string{"cgroup2 " + cgroupOption}, contains: "mount -t cgroup2"},
		{name: "cgroup hybrid", host: builtHost{settings: set(mountsPath,
			"x /sys/fs/cgroup/unified cgroup2 rw 0 0\nx /sys/kernel/tracing tracefs rw")}},
		{name: "no /proc", host: builtHost{settings: set(mountsPath, absent)}},
		{name: "container", host: builtHost{container: true},
			want: []string{"initial PID namespace --stacks"}, contains: "--pid=host"},
	} {
		needs := tt.host.needs()
		if got := needNames(t, needs); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
		if text := fmt.Sprintf("%+v", needs); !strings.Contains(text, tt.contains) {
			t.Errorf("%s: %s does not contain %q", tt.name, text, tt.contains)
		}
	}
}

// TestLiveFeatures probes this kernel for all features that the sampler uses.
func TestLiveFeatures(t *testing.T) {
	if os.Getenv("SYMBOLIZE_LIVE") == "" {
		t.Skip("SKIPPED: live tests run with SYMBOLIZE_LIVE=1")
	}
	for _, n := range CheckHost() {
		if n.Fatal {
			t.Skipf("SKIPPED: %s is missing, so that %s", n.Name, n.For)
		}
	}
	for _, f := range samplerFeatures {
		if err := f.probe(); err != nil {
			t.Errorf("%s: %v", f.name, err)
		}
	}
}
