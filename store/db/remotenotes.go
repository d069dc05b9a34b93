package db

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"symbolize/store/db/files"
)

// RemoteNotes returns the directory in which package remote notes the manifests that have come to
// the store at path; "" if it cannot be written safely. The next GC drops it.
func RemoteNotes(path string) string {
	if _, err := os.Stat(filepath.Join(path, formatName)); err != nil || files.CheckTrust(path) != nil {
		return ""
	}
	err := os.Mkdir(filepath.Join(path, remoteName), 0o755)
	if err != nil && !errors.Is(err, fs.ErrExist) || files.CheckDirs(path, remoteName) != nil {
		return ""
	}
	return filepath.Join(path, remoteName)
}
