package usage

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"

	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"symbolize/ingest/format/bpf"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/record/sys"
)

// Options locate the files to read.
type Options struct {
	Proc string // mount point of /proc; "": /proc
	// OtherPIDs: process IDs in Proc differ from this process's own view.
	OtherPIDs bool
}

// Use is how a program is used.
type Use struct {
	Attached []bpf.Attachment
	Holders  []bpf.Holder
	Pins     []string
}

// scan is the state of one search.
type scan struct {
	opts    Options
	uses    map[uint32]*Use
	groups  []group           // of all file systems of type cgroup2
	paths   map[uint64]string // of groups, by ID
	ifaces  []iface
	targets targets
	errs    []error
}

// scanHost returns how the programs are used, by id, without programs about which nothing is known.
// An error in one place is returned together with the results of the others.
func scanHost(opts Options) (map[uint32]*Use, error) {
	opts.Proc = cmp.Or(opts.Proc, "/proc")
	s := &scan{opts: opts, uses: make(map[uint32]*Use), paths: make(map[uint64]string)}
	mounts := s.mounts()
	s.listGroups(mounts)
	s.listInterfaces()
	s.addLinks()
	s.addGroups()
	s.addInterfaces()
	s.addHolders()
	s.addPins(mounts)
	for _, u := range s.uses {
		u.sort()
	}
	return s.uses, errors.Join(s.errs...)
}

// fail keeps an error, unless it means that something no longer exists.
func (s *scan) fail(err error) {
	const limit = 8
	if err != nil && !errors.Is(err, fs.ErrNotExist) && len(s.errs) < limit {
		s.errs = append(s.errs, err)
	}
}

func (s *scan) use(program uint32) *Use {
	u := s.uses[program]
	if u == nil {
		u = new(Use)
		s.uses[program] = u
	}
	return u
}

// addLink adds an attachment by a link; links that differ only in their ids count as one.
func (u *Use) addLink(a bpf.Attachment) {
	for i := range u.Attached {
		if x := &u.Attached[i]; x.How == a.How && x.To == a.To {
			x.Times = max(x.Times, 1) + 1
			x.Link = min(x.Link, a.Link)
			return
		}
	}
	u.Attached = append(u.Attached, a)
}

// add adds an attachment unless a similar link is known, which is the same attachment.
func (u *Use) add(how, to string) {
	for _, x := range u.Attached {
		if x.How == how && x.To == to {
			return
		}
	}
	u.Attached = append(u.Attached, bpf.Attachment{How: how, To: to})
}

func (u *Use) addHolder(h bpf.Holder) {
	if !slices.Contains(u.Holders, h) {
		u.Holders = append(u.Holders, h)
	}
}

func (u *Use) sort() {
	slices.SortFunc(u.Attached, func(a, b bpf.Attachment) int {
		return cmp.Or(cmp.Compare(a.How, b.How), cmp.Compare(a.To, b.To))
	})
	slices.SortFunc(u.Holders, func(a, b bpf.Holder) int {
		return cmp.Or(cmp.Compare(a.PID, b.PID), cmp.Compare(a.By, b.By))
	})
	slices.Sort(u.Pins)
	u.Pins = slices.Compact(u.Pins)
}

// addLinks adds the attachments by links.
func (s *scan) addLinks() {
	var it link.Iterator
	defer it.Close()
	for it.Next() {
		info, err := it.Link.Info()
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				s.fail(fmt.Errorf("BPF link %d: %w", it.ID, err))
			}
			continue
		}
		how, to := s.describe(info)
		s.use(uint32(info.Program)).addLink(
			bpf.Attachment{How: how, To: to, Link: uint32(info.ID)})
	}
	if err := it.Err(); err != nil {
		s.fail(fmt.Errorf("BPF links: %w", err))
	}
}

