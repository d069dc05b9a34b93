package bundle

import (
	"fmt"
	"path"
	"strconv"
	"strings"
)

// Bounds on reading a bundle, independent of its declared sizes. They are far above the sizes that
// recorders write, and keep a hostile file of a few KB from filling memory or disk.
const (
	maxManifest = 16 << 20 // bytes of manifest.json
	maxModules  = 64 << 20 // of kernel/modules.json
	maxCompiled = 64 << 10 // of proc/PID/compiled.json
	maxEntries  = 1 << 18  // three per process, and the dumps
	maxTotal    = 8 << 30  // bytes of the unpacked tar; see also files.MaxUnpacked
	maxWindow   = 64 << 20 // of zstd, allocated: enough for `zstd -19 --long=26`
	maxName     = 240      // bytes of an entry's name
	maxWarnings = 100      // of one bundle

	// maxMerged bounds the entries made from an unfinished bundle, so that the manifest stays
	// below maxManifest.
	maxMerged  = 1 << 16
	maxMissing = 10_000 // programs without code, of an unfinished bundle
)

// Invalid addresses in user stacks, with the reason; see "Stacks" in the package comment.
const (
	OutsideAddress   = 0         // in no executable mapping of the process
	GoneAddress      = 1<<56 - 1 // the process ended before its mappings were read
	AmbiguousAddress = 1<<56 - 2 // mappings changed: the address had two meanings
	UnreadAddress    = 1<<56 - 3 // the mappings of the process could not be read
)

// UserTimeSpan is the maximum time between user_time and the recording of the stack, ns; see
// "Stacks" in the package comment.
const UserTimeSpan = 1 << 22

// UnknownTime is the time of kernel stacks with addresses that may have had several meanings; see
// "Stacks" in the package comment.
const UnknownTime = 1<<64 - 1

// Names of entries.
const (
	ManifestName = "manifest.json"
	PerfDataName = "perf.data"
	KallsymsName = "kernel/kallsyms"
	NotesName    = "kernel/notes"
	ModulesName  = "kernel/modules.json"
	BPFStatsName = "bpf/programs.json"

	kernelDir  = "kernel/"
	vdsoDir    = "vdso/"
	vdsoExt    = ".so"
	procDir    = "proc/"
	dumpsDir   = "dumps/"
	seriesDir  = dumpsDir + "maps/"
	mapsName   = "/maps"
	perfMap    = "/perf.map"
	jitDump    = "/jit.dump"
	compiled   = "/compiled.json"
	programDir = "/program/"
	decimal    = 10
	pidDigits  = 32 // bits
)

// VDSOName returns the name of the entry with the vdso image of a build ID in hexadecimal.
func VDSOName(buildID string) string { return vdsoDir + buildID + vdsoExt }

// MapsName returns the name of the entry with a process's /proc/PID/maps.
func MapsName(pid int32) string { return procEntry(pid, mapsName) }

// ProgramMapsName returns the name of the entry with the mappings of a program of a process;
// programs are numbered from 0, for which it is MapsName.
func ProgramMapsName(pid int32, program uint32) string {
	if program == 0 {
		return MapsName(pid)
	}
	return procEntry(pid, programDir+strconv.FormatUint(uint64(program), decimal)+mapsName)
}

// PerfMapName returns the name of the entry with a process's perf-PID.map.
func PerfMapName(pid int32) string { return procEntry(pid, perfMap) }

// JITDumpName returns the name of the entry with a process's jitdump file.
func JITDumpName(pid int32) string { return procEntry(pid, jitDump) }

// CompiledName returns the name of the entry that describes both.
func CompiledName(pid int32) string { return procEntry(pid, compiled) }

func procEntry(pid int32, file string) string {
	return procDir + strconv.FormatInt(int64(pid), decimal) + file
}

// DumpName returns the name of the entry with a raw dump.
func DumpName(name string) string { return dumpsDir + name }

// SeriesName returns the name of the entry with the n-th dump, counted from 1, of a map that is
// dumped at intervals. Special characters become '_'.
func SeriesName(mapName string, id uint32, n int) string {
	clean := func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '.':
			return r
		}
		return '_'
	}
	return fmt.Sprintf("%s%d-%s/%06d", seriesDir, id, strings.Map(clean, mapName), n)
}

// CutSeries returns the map, as "ID-NAME", and the number of the dump from the name of an entry.
func CutSeries(entry string) (series string, n int, ok bool) {
	rest, ok := strings.CutPrefix(entry, seriesDir)
	if !ok {
		return "", 0, false
	}
	series, number, ok := strings.Cut(rest, "/")
	n, err := strconv.Atoi(number)
	return series, n, ok && err == nil && n > 0 && series != ""
}

// CutVDSO returns the build ID in hexadecimal from the name of an entry with a vdso image.
func CutVDSO(entry string) (buildID string, ok bool) {
	s, ok := strings.CutPrefix(entry, vdsoDir)
	if !ok {
		return "", false
	}
	return strings.CutSuffix(s, vdsoExt)
}

// CutDump returns the name of a dump from the name of its entry.
func CutDump(entry string) (name string, ok bool) { return strings.CutPrefix(entry, dumpsDir) }

// MapsPID returns the process from the name of an entry with /proc/PID/maps.
func MapsPID(entry string) (pid int32, ok bool) { return cutPID(entry, mapsName) }

// MapsProgram returns the process and program from the name of an entry with mappings.
func MapsProgram(entry string) (pid int32, program uint32, ok bool) {
	if pid, ok = MapsPID(entry); ok {
		return pid, 0, true
	}
	s, ok := strings.CutPrefix(entry, procDir)
	process, rest, ok2 := strings.Cut(s, programDir)
	number, ok3 := strings.CutSuffix(rest, mapsName)
	n, err := strconv.ParseUint(number, decimal, pidDigits)
	if !ok || !ok2 || !ok3 || err != nil || n == 0 {
		return 0, 0, false
	}
	pid, ok = cutPID(procDir+process, "")
	return pid, uint32(n), ok
}

// PerfMapPID returns the process from the name of an entry with a perf-PID.map.
func PerfMapPID(entry string) (pid int32, ok bool) { return cutPID(entry, perfMap) }

// JITDumpPID returns the process from the name of an entry with a jitdump file.
func JITDumpPID(entry string) (pid int32, ok bool) { return cutPID(entry, jitDump) }

func cutPID(entry, file string) (int32, bool) {
	s, ok := strings.CutPrefix(entry, procDir)
	if s, ok2 := strings.CutSuffix(s, file); ok && ok2 {
		pid, err := strconv.ParseInt(s, decimal, pidDigits)
		return int32(pid), err == nil && pid > 0
	}
	return 0, false
}

// validName reports whether an entry may have this name: a clean relative path of printable bytes
// without "..".
func validName(name string) bool {
	if name == "" || len(name) > maxName || name == "." || name == ".." ||
		strings.HasPrefix(name, "/") || strings.HasPrefix(name, "../") ||
		path.Clean(name) != name {
		return false
	}
	for i := range len(name) {
		if name[i] < ' ' || name[i] == 0x7f || name[i] == '\\' {
			return false
		}
	}
	return true
}

// entryOrder compares names in the order of a written bundle.
func entryOrder(a, b string) int {
	switch {
	case a == b:
		return 0
	case a == PerfDataName:
		return -1
	case b == PerfDataName:
		return 1
	}
	return strings.Compare(a, b)
}
