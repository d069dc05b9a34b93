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
	_, err := indexer.AddPrograms(ctx, s.overlay, captureInfoOf(path, c), programs)
	return err
}

// captureInfoOf says where the programs of a capture ran. The machine is what their
// identity in the capture's profile is made with.
func captureInfoOf(path string, c *input.Capture) indexer.CaptureInfo {
	info := indexer.CaptureInfo{Path: path}
	if f := c.PerfData(); f != nil {
		info.Machine, info.Host = f.Features.Arch, f.Features.Hostname
	}
	if b := c.Bundle(); b != nil {
		info.BootID = b.Manifest.BootID
	}
	return info
}
