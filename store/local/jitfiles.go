package local

import (
	"bufio"
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"symbolize/ingest/addr"
	"symbolize/ingest/files"
	"symbolize/ingest/format/jitdump"
	"symbolize/ingest/object/symlist"
	"symbolize/ingest/procmaps"
	"symbolize/ingest/sideband"
	"symbolize/store/indexer"
)

// JITPlaces are where the lists of code that processes compiled are looked for.
type JITPlaces struct {
	Dirs []string // with perf-PID.map and jit-PID.dump files
	// Here: the recording is of this host, so that files in its /tmp or at a recorded path may
	// be of a recorded process. One that still runs may be in a container, with a /tmp and a number
	// of its own.
	Here bool

	proc string // in place of /proc; "" but in tests
}

// hostMaps is where run-time compilers leave perf maps.
const hostMaps = "/tmp"

// JITFile is an opened perf map or jitdump file.
type JITFile struct {
	indexer.JITFile
	file  *os.File
	owned bool // it does not matter, or perf would accept it
}

// Close closes the file.
func (f *JITFile) Close() error { return f.file.Close() }

// jitPath is where a file may be.
type jitPath struct {
	path    string
	shared  bool   // others may write there, too
	process string // directory in /proc of the process with this root; "" for none
}

// PerfMap returns the perf map of a process; nil if there is none. The caller closes it.
func (p *JITPlaces) PerfMap(q *sideband.JITQuery) *JITFile {
	name := symlist.PerfMapName(q.PID)
	list := p.inDirs(name)
	if p.Here {
		at := filepath.Join(hostMaps, name)
		if dir, inner := p.running(q); dir != "" {
			list = appendInRoot(list, dir, filepath.Join(hostMaps, symlist.PerfMapName(inner)), at)
		}
		list = append(list, jitPath{path: at, shared: true})
	}
	return openFirst(list, q)
}

// Dump returns the jitdump file of a process; nil if there is none. The caller closes it.
func (p *JITPlaces) Dump(q *sideband.JITQuery) *JITFile {
	if q.Dump == "" {
		return nil
	}
	list := p.inDirs(filepath.Base(q.Dump))
	if p.Here && filepath.IsAbs(q.Dump) {
		if dir, _ := p.running(q); dir != "" {
			list = appendInRoot(list, dir, q.Dump, q.Dump)
		}
		list = append(list, jitPath{path: q.Dump, shared: true})
	}
	return openFirst(list, q)
}

func (p *JITPlaces) inDirs(name string) (list []jitPath) {
	for _, dir := range p.Dirs {
		list = append(list, jitPath{path: filepath.Join(dir, name)})
	}
	return list
}

// running returns the directory in /proc of a recorded process that still runs the recorded
// program, as the random place of its vdso proves, and the number that it has in its own
// namespace; "" if it does not.
func (p *JITPlaces) running(q *sideband.JITQuery) (dir string, inner int32) {
	if q.VDSO == 0 {
		return "", 0
	}
	dir = filepath.Join(cmp.Or(p.proc, "/proc"), strconv.Itoa(int(q.PID)))
	maps, err := files.Open(filepath.Join(dir, "maps"))
	if err != nil {
		return "", 0
	}
	defer maps.Close()
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		m, ok := procmaps.ParseCode(lines.Text())
		if !ok || m.File.Path != procmaps.VDSO || addr.PC(m.Start) != q.VDSO {
			continue
		}
		status, err := files.ReadHead(filepath.Join(dir, "status"), 64<<10)
		if err != nil {
			return "", 0
		}
		return dir, procmaps.InnerPID(string(status), q.PID)
	}
	return "", 0
}

// appendInRoot appends a file in the root of a process, unless it is the one at a path of this
// host.
func appendInRoot(list []jitPath, dir, path, host string) []jitPath {
	inside := filepath.Join(dir, "root", path)
	fi, err := os.Lstat(inside)
	if err != nil {
		return list
	}
	if here, err := os.Lstat(host); err == nil && os.SameFile(fi, here) {
		return list
	}
	return append(list, jitPath{path: inside, shared: true, process: dir})
}

// openFirst opens the first of the paths that is there.
func openFirst(list []jitPath, q *sideband.JITQuery) *JITFile {
	for _, at := range list {
		f, err := files.OpenNoLink(at.path)
		if err != nil {
			continue
		}
		fi, err := f.Stat()
		if err != nil {
			f.Close()
			continue
		}
		return &JITFile{file: f, owned: !at.shared || at.trusts(fi),
			JITFile: indexer.JITFile{Path: at.path, R: f, Size: fi.Size(), PID: q.PID, Host: q.Host,
				Written: fi.ModTime().UnixNano(), Process: q.Process()}}
	}
	return nil
}

