//go:build unix

package db

import (
	"io/fs"
	"os"
	"syscall"
)

// isOwn reports whether a file belongs to the caller.
func isOwn(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Uid == uint32(os.Geteuid())
}
