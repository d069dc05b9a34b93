//go:build !linux

package newfile

import (
	"errors"
	"io/fs"
	"os"
)

func createUnnamed(string, fs.FileMode) (*os.File, bool) { return nil, false }

func link(*os.File, string) error { return errors.ErrUnsupported }
