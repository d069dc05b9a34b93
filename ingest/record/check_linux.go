package record

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/features"
	"golang.org/x/sys/unix"

	"symbolize/ingest/record/sampler"
	"symbolize/ingest/record/sys"
)

// CheckHost returns the rights and settings that this process and host lack for a full capture;
// none if nothing is missing. Without those marked Need.Fatal nothing can be captured.
func CheckHost() []Need {
	h := host{read: readSetting, container: !sampler.InitialNamespace(), memlock: memlockLimit(),
		probe: func(f *kernelFeature) error { return f.probe() }}
	h.caps, h.capsErr = effectiveCaps()
	return h.needs()
}

// host is the state that CheckHost examines.
type host struct {
	caps    uint64
	capsErr error
	read    func(path string) (string, bool) // of /proc and /sys; false: absent

	// Further inputs of the needs of capture --stacks.
	container bool                               // process IDs differ from the kernel's
	memlock   uint64                             // bytes
	probe     func(feature *kernelFeature) error // tests the running kernel
}

func readSetting(path string) (string, bool) {
	b, err := os.ReadFile(path)
	return strings.TrimSpace(string(b)), err == nil
}

func effectiveCaps() (uint64, error) {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&head, &data[0]); err != nil {
		return 0, os.NewSyscallError("capget", err)
	}
	return uint64(data[1].Effective)<<32 | uint64(data[0].Effective), nil
}

// memlockLimit returns RLIMIT_MEMLOCK in bytes. If it is unlimited or unknown, the value is larger
// than any map.
func memlockLimit() uint64 {
	limit := unix.Rlimit{}
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit); err != nil {
		return math.MaxUint64
	}
	return limit.Cur
}

func (h *host) has(cap int) bool { return h.caps>>cap&1 != 0 }

// number returns a numeric setting; absent if it does not exist or is not a number.
func (h *host) number(path string, absent int) int {
	s, ok := h.read(path)
	if !ok {
		return absent
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		return absent
	}
	return n
}

// Settings that CheckHost reads.
const (
	paranoidPath   = "/proc/sys/kernel/perf_event_paranoid"
	kptrPath       = "/proc/sys/kernel/kptr_restrict"
	jitPath        = "/proc/sys/net/core/bpf_jit_enable"
	lockdownPath   = "/sys/kernel/security/lockdown"
	vmlinuxBTFPath = "/sys/kernel/btf/vmlinux"
)

const asRoot = "run it as root, or: setcap cap_sys_admin,cap_perfmon,cap_syslog,cap_sys_ptrace+ep "

func (h *host) needs() []Need {
	var out []Need
	add := func(fatal bool, name, what, fix string) {
		out = append(out, Need{Name: name, For: what, Fix: fix, Fatal: fatal})
	}
	if h.capsErr != nil {
		add(true, "capget", "the capabilities can be checked: "+h.capsErr.Error(), asRoot)
	}
	h.rights(add)
	h.settings(add)
	h.stacks(func(n Need) { out = append(out, n) })
	return out
}

// rights checks the capabilities.
func (h *host) rights(add func(fatal bool, name, what, fix string)) {
	admin := h.has(unix.CAP_SYS_ADMIN)
	if !admin {
		// It includes CAP_BPF, which alone does not allow to open programs by id.
		add(true, "CAP_SYS_ADMIN", "BPF programs and BTF can be opened by id, "+
			"and a program loaded for --stacks", asRoot+"symbolize")
	}
	if paranoid := h.number(paranoidPath, 2); paranoid > 0 && !admin && !h.has(unix.CAP_PERFMON) {
		add(true, "CAP_PERFMON", "loads of BPF programs on all CPUs are recorded: "+
			"kernel.perf_event_paranoid is "+strconv.Itoa(paranoid),
			"give the capability, or: sysctl kernel.perf_event_paranoid=0")
	}
	switch kptr := h.number(kptrPath, 0); {
	case kptr >= 2:
		add(false, "kernel.kptr_restrict", "images of BPF programs and addresses of kernel "+
			"symbols can be read: at "+strconv.Itoa(kptr)+" they are hidden from all users",
			"sysctl kernel.kptr_restrict=1")
	case !h.has(unix.CAP_SYSLOG) && (kptr == 1 || h.number(paranoidPath, 2) > 1):
		add(false, "CAP_SYSLOG", "images of BPF programs and addresses of kernel symbols can be "+
			"read: kernel.kptr_restrict is "+strconv.Itoa(kptr)+", kernel.perf_event_paranoid "+
			strconv.Itoa(h.number(paranoidPath, 2)), asRoot+"symbolize")
	}
	if !h.has(unix.CAP_SYS_PTRACE) {
		add(false, "CAP_SYS_PTRACE", "mappings of other users' processes can be read",
			asRoot+"symbolize")
	}
}

