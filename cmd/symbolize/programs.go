package main

import (
	"context"

	"symbolize/ingest/input"
	"symbolize/store/indexer"
)

// addPrograms puts the BPF programs of an input capture into the overlay, so that
// its own images name it whatever the store has. What is damaged among them, the
// warnings of its profile tell.
func (s *session) addPrograms(ctx context.Context, path string, c *input.Capture) error {
	programs, _ := c.Programs()
	if len(programs) == 0 {
		return nil
	}
	_, err := indexer.AddPrograms(ctx, s.overlay, indexer.CaptureInfoOf(path, c), programs)
	return err
}
