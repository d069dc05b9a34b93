package analyze

import (
	"errors"
	"fmt"
	"strings"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/texts"
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
	return fmt.Sprintf("kallsyms: the captures come from %d kernels", len(e.Kernels))
}

// NoSamples is the error of captures without samples, or of which the filters keep none.
func NoSamples(paths []string, st *ingest.Stats) error {
	names := texts.Printable(strings.Join(paths, ", "))
	if st.FilteredOut > 0 {
		return texts.WithHint(fmt.Errorf("%s: the filters keep none of %d samples", names, st.FilteredOut),
			"--event, --comm, --pid, --tid, --cpu and --time leave samples out")
	}
	return texts.WithHint(fmt.Errorf("%s: no samples in it", names), "`symbolize info %s` counts the records",
		texts.ShellWord(paths[0]))
}
