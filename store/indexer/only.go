package indexer

import (
	"symbolize/ingest/addr"
	"symbolize/store"
)

// only returns the addresses that the tables of an object are limited to, nil for all.
func (ix *index) only(m *store.Manifest) []addr.Addr {
	if ix.opts.Only == nil {
		return nil
	}
	addrs, all := ix.opts.Only(m)
	switch {
	case all:
		return nil
	case addrs == nil:
		return []addr.Addr{}
	}
	return addrs
}
