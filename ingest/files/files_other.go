//go:build !linux

package files

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"time"
)

// Born returns when a file was created; zero where the file system does not have that.
func Born(*os.File) time.Time { return time.Time{} }

// MappedDevice returns stat: other systems' recordings have no devices.
func MappedDevice(_ *os.File, stat uint64) uint64 { return stat }

func createUnnamed(string, fs.FileMode) (*os.File, bool) { return nil, false }

func link(*os.File, string) error { return errors.ErrUnsupported }

// FreeBytes knows nothing here: a full file system is found by writing.
func FreeBytes(string) (int64, error) { return math.MaxInt64, nil }

// outsideOwner returns -1: other systems have no user namespaces.
func outsideOwner() int64 { return -1 }

// Real returns the absolute path of a file without symbolic links.
func Real(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(abs)
}

// SyncSystem does nothing here: files are synced one by one.
func SyncSystem(string) (done bool, err error) { return false, nil }

// ForgetMapped does nothing here.
func ForgetMapped(string) {}
