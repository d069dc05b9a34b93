//go:build !linux

package files

import (
	"errors"
	"io/fs"
	"os"
	"time"
)

// Born returns when a file was created; zero where the file system does not have that.
func Born(*os.File) time.Time { return time.Time{} }

func createUnnamed(string, fs.FileMode) (*os.File, bool) { return nil, false }

func link(*os.File, string) error { return errors.ErrUnsupported }

// freeSpace knows nothing here: a full file system is found by writing.
func freeSpace(*os.File) (free int64, known bool) { return 0, false }