// settings checks the settings that no capability replaces.
func (h *host) settings(add func(fatal bool, name, what, fix string)) {
	if h.number(jitPath, 1) == 0 {
		add(false, "net.core.bpf_jit_enable", "BPF programs are compiled: at 0 they are interpreted",
			"sysctl net.core.bpf_jit_enable=1, then load the programs again")
	}
	if s, ok := h.read(lockdownPath); ok && strings.Contains(s, "[confidentiality]") {
		add(false, "lockdown", "images are copied inside the kernel (--kernel-copy), and "+
			"tracepoints of modules recorded: the kernel is locked down for confidentiality",
			"boot without lockdown=confidentiality")
	}
	if _, err := os.Stat(vmlinuxBTFPath); err != nil && h.missing(vmlinuxBTFPath) {
		add(false, vmlinuxBTFPath, "images are copied inside the kernel (--kernel-copy)",
			"use a kernel with CONFIG_DEBUG_INFO_BTF")
	}
}

func (h *host) missing(path string) bool {
	_, ok := h.read(path)
	return !ok
}

// Settings that only sampling needs.
const (
	releasePath    = "/proc/sys/kernel/osrelease"
	maxStackPath   = "/proc/sys/kernel/perf_event_max_stack"
	mountsPath     = "/proc/self/mounts"
	uprobePath     = "/sys/bus/event_source/devices/uprobe/type"
	switchFormat   = "/events/sched/sched_switch/format"
	wakingFormat   = "/events/sched/sched_waking/format"
	uprobeEvents   = "/uprobe_events"
	stacksOption   = "--stacks"
	offCPUOption   = "--stacks --off-cpu and --stacks --wall"
	wakersOption   = "--stacks --wakers"
	uprobeOption   = "--stacks --event uprobe:…"
	cgroupOption   = "--stacks --cgroup"
	tracingOptions = "--stacks with --off-cpu, --wall, --wakers or --event GROUP:TRACEPOINT"
)

// kernelFeature is a BPF feature used by the sampler's program or its reader.
type kernelFeature struct {
	name  string
	what  string        // its use
	since kernelVersion // of upstream kernels; distributions backport some
	probe func() error  // nil: present; ErrNotSupported: absent
}

// kernelVersion is the number at the start of a release.
type kernelVersion struct{ major, minor int }

func (v kernelVersion) before(w kernelVersion) bool {
	return v.major < w.major || v.major == w.major && v.minor < w.minor
}

// samplerFeatures are the features that the sampler requires. BPF_F_USER_BUILD_ID is as old as
// bpf_get_stack.
var samplerFeatures = []kernelFeature{
	{"bpf_get_stack", "a BPF program can read stacks", kernelVersion{4, 18}, func() error {
		return features.HaveProgramHelper(ebpf.PerfEvent, asm.FnGetStack)
	}},
	{"bounded loops in BPF", "a BPF program can distinguish stacks", kernelVersion{5, 3},
		features.HaveBoundedLoops},
	{"batches of BPF maps", "counts can be read", kernelVersion{5, 6}, probeBatches},
	{"BPF ring buffer", "stacks are sent to user space", kernelVersion{5, 8}, func() error {
		return features.HaveMapType(ebpf.RingBuf)
	}},
}

// probeBatches reads a batch of an empty map.
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

// memcgSince is the version since which BPF maps do not count against RLIMIT_MEMLOCK.
var memcgSince = kernelVersion{5, 11}

// stacks checks the further needs of capture --stacks. Loading its program needs the same rights as
// opening others.
func (h *host) stacks(add func(n Need)) {
	h.stackKernel(add)
	h.lockedMemory(add)
	if depth := h.number(maxStackPath, sampler.Depth); depth < sampler.Depth {
		add(Need{Name: "kernel.perf_event_max_stack", Option: stacksOption,
			For: fmt.Sprintf("stacks have up to %d frames: they are truncated to %d",
				sampler.Depth, depth),
			Fix: fmt.Sprintf("sysctl kernel.perf_event_max_stack=%d, while no recorder runs",
				sampler.Depth)})
	}
	h.tracepoints(add)
	if h.missing(uprobePath) && !h.traced(uprobeEvents) {
		add(Need{Name: "uprobes", Option: uprobeOption,
			For: "function calls can be sampled: there is no " + uprobePath,
			Fix: "use a kernel with CONFIG_UPROBE_EVENTS, and /sys mounted"})
	}
	if !h.mounted("cgroup2", "") {
		add(Need{Name: "cgroup2", Option: cgroupOption,
			For: "a control group can be sampled: cgroup v2 is not mounted",
			Fix: "mount -t cgroup2 none DIR, and name a directory below it"})
	}
	if h.container {
		add(Need{Name: "initial PID namespace", Option: stacksOption,
			For: "addresses without a build ID get names in processes of the host and of other " +
				"containers: the container's /proc does not list them",
			Fix: "mount the host's /proc into the container and name it with --host-proc, or run " +
				"the container in the host's PID namespace (--pid=host)"})
	}
}

