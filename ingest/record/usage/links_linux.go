package usage

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"

	"github.com/cilium/ebpf/link"

	"symbolize/ingest/format/bpf"
	"symbolize/ingest/format/perfdata"
)

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

// linkTypes are the names of enum bpf_link_type, for those that have no more to them.
var linkTypes = map[link.Type]string{
	link.RawTracepointType: "raw_tracepoint", link.TracingType: "tracing",
	link.CgroupType: "cgroup", link.IterType: "iter", link.NetNsType: "netns",
	link.XDPType: "xdp", link.PerfEventType: "perf_event", link.KprobeMultiType: "kprobe_multi",
	link.StructOpsType: "struct_ops", link.NetfilterType: "netfilter", link.TCXType: "tcx",
	link.UprobeMultiType: "uprobe_multi", link.NetkitType: "netkit",
}

// describe returns the kind and the target of a link.
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

// at returns a place as text; address is for places without a name.
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
