package usage

import (
	"bufio"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// mount is a line of /proc/self/mountinfo.
type mount struct{ path, kind string }

// maxMounts bounds the file systems that are looked at.
const maxMounts = 64

// mounts returns the file systems in which programs can be found.
func (s *scan) mounts() (list []mount) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		s.fail(err)
		return nil
	}
	defer f.Close()
	seen := make(map[string]bool) // by device: one may be mounted many times
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

// unescape replaces "\040" and the like, octal numbers of bytes.
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

// maxGroups bounds the control groups that are asked.
const maxGroups = 1 << 14

// listGroups lists the control groups of version 2.
func (s *scan) listGroups(mounts []mount) {
	for _, m := range mounts {
		if m.kind != "cgroup2" {
			continue
		}
		s.fail(filepath.WalkDir(m.path, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return nil // gone, or a file
			}
			if len(s.groups) >= maxGroups {
				s.fail(fmt.Errorf("%s has more than the %d control groups that are asked for BPF "+
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

// groupPath returns the directory of a control group by its number.
func (s *scan) groupPath(id uint64) string {
	if path, ok := s.paths[id]; ok {
		return path
	}
	return "cgroup " + strconv.FormatUint(id, 10)
}

// addGroups asks each control group for programs of each kind that it can have.
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
			continue // gone
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
			first, kinds = false, known // this kernel does not know the others
		}
	}
}
