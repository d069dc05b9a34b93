//go:build unix

package process

import "syscall"

// maxOpenFiles returns how many files the process may have open.
func maxOpenFiles() (n uint64, ok bool) {
	var limit syscall.Rlimit
	err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit)
	return uint64(limit.Cur), err == nil
}
