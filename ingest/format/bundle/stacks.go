package bundle

import "math"

// Addresses in users' stacks that no process has; see "Stacks" in the package comment.
const (
	OutsideAddress   = 0         // outside of all that the process could run
	GoneAddress      = 1<<56 - 1 // the process had ended before its mappings could be read
	AmbiguousAddress = 1<<56 - 2 // it was one thing or another, as mappings changed
)

// UnknownTime is the time of kernel's stacks whose addresses may have been one thing or another;
// see "Stacks" in the package comment.
const UnknownTime = math.MaxUint64
