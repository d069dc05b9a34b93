//go:build !linux

package files

import (
	"io/fs"
	"os"
)

// openBeneath opens the file with this relative name in a directory. No part of the
// name may be a symbolic link.
func openBeneath(dir, name string, flag int, perm fs.FileMode) (*os.File, error) {
	return openNoFollow(dir, name, flag, perm)
}

// outsideOwner returns -1: other systems have no user namespaces.
func outsideOwner() int64 { return -1 }
