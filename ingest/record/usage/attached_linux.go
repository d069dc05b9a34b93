package usage

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"symbolize/ingest/format/bpf"
	"symbolize/ingest/record/sys"
)

// mount is a line of /proc/self/mountinfo.
type mount struct{ path, kind string }

// maxMounts limits the file systems that are searched.
const maxMounts = 64

// mounts returns the file systems that can refer to programs.
func (s *scan) mounts() (list []mount) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		s.fail(err)
		return nil
	}
	defer f.Close()
	seen := make(map[string]bool) // by device, which can be mounted many times
	for lines := bufio.NewScanner(f); lines.Scan() && len(list) < maxMounts; {
		m, device, ok := parseMount(lines.Text())
		if ok && !seen[device] {
			seen[device] = true
			list = append(list, m)
		}
	}
	return list
}

// parseMount parses a line as "36 35 98:0 /root /mnt2 rw,noatime master:1 - bpf bpf rw".
func parseMount(line string) (m mount, device string, ok bool) {
	before, after, ok := strings.Cut(line, " - ")
	f := strings.Fields(before)
	kind, _, _ := strings.Cut(after, " ")
	if !ok || len(f) < 5 || kind != "cgroup2" && kind != "bpf" || f[3] != "/" {
		return m, "", false
	}
	return mount{unescape(f[4]), kind}, f[2], true
}

// unescape replaces octal escapes of bytes, like "\040".
func unescape(path string) string {
	const digits = 3
	var b strings.Builder
	for i := 0; i < len(path); i++ {
		if path[i] == '\\' && i+digits < len(path) {
			if c, err := strconv.ParseUint(path[i+1:i+1+digits], 8, 8); err == nil {
				b.WriteByte(byte(c))
				i += digits
				continue
			}
		}
		b.WriteByte(path[i])
	}
	return b.String()
}

// group is a control group.
type group struct {
	path string
	id   uint64
}

// maxGroups limits the control groups that are queried.
const maxGroups = 1 << 14

// listGroups lists the control groups of cgroup v2.
func (s *scan) listGroups(mounts []mount) {
	for _, m := range mounts {
		if m.kind != "cgroup2" {
			continue
		}
		s.fail(filepath.WalkDir(m.path, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return nil // removed, or a file
			}
			if len(s.groups) >= maxGroups {
				s.fail(fmt.Errorf("%s has more than the %d control groups that are queried for BPF "+
					"programs", m.path, maxGroups))
				return fs.SkipAll
			}
			var st unix.Stat_t
			if unix.Stat(path, &st) != nil {
				return nil
			}
			s.groups = append(s.groups, group{path, st.Ino})
			s.paths[st.Ino] = path
			return nil
		}))
	}
}

// groupPath returns the directory of a control group by its ID.
func (s *scan) groupPath(id uint64) string {
	if path, ok := s.paths[id]; ok {
		return path
	}
	return "cgroup " + strconv.FormatUint(id, 10)
}

// addGroups queries each control group for programs of each kind.
func (s *scan) addGroups() {
	var kinds []uint32
	for i, name := range attachTypes {
		if strings.HasPrefix(name, "cgroup_") || name == "lsm_cgroup" {
			kinds = append(kinds, uint32(i))
		}
	}
	first := true
	for _, g := range s.groups {
		dir, err := os.Open(g.path)
		if err != nil {
			continue // removed
		}
		known := kinds[:0:0]
		for _, kind := range kinds {
			result, err := link.QueryPrograms(link.QueryOptions{Target: int(dir.Fd()),
				Attach: ebpf.AttachType(kind)})
			if err != nil {
				continue
			}
			known = append(known, kind)
			for _, p := range result.Programs {
				s.use(uint32(p.ID)).add(attachType(kind), g.path)
			}
		}
		dir.Close()
		if first {
			first, kinds = false, known // this kernel does not know the other kinds
		}
	}
}

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

// interfaceOf returns the name of a link's interface. The index is of the link's network namespace,
// which may be another one: the name is used if the interface has the program.
func (s *scan) interfaceOf(index, program uint32, has func(*iface, uint32) bool) string {
	for i := range s.ifaces {
		if f := &s.ifaces[i]; f.index == index && has(f, program) {
			return f.name
		}
	}
	if index == 0 {
		return "" // the interface no longer exists
	}
	return "interface " + strconv.Itoa(int(index)) + " of another network namespace"
}

// maxInterfaces limits the interfaces that are queried for filters.
const maxInterfaces = 1 << 12

// Attributes of rtnetlink.
const (
	tcKind    = 1  // TCA_KIND
	tcOptions = 2  // TCA_OPTIONS
	tcBPFID   = 11 // TCA_BPF_ID
	xdpFirst  = 4  // IFLA_XDP_PROG_ID; those for driver, skb and hardware follow
	xdpLast   = 7
	nested    = 0x3fff // without NLA_F_NESTED and NLA_F_NET_BYTEORDER
	attrHead  = 4      // u16 length, u16 type
)

// attributes calls visit with the attributes in b, up to a truncated one.
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
	messages, err := requestDump(unix.RTM_GETLINK, make([]byte, unix.SizeofIfInfomsg))
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

// filterParents are the parents of an interface's filters: clsact and the root.
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

