package record

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"symbolize/ingest/record/sampler"
)

// checkHostProc checks that Options.HostProc is a /proc of the host. If it may not be
// read, it is accepted.
func (s *session) checkHostProc() error {
	dir := s.opts.HostProc
	if dir == "" {
		return nil
	}
	is, err := sampler.IsHostProc(dir)
	switch {
	case errors.Is(err, fs.ErrPermission):
		if b, err := os.ReadFile(dir + "/self/status"); err == nil && outerNumber(string(b)) {
			return nil
		}
		s.warnAhead(fmt.Sprintf("%v: whether it is the host's is unknown", err))
		return nil
	case err != nil:
		return fmt.Errorf("%w: %w", ErrHostProc, err)
	case !is:
		return fmt.Errorf("%w: %s: it is that of a container", ErrHostProc, dir)
	}
	return nil
}

// outerNumber reports whether a process has a number of its own in the namespace of a /proc and
// further ones in those below, by its status there.
func outerNumber(status string) bool {
	_, rest, _ := strings.Cut(status, "\nNSpid:")
	line, _, _ := strings.Cut(rest, "\n")
	return len(strings.Fields(line)) > 1
}

// otherNumbers reports whether processes have other numbers for the kernel's records, which
// go by the namespace of this process, than where they are read.
func (p *processes) otherNumbers() bool {
	return p.s.opts.HostProc != "" && !sampler.InitialNamespace()
}
