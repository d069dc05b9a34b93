// Package procmaps reads the code mappings in /proc/PID/maps (proc(5)) and the modules in
// /proc/modules, and has the address ranges where no process has any code.
package procmaps

import (
	"bytes"
	"fmt"
	"iter"
	"strconv"
	"strings"
)

const (
	// Lowest is the lowest address at which anything can be mapped (vm.mmap_min_addr).
	Lowest = 4096
	// Vsyscall is the address of the vsyscall page of x86-64, in all processes.
	Vsyscall     = 0xffffffffff600000
	vsyscallSize = 4096
	// VDSO is the path that the mapping of the vdso has.
	VDSO = "[vdso]"
)

// InVsyscall reports whether an address is in the vsyscall page.
func InVsyscall(pc uint64) bool { return pc-Vsyscall < vsyscallSize }

// File identifies a mapped file; inode zero is no file.
type File struct {
	Major, Minor uint32 // of its device
	Inode        uint64
	Path         string // or a name in brackets, or ""; " (deleted)" after that of a deleted file
}

// IsDeleted reports whether the file had been deleted, or never had a name, as memfds.
func (f *File) IsDeleted() bool { return strings.HasSuffix(f.Path, " (deleted)") }

// Mapping is a mapping of code: addresses from Start up to End; the first is at Offset in
// the file, in bytes.
type Mapping struct {
	Start, End, Offset uint64
	File               File
}

// Line returns a line that ParseCode reads as this mapping. As the kernel does it writes a newline
// in the path as \012.
func (m *Mapping) Line() string {
	return fmt.Sprintf("%08x-%08x r-xp %08x %02x:%02x %d %s\n", m.Start, m.End, m.Offset,
		m.File.Major, m.File.Minor, m.File.Inode, strings.ReplaceAll(m.File.Path, "\n", `\012`))
}

// Code returns the code mappings in the text of a /proc/PID/maps, in its order, and the line of
// each with its newline, a part of text. It passes over all other lines, as ParseCode does.
func Code(text []byte) iter.Seq2[Mapping, []byte] {
	return func(yield func(Mapping, []byte) bool) {
		for line := range bytes.Lines(text) {
			if m, ok := ParseCode(string(line)); ok && !yield(m, line) {
				return
			}
		}
	}
}

// FileAt returns the file of the mapping that begins at an address, code or not, by the text of a
// /proc/PID/maps; ok is false if there is none.
func FileAt(text []byte, start uint64) (file File, ok bool) {
	for line := range bytes.Lines(text) {
		if m, ok := parse(string(line)); ok && m.Start == start {
			return m.File, m.File.Inode != 0
		}
	}
	return File{}, false
}

// ParseCode reads a line, "start-end perms offset dev inode path". ok is false for mappings
// that are no code, and for invalid lines.
func ParseCode(line string) (m Mapping, ok bool) {
	_, rest, _ := strings.Cut(line, " ")
	if len(rest) < 3 || rest[2] != 'x' {
		return m, false
	}
	return parse(line)
}

// parse is ParseCode for mappings of any kind.
func parse(line string) (m Mapping, ok bool) {
	const fields = 6
	f := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", fields)
	if len(f) < fields-1 {
		return m, false
	}
	ok = true
	number := func(s string, base, bits int) uint64 {
		v, err := strconv.ParseUint(s, base, bits)
		ok = ok && err == nil
		return v
	}
	from, to, _ := strings.Cut(f[0], "-")
	major, minor, _ := strings.Cut(f[3], ":")
	m = Mapping{Start: number(from, 16, 64), End: number(to, 16, 64), Offset: number(f[2], 16, 64),
		File: File{Major: uint32(number(major, 16, 32)), Minor: uint32(number(minor, 16, 32)),
			Inode: number(f[4], 10, 64)}}
	if len(f) == fields {
		m.File.Path = strings.TrimLeft(f[fields-1], " ")
	}
	return m, ok && m.Start < m.End
}
