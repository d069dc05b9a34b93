package usage

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"symbolize/ingest/format/bpf"
	"symbolize/ingest/record/sys"
)

// addHolders looks through the descriptors of all processes.
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
		return // ended, or not ours to see
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
		s.use(program).hold(bpf.Holder{PID: pid, Comm: comm, By: by})
	}
}

// programOf returns the program in a file of fdinfo, 0 if there is none.
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

// perfEventOf returns the program that a process's perf event runs, 0 if it runs none, and adds
// where it is attached.
func (s *scan) perfEventOf(pid int32, fd string) uint32 {
	number, err := strconv.ParseUint(fd, 10, 32)
	if err != nil || s.opts.OtherPIDs {
		return 0
	}
	const most = 4096 // bytes of a path
	name := make([]byte, most)
	attr := &fdQueryAttr{pid: uint32(pid), fd: uint32(number), size: most, buf: sys.Address(name)}
	if _, err := sys.BPF(sys.TaskFDQuery, unsafe.Pointer(attr), unsafe.Sizeof(*attr)); err != nil {
		return 0 // it runs none, or one of a kind that the kernel does not report
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

// maxPins bounds the files that are opened.
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
				return nil // gone, or a directory
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

// pinned returns the program that a file holds, itself or by a link; 0 for maps.
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
