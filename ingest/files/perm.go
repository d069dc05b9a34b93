package files

import (
	"io/fs"
	"os"
)

// PermOf returns the permissions of a file that has what files at paths have: perm without those for
// users that one of the files withholds from them. Paths without a file, as of standard input, count
// for nothing.
func PermOf(perm fs.FileMode, paths ...string) fs.FileMode {
	const others = 0o077
	for _, path := range paths {
		if fi, err := os.Stat(path); err == nil && fi.Mode().IsRegular() {
			perm &= fi.Mode().Perm() | ^fs.FileMode(others)
		}
	}
	return perm
}
