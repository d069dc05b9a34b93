package bundle

import (
	"errors"

	"symbolize/ingest/object/bpf"
)

// BPFStats returns how the BPF programs of the host were used; nil if the bundle does not have it.
func (b *Bundle) BPFStats() (*bpf.Stats, error) {
	data, err := b.ReadEntry(BPFStatsName, bpf.MaxStats)
	if errors.Is(err, ErrNoEntry) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return bpf.DecodeStats(b.Name+": "+BPFStatsName, data)
}
