package analyze

import (
	"errors"
	"fmt"

	"symbolize/buildid"
)

var (
	// ErrNoCapture is the error of Each and Load if none of several captures could be read.
	// Options.Failed got the reason of each.
	ErrNoCapture = errors.New("no capture could be read")
	// ErrNoKernel is wrapped by the warning that Options.Kallsyms is not used.
	ErrNoKernel = errors.New("the capture names no kernel with a build ID")
)

// KernelsError is the error for captures of several kernels with functions that one list of
// Options.Kallsyms cannot name.
type KernelsError struct {
	Kernels []buildid.ID
}

// Error returns the number of kernels.
func (e *KernelsError) Error() string {
	return fmt.Sprintf("kallsyms: the captures are of %d kernels", len(e.Kernels))
}
