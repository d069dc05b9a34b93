//go:build !unix

package process

import "time"

func usage() (cpu time.Duration, memory uint64) { return 0, 0 }
