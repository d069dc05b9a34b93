//go:build !linux

package record

import (
	"context"

	"symbolize/ingest/format/bundle"
)

// Record is there on Linux only.
func Record(context.Context, *bundle.Writer, Options) (*Summary, error) {
	return nil, ErrUnsupported
}

// SharesTerminal reports false: there is no command.
func SharesTerminal() bool { return false }