// trusts reports whether the owner of a file is trusted by perf, or is the user of the file's
// process.
func (at *jitPath) trusts(fi fs.FileInfo) bool {
	uid, ok := files.OwnerOf(fi)
	if !ok || uid == 0 || int(uid) == os.Geteuid() {
		return true
	}
	if at.process == "" {
		return false
	}
	of, err := os.Stat(at.process)
	if err != nil {
		return false
	}
	user, ok := files.OwnerOf(of)
	return ok && user == uid
}

// clockError is how far the times of a recording's beginning and of a file may be off: the
// wall clock of most recordings is only known by the time at which perf closed them.
const clockError = 5 * time.Second

// Refuse returns why a file cannot be of the process that a query is of, by its owner and time;
// "" if it can.
func (f *JITFile) Refuse(q *sideband.JITQuery) string {
	if !f.owned {
		return "it is owned neither by root nor by the user who asks"
	}
	return RefuseTime(&f.JITFile, q)
}

// RefuseTime is Refuse only by the time.
func RefuseTime(f *indexer.JITFile, q *sideband.JITQuery) string {
	if q.BeginNanos != 0 && f.Written < q.EarliestNanos-int64(clockError) {
		return writtenBefore(f, q)
	}
	return ""
}

// writtenBefore is the text of how long before its process a file was written.
func writtenBefore(f *indexer.JITFile, q *sideband.JITQuery) string {
	return fmt.Sprintf("it was written last %v before that process began",
		time.Duration(q.BeginNanos-f.Written).Round(time.Second))
}

// Bundled returns a file in a bundle.
func Bundled(f *sideband.BundledFile, q *sideband.JITQuery) *indexer.JITFile {
	return &indexer.JITFile{Path: f.Name, R: f.R, Size: f.Size, PID: q.PID, Host: q.Host,
		Written: f.Written, Process: q.Process()}
}

// RefuseBundled returns why a file in a bundle cannot be of the process that a query is of, by
// the lists that the bundle has of its process; "" if it can.
func RefuseBundled(f *sideband.BundledFile, q *sideband.JITQuery) string {
	switch {
	case f.VDSO != 0 && q.VDSO != 0 && f.VDSO != q.VDSO:
		return "the process of that number in the bundle ran another program, or is another one"
	case f.Began != 0 && q.EndNanos != 0 && f.Began > q.EndNanos+int64(clockError):
		return "it belongs to a later process with that number"
	case q.BeginNanos != 0 && f.Written < q.EarliestNanos-int64(clockError):
		return "it belongs to an earlier process with that number"
	}
	return ""
}

// RefuseMap returns why a perf map cannot be of the process, by its addresses; "" if it can.
func RefuseMap(m *symlist.PerfMap, q *sideband.JITQuery) string {
	if len(InRanges(m, q.Memory)) > 0 {
		return ""
	}
	for i := range q.Files {
		if len(InRanges(m, []addr.Range{q.Files[i].Range})) > 0 {
			return ""
		}
	}
	return outsideMemory
}

const outsideMemory = "none of its functions lies in the memory of that process"

// InRanges returns the parts of ranges that a perf map has functions for.
func InRanges(m *symlist.PerfMap, ranges []addr.Range) (list []addr.Range) {
	for _, r := range ranges {
		i, _ := slices.BinarySearchFunc(m.Symbols, r.Start, func(s symlist.PerfRange, at addr.Addr) int {
			if s.End > at {
				return 1
			}
			return -1
		})
		for ; i < len(m.Symbols) && m.Symbols[i].Start < r.End; i++ {
			list = append(list, addr.Range{Start: max(m.Symbols[i].Start, r.Start), End: min(m.Symbols[i].End, r.End)})
		}
	}
	return list
}

// RefuseDump is RefuseMap for a jitdump file.
func RefuseDump(d *jitdump.File, q *sideband.JITQuery) string {
	for i := range d.Placed {
		at := addr.Addr(d.Placed[i].Addr)
		if q.Has(addr.Range{Start: at, End: at + 1}) {
			return ""
		}
	}
	return outsideMemory
}

// DoubtTime describes the doubt that the modification time of a file raises; "" if there is none.
func DoubtTime(f *indexer.JITFile, q *sideband.JITQuery) string {
	if q.BeginNanos != 0 && f.Written < q.BeginNanos-int64(clockError) {
		return writtenBefore(f, q) + ", or the recorder took that long to close the recording"
	}
	if q.BeginNanos == 0 && q.FirstNanos > 0 && f.Written < q.FirstNanos-int64(clockError) {
		return "it was written last before the recording began, and when the process did is not known"
	}
	return ""
}
