//go:build unix

package regular

import "syscall"

const noFollow = syscall.O_NOFOLLOW
