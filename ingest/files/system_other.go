//go:build !unix

package files

import (
	"errors"
	"os"
)

const noFollow = 0 // the look before must do

func mmap(*os.File, int) ([]byte, error) { return nil, errors.ErrUnsupported }

func munmap([]byte) error { return nil }
