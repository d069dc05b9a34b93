//go:build !linux

package spool

import "os"

func unnamedFile(dir string) (*os.File, error) { return createUnnamed(dir) }

// freeSpace knows nothing here: a full file system is found by writing.
func freeSpace(*os.File) (free int64, known bool) { return 0, false }
