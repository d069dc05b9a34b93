package local

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"symbolize/ingest/addr"
	"symbolize/ingest/format/jitdump"
	"symbolize/ingest/object/perfmap"
	"symbolize/ingest/regular"
	"symbolize/ingest/sideband"
	"symbolize/store/indexer"
)

// JITPlaces are where the lists of code that processes compiled are looked for.
type JITPlaces struct {
	Dirs []string // with perf-PID.map and jit-PID.dump files
	// Here: the recording is of this host, so that what lies in its /tmp or at a recorded path may
	// be of a recorded process.
	Here bool
}

// hostMaps is where run-time compilers leave perf maps.
const hostMaps = "/tmp"

// JITFile is an opened perf map or jitdump file.
type JITFile struct {
	indexer.JITFile
	file  *os.File
	owned bool // it does not matter, or perf would take it
}

// Close closes the file.
func (f *JITFile) Close() error { return f.file.Close() }

// PerfMap returns the perf map of a process; nil if there is none. It is to be closed.
func (p *JITPlaces) PerfMap(q *sideband.JITQuery) *JITFile {
	var list []string
	for _, dir := range p.Dirs {
		list = append(list, filepath.Join(dir, perfmap.FileName(q.PID)))
	}
	shared := len(list)
	if p.Here {
		list = append(list, filepath.Join(hostMaps, perfmap.FileName(q.PID)))
	}
	return openFirst(list, shared, q)
}

// Dump returns the jitdump file of a process; nil if there is none. It is to be closed.
func (p *JITPlaces) Dump(q *sideband.JITQuery) *JITFile {
	if q.Dump == "" {
		return nil
	}
	var list []string
	for _, dir := range p.Dirs {
		list = append(list, filepath.Join(dir, filepath.Base(q.Dump)))
	}
	shared := len(list)
	if p.Here && filepath.IsAbs(q.Dump) {
		list = append(list, q.Dump)
	}
	return openFirst(list, shared, q)
}

// openFirst opens the first of the paths that is there. Those from number shared on lie where
// others may write, too.
func openFirst(list []string, shared int, q *sideband.JITQuery) *JITFile {
	for i, path := range list {
		f, err := regular.OpenNoLink(path)
		if err != nil {
			continue
		}
		fi, err := f.Stat()
		if err != nil {
			f.Close()
			continue
		}
		uid, ok := ownerOf(fi)
		return &JITFile{file: f, owned: i < shared || !ok || uid == 0 || int(uid) == os.Geteuid(),
			JITFile: indexer.JITFile{Path: path, R: f, Size: fi.Size(), PID: q.PID, Host: q.Host,
				Written: fi.ModTime().UnixNano(), Process: q.Process()}}
	}
	return nil
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

// RefuseTime is Refuse by the time alone.
func RefuseTime(f *indexer.JITFile, q *sideband.JITQuery) string {
	if begin := time.Duration(q.BeginNanos) - clockError; begin > 0 && time.Duration(f.Written) < begin {
		return fmt.Sprintf("it was written last %v before that process began",
			time.Duration(q.BeginNanos-f.Written).Round(time.Second))
	}
	return ""
}

// RefuseMap returns why a perf map cannot be of the process, by its addresses; "" if it can.
func RefuseMap(m *perfmap.Map, q *sideband.JITQuery) string {
	for _, r := range q.Memory {
		i, _ := slices.BinarySearchFunc(m.Symbols, r.Start, func(s perfmap.Symbol, at addr.Addr) int {
			if s.End > at {
				return 1
			}
			return -1
		})
		if i < len(m.Symbols) && m.Symbols[i].Start < r.End {
			return ""
		}
	}
	return "none of its functions lies in the memory of that process"
}

// RefuseDump is RefuseMap for a jitdump file.
func RefuseDump(d *jitdump.File, q *sideband.JITQuery) string {
	for i := range d.Placed {
		at := addr.Addr(d.Placed[i].Addr)
		for _, r := range q.Memory {
			if at >= r.Start && at < r.End {
				return ""
			}
		}
	}
	return "none of its functions lies in the memory of that process"
}

// DoubtTime returns the doubt about a file that is left by the time at which it was written;
// "" if there is none.
func DoubtTime(f *indexer.JITFile, q *sideband.JITQuery) string {
	if q.BeginNanos == 0 && q.FirstNanos > 0 && f.Written < q.FirstNanos-int64(clockError) {
		return "it was written last before the recording began, and when the process did is not known"
	}
	return ""
}