// lockedMemory checks the limit that maps of older kernels count against, even for root.
func (h *host) lockedMemory(add func(n Need)) {
	if v, ok := h.version(); ok && v.before(memcgSince) && h.memlock < sampler.MaxKernelMemory {
		add(Need{Name: "RLIMIT_MEMLOCK", Option: stacksOption,
			For: fmt.Sprintf("BPF maps of up to %d MiB are made: before Linux 5.11 they count "+
				"against this limit, which is %d KiB", sampler.MaxKernelMemory>>20, h.memlock>>10),
			Fix: "ulimit -l unlimited"})
	}
}

// stackKernel checks the kernel's features, by version if it has no rights to probe them.
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

// tracepoints checks for tracefs, which describes them.
func (h *host) tracepoints(add func(n Need)) {
	const what = "tracepoints are found"
	switch {
	case h.traced(switchFormat) && !h.traced(wakingFormat):
		add(Need{Name: "sched:sched_waking", Option: wakersOption,
			For: "what wakes threads can be recorded: tracefs has no such tracepoint",
			Fix: "use a kernel with CONFIG_EVENT_TRACING"})
	case h.traced(switchFormat):
	case !h.mounted("tracefs", sys.TracingDirs[0]) && !h.mounted("tracefs", sys.TracingDirs[1]) &&
		!h.mounted("debugfs", "/sys/kernel/debug"):
		add(Need{Name: "tracefs", Option: tracingOptions,
			For: what + ": it is mounted neither at " + strings.Join(sys.TracingDirs[:], " nor at "),
			Fix: "mount -t tracefs nodev " + sys.TracingDirs[0]})
	case !h.has(unix.CAP_DAC_READ_SEARCH) && !h.has(unix.CAP_DAC_OVERRIDE):
		add(Need{Name: "CAP_DAC_READ_SEARCH", Option: tracingOptions,
			For: what + ": only root can read tracefs",
			Fix: "run it as root, or give cap_dac_read_search with the other capabilities"})
	default:
		add(Need{Name: "sched:sched_switch", Option: offCPUOption,
			For: "off-CPU times can be recorded: tracefs has no such tracepoint",
			Fix: "use a kernel with CONFIG_EVENT_TRACING"})
	}
}

// traced reports whether tracefs has a file that can be read.
func (h *host) traced(name string) bool {
	return !h.missing(sys.TracingDirs[0]+name) || !h.missing(sys.TracingDirs[1]+name)
}

// mounted reports whether a file system of this type is mounted at dir, or anywhere if dir is "".
// It returns true if that is unknown.
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

// checkHostProc checks that Options.HostProc is a /proc of the host. It accepts a directory that it
// has no right to read.
func (s *recording) checkHostProc() error {
	dir := s.opts.HostProc
	if dir == "" {
		return nil
	}
	is, err := sampler.IsHostProc(dir)
	switch {
	case errors.Is(err, fs.ErrPermission):
		if b, err := os.ReadFile(dir + "/self/status"); err == nil && outerNumber(string(b)) {
			return nil
		}
		s.warnAhead(fmt.Sprintf("%v: cannot check that it is the /proc of the host", err))
		return nil
	case err != nil:
		return fmt.Errorf("%w: %w", ErrHostProc, err)
	case !is:
		return fmt.Errorf("%w: %s is the /proc of a container", ErrHostProc, dir)
	}
	return nil
}

// outerNumber reports, by a process's status in a /proc, whether the process is also in a PID
// namespace below the one of that /proc.
func outerNumber(status string) bool {
	_, rest, _ := strings.Cut(status, "\nNSpid:")
	line, _, _ := strings.Cut(rest, "\n")
	return len(strings.Fields(line)) > 1
}

// otherNumbers reports whether kernel records, which have IDs of the PID namespace of this process,
// have other process IDs than the /proc that is read.
func (p *processes) otherNumbers() bool {
	return p.s.opts.HostProc != "" && !sampler.InitialNamespace()
}
