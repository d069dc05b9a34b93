package indexer

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
)

// addRoots queues the paths of the command line. Symbolic links are followed here; roots inside
// other roots are dropped.
func (ix *index) addRoots(paths []string) {
	var trees []string
	files := make(map[string][]string) // by directory
	for _, p := range paths {
		st, real, err := resolveRoot(p)
		switch {
		case err != nil:
			ix.problem(Problem{Path: p, Err: err, Named: true})
		case real == string(ix.opts.sys)+"/proc/kallsyms":
			ix.opts.Kernel = true
		case st.kind == kindDir:
			trees = append(trees, real)
		case st.kind == kindFile:
			dir := filepath.Dir(real)
			files[dir] = append(files[dir], filepath.Base(real))
		default:
			ix.problem(Problem{Path: p, Err: errors.New("neither file nor directory"), Named: true})
		}
	}
	slices.Sort(trees)
	var kept []string
	for _, d := range trees {
		if !slices.ContainsFunc(kept, func(k string) bool { return inside(d, k) }) {
			kept = append(kept, d)
			ix.pushDir(d)
		}
	}
	for dir, names := range files {
		if slices.ContainsFunc(kept, func(k string) bool { return inside(dir, k) }) {
			continue // the walk comes by; two writers of one directory's rows would not do
		}
		slices.Sort(names)
		names = slices.Compact(names)
		ix.queue.pushDir(func(w *worker) { w.namedFiles(dir, names) })
	}
}

// resolveRoot follows the links of a path given by the user.
func resolveRoot(p string) (fileStat, string, error) {
	abs, err := filepath.Abs(p)
	if err != nil {
		return fileStat{}, "", err
	}
	real, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return fileStat{}, "", pathReason(err)
	}
	st, err := statFile(real)
	return st, real, err
}

// inside reports whether path is dir or below it.
func inside(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}
