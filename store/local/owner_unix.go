//go:build unix

package local

import (
	"io/fs"
	"syscall"
)

// ownerOf returns the user that a file belongs to, where files belong to numbered users.
func ownerOf(info fs.FileInfo) (uid uint32, ok bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return st.Uid, true
}
