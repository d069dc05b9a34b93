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

// CheckHost reports that captures are made on Linux only.
func CheckHost() []Need {
	return []Need{{Name: "Linux", For: "anything", Fix: "run it on the host to be captured",
		Fatal: true}}
}
