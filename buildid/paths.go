package buildid

import (
	"path/filepath"
	"slices"
	"strings"
)

// DebugPaths returns the possible paths of the debug file of a build ID: under each of roots
// (usually /usr/lib/debug), in order, as ROOT/.build-id/xx/yyyy.debug. It is empty for an ID that
// is no GNU one, or too short to be split.
func DebugPaths(id ID, roots []string) []string {
	h := id.Hex()
	if id.space != GNU || id.inexact || len(h) < 4 {
		return nil
	}
	paths := make([]string, 0, len(roots))
	for _, root := range roots {
		paths = append(paths, filepath.Join(root, ".build-id", h[:2], h[2:]+".debug"))
	}
	return paths
}

// RuntimePaths returns the possible paths of the file that runs under a build ID: below each of
// roots (/usr/lib/debug and /usr/lib, where Fedora has its links), in order, as
// ROOT/.build-id/xx/yyyy. It is empty where DebugPaths is.
func RuntimePaths(id ID, roots []string) []string {
	paths := DebugPaths(id, roots)
	for i := range paths {
		paths[i] = strings.TrimSuffix(paths[i], ".debug")
	}
	return paths
}

// PerfPath returns where perf's cache at dir (~/.debug) has one of the files of a build ID:
// "elf", "debug", "kallsyms" or "vdso" (tools/perf/util/build-id.c). It is "" where DebugPaths
// is empty.
func PerfPath(id ID, dir, file string) string {
	for _, p := range RuntimePaths(id, []string{dir}) {
		return filepath.Join(p, file)
	}
	return ""
}

// DebuginfodPath returns where the cache at dir of debuginfod's client has one of the files of a
// build ID: "executable" or "debuginfo" (debuginfod_find_debuginfo(3)). It is "" where DebugPaths
// is empty.
func DebuginfodPath(id ID, dir, file string) string {
	if len(DebugPaths(id, []string{dir})) == 0 {
		return ""
	}
	return filepath.Join(dir, id.Hex(), file)
}

// OfDir returns the build ID in the path of a file of perf's cache (~/.debug/PATH/BUILDID/kallsyms)
// or of debuginfod's (CACHE/BUILDID/debuginfo), the last directory; the zero ID for none.
func OfDir(file string) ID {
	id, err := Parse(filepath.Base(filepath.Dir(file)))
	if err != nil || id.Space() != GNU || id.Len() < minDirID {
		return ID{}
	}
	return id
}

// minDirID is the least number of bytes that a directory's name must have to pass for a build ID:
// "ab" or "1234" are other things.
const minDirID = 8

// AltPaths returns the possible paths of the file that dwz made for a debug file, which has its name
// and its build ID: where the name says; by build ID and in their .dwz directories below roots, and
// below the directory with the .build-id that the debug file is in; by its name below each directory
// above the debug file, as in an unpacked package; beside the debug file; and beside it in the cache
// of debuginfod's client.
func AltPaths(debug, name string, id ID, roots []string) []string {
	dir := filepath.Dir(debug)
	link := name
	if !filepath.IsAbs(name) {
		link = filepath.Join(dir, name)
	}
	if root, _, ok := strings.Cut(debug, "/.build-id/"); ok {
		roots = append(slices.Clip(roots), root)
	}
	paths := append([]string{link}, DebugPaths(id, roots)...)
	if i := strings.Index(name, dwzDir); i >= 0 {
		for _, root := range roots {
			paths = append(paths, filepath.Join(root, name[i:]))
		}
	}
	if filepath.IsAbs(name) {
		for above := dir; above != filepath.Dir(above); above = filepath.Dir(above) {
			paths = append(paths, filepath.Join(above, name))
		}
	}
	paths = append(paths, filepath.Join(dir, filepath.Base(name)))
	if filepath.Base(debug) == debuginfo {
		paths = append(paths, filepath.Join(filepath.Dir(dir), id.Hex(), debuginfo))
	}
	for i, p := range paths {
		paths[i] = filepath.Clean(p)
	}
	return paths
}

// dwzDir is where distributions put the files that dwz makes, under /usr/lib/debug.
const dwzDir = "/.dwz/"

// debuginfo is the name of debug files in the cache of debuginfod's client.
const debuginfo = "debuginfo"