// linkTypes are the names of enum bpf_link_type for links without further details.
var linkTypes = map[link.Type]string{
	link.RawTracepointType: "raw_tracepoint", link.TracingType: "tracing",
	link.CgroupType: "cgroup", link.IterType: "iter", link.NetNsType: "netns",
	link.XDPType: "xdp", link.PerfEventType: "perf_event", link.KprobeMultiType: "kprobe_multi",
	link.StructOpsType: "struct_ops", link.NetfilterType: "netfilter", link.TCXType: "tcx",
	link.UprobeMultiType: "uprobe_multi", link.NetkitType: "netkit",
}

// describe returns the kind and target of a link.
func (s *scan) describe(info *link.Info) (how, to string) {
	program := uint32(info.Program)
	if x := info.RawTracepoint(); x != nil {
		return "raw_tracepoint", x.Name
	}
	if x := info.Tracing(); x != nil {
		return attachType(uint32(x.AttachType)),
			s.targets.function(program, x.TargetObjectId, uint32(x.TargetBtfId))
	}
	if x := info.Cgroup(); x != nil {
		return attachType(uint32(x.AttachType)), s.groupPath(x.CgroupId)
	}
	if x := info.NetNs(); x != nil {
		return attachType(uint32(x.AttachType)), fmt.Sprintf("net:[%d]", x.NetnsInode)
	}
	if x := info.XDP(); x != nil {
		return "xdp", s.interfaceOf(x.Ifindex, program, (*iface).hasXDP)
	}
	if x := info.TCX(); x != nil {
		return attachType(uint32(x.AttachType)), s.interfaceOf(x.Ifindex, program,
			queries(uint32(x.AttachType)))
	}
	if x := info.Netkit(); x != nil {
		return attachType(uint32(x.AttachType)), s.interfaceOf(x.Ifindex, program,
			queries(uint32(x.AttachType)))
	}
	if x := info.Netfilter(); x != nil {
		return "netfilter", fmt.Sprintf("family %d, hook %d, priority %d", x.ProtocolFamily, x.Hook,
			x.Priority)
	}
	if x := info.KprobeMulti(); x != nil {
		return "kprobe_multi", count(x.Count, "function")
	}
	if x := info.UprobeMulti(); x != nil {
		return "uprobe_multi", fmt.Sprintf("%s of %s", count(x.Count, "place"), x.File)
	}
	if x := info.PerfEvent(); x != nil {
		return perfEvent(x)
	}
	if name, ok := linkTypes[info.Type]; ok {
		return name, ""
	}
	return "link type " + strconv.Itoa(int(info.Type)), ""
}

