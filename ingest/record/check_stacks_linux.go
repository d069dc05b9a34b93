package record

import (
	"errors"
	"fmt"
	"strings"
	"symbolize/ingest/record/sys"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/features"
	"golang.org/x/sys/unix"

	"symbolize/ingest/record/sampler"
)

// Settings that only sampling needs.
const (
	releasePath    = "/proc/sys/kernel/osrelease"
	maxStackPath   = "/proc/sys/kernel/perf_event_max_stack"
	mountsPath     = "/proc/self/mounts"
	uprobePath     = "/sys/bus/event_source/devices/uprobe/type"
	switchFormat   = "/events/sched/sched_switch/format"
	uprobeEvents   = "/uprobe_events"
	stacksOption   = "--stacks"
	offCPUOption   = "--stacks --off-cpu"
	uprobeOption   = "--stacks --event uprobe:…"
	cgroupOption   = "--stacks --cgroup"
	tracingOptions = "--stacks --off-cpu and --stacks --event GROUP:TRACEPOINT"
)

// kernelFeature is a feature of BPF that the sampler's program or its reader uses.
type kernelFeature struct {
	name  string
	what  string        // its use
	since kernelVersion // of kernels as they are released; distributions carry some back
	probe func() error  // nil: it is there; wraps ebpf.ErrNotSupported: it is not
}

// kernelVersion is the number at the start of a release.
type kernelVersion struct{ major, minor int }

func (v kernelVersion) before(w kernelVersion) bool {
	return v.major < w.major || v.major == w.major && v.minor < w.minor
}

// samplerFeatures are the features that the sampler requires. BPF_F_USER_BUILD_ID is as old as
// bpf_get_stack.
var samplerFeatures = []kernelFeature{
	{"bpf_get_stack", "a BPF program takes stacks", kernelVersion{4, 18}, func() error {
		return features.HaveProgramHelper(ebpf.PerfEvent, asm.FnGetStack)
	}},
	{"bounded loops in BPF", "a BPF program distinguishes stacks", kernelVersion{5, 3},
		features.HaveBoundedLoops},
	{"batches of BPF maps", "counts are read", kernelVersion{5, 6}, probeBatches},
	{"BPF ring buffer", "stacks leave the kernel", kernelVersion{5, 8}, func() error {
		return features.HaveMapType(ebpf.RingBuf)
	}},
}

// probeBatches asks for a batch of a map that has nothing in it.
func probeBatches() error {
	m, err := ebpf.NewMap(&ebpf.MapSpec{Name: "batches", Type: ebpf.Hash, KeySize: 4, ValueSize: 4,
		MaxEntries: 1})
	if err != nil {
		return err
	}
	defer m.Close()
	var cursor ebpf.MapBatchCursor
	_, err = m.BatchLookupAndDelete(&cursor, make([]uint32, 1), make([]uint32, 1), nil)
	if errors.Is(err, ebpf.ErrKeyNotExist) { // the end of the map
		return nil
	}
	return err
}

// memcgSince is where memory of BPF maps no longer counts against RLIMIT_MEMLOCK.
var memcgSince = kernelVersion{5, 11}

// stacks checks the needs of capture --stacks beyond those of every capture. Its program is
// loaded with the rights by which others are opened.
func (h *host) stacks(add func(n Need)) {
	h.stackKernel(add)
	h.lockedMemory(add)
	if depth := h.number(maxStackPath, sampler.Depth); depth < sampler.Depth {
		add(Need{Name: "kernel.perf_event_max_stack", Option: stacksOption,
			For: fmt.Sprintf("stacks are taken to a depth of %d frames: beyond %d they are cut off",
				sampler.Depth, depth),
			Fix: fmt.Sprintf("sysctl kernel.perf_event_max_stack=%d, while nobody records",
				sampler.Depth)})
	}
	h.tracepoints(add)
	if h.missing(uprobePath) && !h.traced(uprobeEvents) {
		add(Need{Name: "uprobes", Option: uprobeOption,
			For: "functions are sampled when they are called: there is no " + uprobePath,
			Fix: "use a kernel with CONFIG_UPROBE_EVENTS, and /sys mounted"})
	}
	if !h.mounted("cgroup2", "") {
		add(Need{Name: "cgroup2", Option: cgroupOption,
			For: "what is in a control group is sampled alone: version 2 is mounted nowhere",
			Fix: "mount -t cgroup2 none DIR, and name a directory below it"})
	}
	if h.container {
		add(Need{Name: "initial PID namespace", Option: stacksOption,
			For: "addresses without a build ID get names in processes of the host and of other " +
				"containers: in a container /proc does not have those",
			Fix: "mount the host's /proc into the container and name it with --host-proc, or run " +
				"the container in the host's PID namespace (--pid=host)"})
	}
}

