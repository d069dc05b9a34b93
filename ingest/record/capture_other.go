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

// Check reports that captures are made on Linux only.
func Check() []Need {
	return []Need{{Name: "Linux", For: "anything", Fix: "run it on the host to be captured",
		Fatal: true}}
}

// SharesTerminal reports false: there is no command.
func SharesTerminal() bool { return false }