func count(n uint32, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// perfEvent describes a link to a perf event.
func perfEvent(x *link.PerfEventInfo) (how, to string) {
	if k := x.Kprobe(); k != nil {
		how := "kprobe"
		if x.Type == link.PerfEventKretprobe {
			how = "kretprobe"
		}
		return how, at(k.Function, uint64(k.Offset), k.Address)
	}
	if u := x.Uprobe(); u != nil {
		how := "uprobe"
		if x.Type == link.PerfEventUretprobe {
			how = "uretprobe"
		}
		return how, at(u.File, uint64(u.Offset), 0)
	}
	if t := x.Tracepoint(); t != nil {
		return "tracepoint", t.Tracepoint
	}
	if e := x.Event(); e != nil {
		attr := perfdata.Attr{Type: perfdata.AttrType(e.Type), Config: e.Config}
		return "perf_event", attr.Name()
	}
	return "perf_event", ""
}

// at returns a location as text, with its address if it has no name.
func at(name string, offset, address uint64) string {
	switch {
	case name == "" && address == 0:
		return ""
	case name == "":
		return fmt.Sprintf("%#x", address)
	case offset == 0:
		return name
	}
	return fmt.Sprintf("%s+%#x", name, offset)
}

// attachTypes are libbpf's names of enum bpf_attach_type, by number.
var attachTypes = [...]string{
	"cgroup_inet_ingress", "cgroup_inet_egress", "cgroup_inet_sock_create", "cgroup_sock_ops",
	"sk_skb_stream_parser", "sk_skb_stream_verdict", "cgroup_device", "sk_msg_verdict",
	"cgroup_inet4_bind", "cgroup_inet6_bind", "cgroup_inet4_connect", "cgroup_inet6_connect",
	"cgroup_inet4_post_bind", "cgroup_inet6_post_bind", "cgroup_udp4_sendmsg",
	"cgroup_udp6_sendmsg", "lirc_mode2", "flow_dissector", "cgroup_sysctl",
	"cgroup_udp4_recvmsg", "cgroup_udp6_recvmsg", "cgroup_getsockopt", "cgroup_setsockopt",
	"trace_raw_tp", "trace_fentry", "trace_fexit", "modify_return", "lsm_mac", "trace_iter",
	"cgroup_inet4_getpeername", "cgroup_inet6_getpeername", "cgroup_inet4_getsockname",
	"cgroup_inet6_getsockname", "xdp_devmap", "cgroup_inet_sock_release", "xdp_cpumap",
	"sk_lookup", "xdp", "sk_skb_verdict", "sk_reuseport_select",
	"sk_reuseport_select_or_migrate", "perf_event", "trace_kprobe_multi", "lsm_cgroup",
	"struct_ops", "netfilter", "tcx_ingress", "tcx_egress", "trace_uprobe_multi",
	"cgroup_unix_connect", "cgroup_unix_sendmsg", "cgroup_unix_recvmsg",
	"cgroup_unix_getpeername", "cgroup_unix_getsockname", "netkit_primary", "netkit_peer",
	"trace_kprobe_session", "trace_uprobe_session",
}

func attachType(n uint32) string {
	if n < uint32(len(attachTypes)) {
		return attachTypes[n]
	}
	return "attach type " + strconv.Itoa(int(n))
}

// targets finds names of kernel functions in BTF, which is loaded when needed.
type targets struct {
	specs map[uint32]*btf.Spec // by BTF id; nil: not available
	names map[uint32]string    // of modules
}

// infoAttachBTF is attach_btf_obj_id of struct bpf_prog_info.
const infoAttachBTF = 220

// function returns the function that a link attaches a program to, by the id of a BTF or of another
// program, and the id of a type in it; "" if unknown.
func (t *targets) function(program, object, id uint32) string {
	made := attachedTo(program)
	switch {
	case made == 0:
		return "" // the program no longer exists
	case made != object: // the link has the id of the program that is extended
		return fmt.Sprintf("BPF program %d", object)
	}
	spec := t.spec(object)
	if spec == nil {
		return ""
	}
	typ, err := spec.TypeByID(btf.TypeID(id))
	if err != nil {
		return ""
	}
	if module := t.names[object]; module != "" {
		return typ.TypeName() + " [" + module + "]"
	}
	return typ.TypeName()
}

// attachedTo returns the id of the BTF with the function that a program was loaded for, 0 if there
// is none.
func attachedTo(program uint32) (object uint32) {
	fd, err := sys.FDByID(sys.ProgGetFDByID, program, 0)
	if err != nil {
		return 0
	}
	defer unix.Close(fd)
	info := make([]byte, bpf.InfoLen)
	if _, err := sys.BPFInfo(fd, info); err != nil {
		return 0
	}
	return binary.NativeEndian.Uint32(info[infoAttachBTF:])
}

// spec returns the types of the kernel or a module, by BTF id.
func (t *targets) spec(object uint32) *btf.Spec {
	if s, ok := t.specs[object]; ok {
		return s
	}
	if t.specs == nil {
		t.specs, t.names = make(map[uint32]*btf.Spec), make(map[uint32]string)
	}
	t.specs[object] = nil
	h, err := btf.NewHandleFromID(btf.ID(object))
	if err != nil {
		return nil
	}
	defer h.Close()
	info, err := h.Info()
	if err != nil || !info.IsKernel {
		return nil
	}
	var spec *btf.Spec
	if info.IsModule() {
		spec, err = btf.LoadKernelModuleSpec(info.Name)
		t.names[object] = info.Name
	} else {
		spec, err = btf.LoadKernelSpec()
	}
	if err == nil {
		t.specs[object] = spec
	}
	return t.specs[object]
}
