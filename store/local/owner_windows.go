package local

import "io/fs"

// ownerOf returns the user that a file belongs to, where files belong to numbered users.
func ownerOf(fs.FileInfo) (uid uint32, ok bool) { return 0, false }
