//go:build !linux

package sys

import (
	"errors"

	"symbolize/ingest/format/bundle"
)

// ReadClocks fails: perf's clock is one of Linux.
func ReadClocks() (bundle.Clocks, error) { return bundle.Clocks{}, errors.ErrUnsupported }
