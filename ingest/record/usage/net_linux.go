package usage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"syscall"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// iface is a network interface of this network namespace.
type iface struct {
	index uint32
	name  string
	xdp   []uint32 // programs
}

func (f *iface) hasXDP(program uint32) bool { return slices.Contains(f.xdp, program) }

// queries returns a function that reports whether a program is attached to an interface.
func queries(kind uint32) func(*iface, uint32) bool {
	return func(f *iface, program uint32) bool {
		result, err := link.QueryPrograms(link.QueryOptions{Target: int(f.index),
			Attach: ebpf.AttachType(kind)})
		return err == nil && slices.ContainsFunc(result.Programs,
			func(p link.AttachedProgram) bool { return uint32(p.ID) == program })
	}
}

// interfaceOf returns the name of the interface of a link. Numbers are those of the link's
// network namespace, which may be another one: the name counts if the program is there.
func (s *scan) interfaceOf(index, program uint32, has func(*iface, uint32) bool) string {
	for i := range s.ifaces {
		if f := &s.ifaces[i]; f.index == index && has(f, program) {
			return f.name
		}
	}
	if index == 0 {
		return "" // the interface is gone
	}
	return "interface " + strconv.Itoa(int(index)) + " of another network namespace"
}

// maxInterfaces bounds the interfaces that are asked for filters.
const maxInterfaces = 1 << 12

// Attributes of rtnetlink.
const (
	tcKind    = 1  // TCA_KIND
	tcOptions = 2  // TCA_OPTIONS
	tcBPFID   = 11 // TCA_BPF_ID
	xdpFirst  = 4  // IFLA_XDP_PROG_ID, and those of driver, skb and hardware
	xdpLast   = 7
	nested    = 0x3fff // without NLA_F_NESTED and NLA_F_NET_BYTEORDER
	attrHead  = 4      // u16 length, u16 type
)

// attributes calls visit with the attributes in b, up to one that is cut off.
func attributes(b []byte, visit func(typ int, value []byte)) {
	order := binary.NativeEndian
	for len(b) >= attrHead {
		n := int(order.Uint16(b))
		if n < attrHead || n > len(b) {
			return
		}
		visit(int(order.Uint16(b[2:])&nested), b[attrHead:n])
		b = b[min(len(b), (n+attrHead-1)&^(attrHead-1)):]
	}
}

// listInterfaces lists the interfaces with their XDP programs.
func (s *scan) listInterfaces() {
	messages, err := ask(unix.RTM_GETLINK, make([]byte, unix.SizeofIfInfomsg))
	if err != nil {
		s.fail(fmt.Errorf("network interfaces: %w", err))
	}
	for _, m := range messages {
		if m.Header.Type == unix.RTM_NEWLINK && len(m.Data) >= unix.SizeofIfInfomsg &&
			len(s.ifaces) < maxInterfaces {
			s.ifaces = append(s.ifaces, parseInterface(m.Data))
		}
	}
}

func parseInterface(data []byte) iface {
	f := iface{index: binary.NativeEndian.Uint32(data[4:])}
	attributes(data[unix.SizeofIfInfomsg:], func(typ int, value []byte) {
		switch typ {
		case unix.IFLA_IFNAME:
			f.name = unix.ByteSliceToString(value)
		case unix.IFLA_XDP:
			attributes(value, func(typ int, value []byte) {
				if typ >= xdpFirst && typ <= xdpLast && len(value) == 4 {
					f.xdp = append(f.xdp, binary.NativeEndian.Uint32(value))
				}
			})
		}
	})
	return f
}

// filterParents are where filters of an interface hang: at clsact, and at the root.
var filterParents = []struct {
	handle uint32
	how    string
}{{0xfffffff2, "tc_ingress"}, {0xfffffff3, "tc_egress"}, {0, "tc"}}

// addInterfaces adds XDP programs and filters.
func (s *scan) addInterfaces() {
	for i := range s.ifaces {
		f := &s.ifaces[i]
		for _, program := range f.xdp {
			s.use(program).add("xdp", f.name)
		}
		for _, parent := range filterParents {
			for _, program := range filters(f.index, parent.handle) {
				s.use(program).add(parent.how, f.name)
			}
		}
	}
}

// filters returns the programs of the BPF filters at a place of an interface. Without such a
// place the kernel answers with an error, or with none.
func filters(index, parent uint32) (programs []uint32) {
	const size = 20 // of struct tcmsg: u8 family, pads, s32 ifindex, u32 handle, parent, info
	request := make([]byte, size)
	binary.NativeEndian.PutUint32(request[4:], index)
	binary.NativeEndian.PutUint32(request[12:], parent)
	messages, _ := ask(unix.RTM_GETTFILTER, request)
	for _, m := range messages {
		if m.Header.Type != unix.RTM_NEWTFILTER || len(m.Data) < size {
			continue
		}
		kind := ""
		attributes(m.Data[size:], func(typ int, value []byte) {
			switch {
			case typ == tcKind:
				kind = unix.ByteSliceToString(value)
			case typ == tcOptions && kind == "bpf":
				attributes(value, func(typ int, value []byte) {
					if typ == tcBPFID && len(value) == 4 {
						programs = append(programs, binary.NativeEndian.Uint32(value))
					}
				})
			}
		})
	}
	return programs
}

// Bounds on the answer to a request.
const (
	maxAnswer  = 16 << 20 // bytes
	answerWait = 2        // seconds
)

// ask requests a dump of rtnetlink and returns its messages.
func ask(typ uint16, body []byte) ([]syscall.NetlinkMessage, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: answerWait})
	request := make([]byte, unix.SizeofNlMsghdr, unix.SizeofNlMsghdr+len(body))
	order := binary.NativeEndian
	order.PutUint32(request, uint32(cap(request)))
	order.PutUint16(request[4:], typ)
	order.PutUint16(request[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	to := &unix.SockaddrNetlink{Family: unix.AF_NETLINK}
	if err := unix.Sendto(fd, append(request, body...), 0, to); err != nil {
		return nil, err
	}
	var list []syscall.NetlinkMessage
	for total := 0; total < maxAnswer; {
		room := make([]byte, 64<<10)
		n, _, err := unix.Recvfrom(fd, room, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return list, err
		}
		total += n
		messages, err := syscall.ParseNetlinkMessage(room[:n])
		if err != nil {
			return list, err
		}
		for _, m := range messages {
			switch m.Header.Type {
			case unix.NLMSG_DONE:
				return list, nil
			case unix.NLMSG_ERROR:
				return list, answerError(m.Data)
			}
			list = append(list, m)
		}
	}
	return list, nil
}

// answerError returns the error of a message of type NLMSG_ERROR.
func answerError(data []byte) error {
	if len(data) < 4 {
		return errors.New("an error without a number")
	}
	if code := int32(binary.NativeEndian.Uint32(data)); code != 0 {
		return unix.Errno(-code)
	}
	return nil
}