// filters returns the programs of the BPF filters at a parent of an interface. If the parent does
// not exist the kernel returns an error or nothing.
func filters(index, parent uint32) (programs []uint32) {
	const size = 20 // of struct tcmsg: u8 family, pads, s32 ifindex, u32 handle, parent, info
	request := make([]byte, size)
	binary.NativeEndian.PutUint32(request[4:], index)
	binary.NativeEndian.PutUint32(request[12:], parent)
	messages, _ := requestDump(unix.RTM_GETTFILTER, request)
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

// Limits of an answer.
const (
	maxAnswer  = 16 << 20 // bytes
	answerWait = 2        // seconds
)

// requestDump requests a dump from rtnetlink and returns its messages.
func requestDump(typ uint16, body []byte) ([]syscall.NetlinkMessage, error) {
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
		return errors.New("error message without an error number")
	}
	if code := int32(binary.NativeEndian.Uint32(data)); code != 0 {
		return unix.Errno(-code)
	}
	return nil
}

// addHolders searches the descriptors of all processes.
func (s *scan) addHolders() {
	dir, err := os.Open(s.opts.Proc)
	if err != nil {
		s.fail(err)
		return
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	s.fail(err)
	for _, name := range names {
		if pid, err := strconv.ParseInt(name, 10, 32); err == nil && pid > 0 {
			s.addProcess(int32(pid), filepath.Join(s.opts.Proc, name))
		}
	}
}

func (s *scan) addProcess(pid int32, proc string) {
	dir, err := os.Open(proc + "/fd")
	if err != nil {
		return // ended or not permitted
	}
	defer dir.Close()
	fds, _ := dir.Readdirnames(-1)
	comm := ""
	for _, fd := range fds {
		target, err := os.Readlink(proc + "/fd/" + fd)
		if err != nil {
			continue
		}
		by, program := "", uint32(0)
		switch target {
		case "anon_inode:bpf-prog":
			by, program = bpf.ByProgram, programOf(proc+"/fdinfo/"+fd)
		case "anon_inode:bpf_link", "anon_inode:bpf-link":
			by, program = bpf.ByLink, programOf(proc+"/fdinfo/"+fd)
		case "anon_inode:[perf_event]":
			by, program = bpf.ByPerfEvent, s.perfEventOf(pid, fd)
		}
		if program == 0 {
			continue
		}
		if comm == "" {
			b, _ := os.ReadFile(proc + "/comm")
			comm = strings.TrimSuffix(string(b), "\n")
		}
		s.use(program).addHolder(bpf.Holder{PID: pid, Comm: comm, By: by})
	}
}

// programOf returns the id of the program in a fdinfo file, 0 if there is none.
func programOf(path string) uint32 {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if number, ok := strings.CutPrefix(line, "prog_id:"); ok {
			id, _ := strconv.ParseUint(strings.TrimSpace(number), 10, 32)
			return uint32(id)
		}
	}
	return 0
}

// fdQueryAttr is union bpf_attr of BPF_TASK_FD_QUERY.
type fdQueryAttr struct {
	pid, fd, flags, size uint32
	buf                  uint64
	program, kind        uint32
	offset, address      uint64
}

// fdKinds are the names of enum bpf_task_fd_type, by number.
var fdKinds = [...]string{"raw_tracepoint", "tracepoint", "kprobe", "kretprobe", "uprobe",
	"uretprobe"}

// perfEventOf returns the program that a process's perf event runs, 0 if none, and adds its
// attachment.
func (s *scan) perfEventOf(pid int32, fd string) uint32 {
	number, err := strconv.ParseUint(fd, 10, 32)
	if err != nil || s.opts.OtherPIDs {
		return 0
	}
	const limit = 4096 // bytes of a path
	name := make([]byte, limit)
	attr := &fdQueryAttr{pid: uint32(pid), fd: uint32(number), size: limit, buf: sys.Address(name)}
	if _, err := sys.BPF(sys.TaskFDQuery, unsafe.Pointer(attr), unsafe.Sizeof(*attr)); err != nil {
		return 0 // no program, or a kind that the kernel does not report
	}
	if attr.program != 0 && attr.kind < uint32(len(fdKinds)) {
		name, _, _ = bytes.Cut(name, []byte{0})
		s.use(attr.program).add(fdKinds[attr.kind], at(string(name), attr.offset, attr.address))
	}
	return attr.program
}

// objGetAttr is union bpf_attr of BPF_OBJ_GET.
type objGetAttr struct {
	path      uint64
	fd, flags uint32
}

// maxPins limits the files that are opened.
const maxPins = 1 << 14

// addPins opens the pinned objects in file systems of type bpf.
func (s *scan) addPins(mounts []mount) {
	n := 0
	for _, m := range mounts {
		if m.kind != "bpf" {
			continue
		}
		s.fail(filepath.WalkDir(m.path, func(path string, d os.DirEntry, err error) error {
			if err != nil || d.Type()&os.ModeType != 0 {
				return nil // removed, or a directory
			}
			if n++; n > maxPins {
				return filepath.SkipAll
			}
			if program := pinned(path); program != 0 {
				u := s.use(program)
				u.Pins = append(u.Pins, path)
			}
			return nil
		}))
	}
}

// pinned returns the program of a file, itself or by a link; 0 for maps.
func pinned(path string) uint32 {
	name := append([]byte(path), 0)
	attr := &objGetAttr{path: sys.Address(name)}
	fd, err := sys.BPF(sys.ObjGet, unsafe.Pointer(attr), unsafe.Sizeof(*attr))
	if err != nil {
		return 0
	}
	defer unix.Close(fd)
	return programOf("/proc/self/fdinfo/" + strconv.Itoa(fd))
}
