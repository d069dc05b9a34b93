package record

import (
	"math"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"symbolize/ingest/record/sampler"
)

// CheckHost returns the rights and settings that this process and host lack to capture
// everything; none if nothing is missing. Need.Fatal marks the fatal ones.
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
	read    func(path string) (string, bool) // of /proc and /sys; false: not there

	// Further needs of capture --stacks.
	container bool                               // processes have other numbers than the kernel's
	memlock   uint64                             // bytes
	probe     func(feature *kernelFeature) error // asks the kernel
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

// memlockLimit returns RLIMIT_MEMLOCK, bytes; without a limit, or if it is unknown, a value above
// any map's size.
func memlockLimit() uint64 {
	limit := unix.Rlimit{}
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit); err != nil {
		return math.MaxUint64
	}
	return limit.Cur
}

func (h *host) has(cap int) bool { return h.caps>>cap&1 != 0 }

// number returns a setting; absent if it is not there or no number.
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

// Settings that Check reads.
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
		add(true, "capget", "nobody knows which capabilities there are: "+h.capsErr.Error(), asRoot)
	}
	h.rights(add)
	h.settings(add)
	h.stacks(func(n Need) { out = append(out, n) })
	return out
}

// rights looks at the capabilities.
func (h *host) rights(add func(fatal bool, name, what, fix string)) {
	admin := h.has(unix.CAP_SYS_ADMIN)
	if !admin {
		// It covers CAP_BPF, too, which alone opens nothing by its id.
		add(true, "CAP_SYS_ADMIN", "a BPF program or BTF is opened by its id, "+
			"and with --stacks one is loaded", asRoot+"symbolize")
	}
	if paranoid := h.number(paranoidPath, 2); paranoid > 0 && !admin && !h.has(unix.CAP_PERFMON) {
		add(true, "CAP_PERFMON", "loads of BPF programs on all CPUs are watched: "+
			"kernel.perf_event_paranoid is "+strconv.Itoa(paranoid),
			"give the capability, or: sysctl kernel.perf_event_paranoid=0")
	}
	switch kptr := h.number(kptrPath, 0); {
	case kptr >= 2:
		add(false, "kernel.kptr_restrict", "images of BPF programs and addresses of kernel "+
			"symbols are seen: at "+strconv.Itoa(kptr)+" they are hidden from everybody",
			"sysctl kernel.kptr_restrict=1")
	case !h.has(unix.CAP_SYSLOG) && (kptr == 1 || h.number(paranoidPath, 2) > 1):
		add(false, "CAP_SYSLOG", "images of BPF programs and addresses of kernel symbols are "+
			"seen: kernel.kptr_restrict is "+strconv.Itoa(kptr)+", kernel.perf_event_paranoid "+
			strconv.Itoa(h.number(paranoidPath, 2)), asRoot+"symbolize")
	}
	if !h.has(unix.CAP_SYS_PTRACE) {
		add(false, "CAP_SYS_PTRACE", "mappings of other users' processes are read",
			asRoot+"symbolize")
	}
}

// settings checks the settings that no capability can replace.
func (h *host) settings(add func(fatal bool, name, what, fix string)) {
	if h.number(jitPath, 1) == 0 {
		add(false, "net.core.bpf_jit_enable", "BPF programs have code: at 0 they are interpreted",
			"sysctl net.core.bpf_jit_enable=1, then load the programs anew")
	}
	if s, ok := h.read(lockdownPath); ok && strings.Contains(s, "[confidentiality]") {
		add(false, "lockdown", "images are copied inside the kernel (--kernel-copy), and "+
			"tracepoints of modules watched: the kernel is locked down for confidentiality",
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