// lockedMemory looks at the limit that maps of older kernels count against, root's too.
func (h *host) lockedMemory(add func(n Need)) {
	if v, ok := h.version(); ok && v.before(memcgSince) && h.memlock < sampler.MaxKernelMemory {
		add(Need{Name: "RLIMIT_MEMLOCK", Option: stacksOption,
			For: fmt.Sprintf("BPF maps of up to %d MiB are made: before Linux 5.11 they count "+
				"against this limit, which is %d KiB", sampler.MaxKernelMemory>>20, h.memlock>>10),
			Fix: "ulimit -l unlimited"})
	}
}

// stackKernel checks the kernel's own features. Without the rights to probe them, its
// version decides.
func (h *host) stackKernel(add func(n Need)) {
	release, _ := h.read(releasePath)
	version, versionKnown := h.version()
	for i := range samplerFeatures {
		f := &samplerFeatures[i]
		err := h.probe(f)
		switch {
		case err == nil:
			continue
		case errors.Is(err, ebpf.ErrNotSupported):
		case !versionKnown || !version.before(f.since):
			continue
		}
		since := fmt.Sprintf("%d.%d", f.since.major, f.since.minor)
		add(Need{Name: f.name, Option: stacksOption,
			For: fmt.Sprintf("%s: Linux has it since %s, this is %s", f.what, since, release),
			Fix: "use Linux 5.8 or later, with CONFIG_BPF_EVENTS"})
	}
}

// version reads the kernel's version.
func (h *host) version() (v kernelVersion, ok bool) {
	release, ok := h.read(releasePath)
	if !ok {
		return v, false
	}
	n, _ := fmt.Sscanf(release, "%d.%d", &v.major, &v.minor)
	return v, n == 2
}

// tracepoints looks for tracefs, which describes them.
func (h *host) tracepoints(add func(n Need)) {
	const what = "tracepoints are found"
	switch {
	case h.traced(switchFormat):
	case !h.mounted("tracefs", sys.TracingDirs[0]) && !h.mounted("tracefs", sys.TracingDirs[1]) &&
		!h.mounted("debugfs", "/sys/kernel/debug"):
		add(Need{Name: "tracefs", Option: tracingOptions,
			For: what + ": it is mounted neither at " + strings.Join(sys.TracingDirs[:], " nor at "),
			Fix: "mount -t tracefs nodev " + sys.TracingDirs[0]})
	case !h.has(unix.CAP_DAC_READ_SEARCH) && !h.has(unix.CAP_DAC_OVERRIDE):
		add(Need{Name: "CAP_DAC_READ_SEARCH", Option: tracingOptions,
			For: what + ": tracefs shows itself to root alone",
			Fix: "run it as root, or give cap_dac_read_search with the other capabilities"})
	default:
		add(Need{Name: "sched:sched_switch", Option: offCPUOption,
			For: "it is known when threads stop and go on: tracefs has no such tracepoint",
			Fix: "use a kernel with CONFIG_EVENT_TRACING"})
	}
}

// traced reports whether tracefs has a file that can be read.
func (h *host) traced(name string) bool {
	return !h.missing(sys.TracingDirs[0]+name) || !h.missing(sys.TracingDirs[1]+name)
}

// mounted reports whether a file system of this type is mounted at dir, or with dir ""
// anywhere. If that is unknown: true.
func (h *host) mounted(fstype, dir string) bool {
	mounts, ok := h.read(mountsPath)
	if !ok {
		return true
	}
	for line := range strings.Lines(mounts) {
		f := strings.Fields(line) // device, directory, type, …
		if len(f) >= 3 && f[2] == fstype && (dir == "" || f[1] == dir) {
			return true
		}
	}
	return false
}
