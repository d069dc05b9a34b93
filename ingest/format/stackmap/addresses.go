package stackmap

import "fmt"

// Addresses returns a Set of addresses in the kernel that somebody counted, whose samples
// have the order of list: each is of a stack of one address and counts 1. A list that is
// longer than a Set can be is an error.
func Addresses(list []uint64) (*Set, error) {
	if len(list) > maxSamples {
		return nil, fmt.Errorf("%d addresses, over the limit of %d", len(list), maxSamples)
	}
	s := newSet(Raw)
	s.Counted = true
	for _, at := range list {
		part := s.add([]Frame{{Offset: at, Status: IP}})
		s.count(Sample{Kernel: part, PID: -1, TID: -1, Count: 1})
	}
	s.finish()
	return s, nil
}
