package stackmap

// Addresses is a Set of addresses in the kernel that somebody counted: each is the only
// frame of the stack of one sample, whose PID is its number in the list.
func Addresses(list []uint64) *Set {
	s := newSet(Raw)
	s.Counted, s.Labels.PID = true, true
	for i, at := range list {
		part := s.add([]Frame{{Offset: at, Status: IP}})
		s.count(Sample{Kernel: part, PID: int32(i), TID: -1, Count: 1})
	}
	s.finish()
	return s
}
