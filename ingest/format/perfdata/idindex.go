package perfdata

import "symbolize/ingest/decode"

// GuestIDs calls visit for the IDs of events that by an ID_INDEX record were recorded in a
// virtual machine, with the process of that machine (perf inject --guest-data). The record has
// u64 n, n times {u64 ID, index, CPU, thread}, and since Linux 6.0 n times {u64 machine, vCPU};
// machine 0 is the host.
func (f *File) GuestIDs(rec *Record, visit func(id uint64, machine int32)) error {
	const entry, machineEntry = 32, 16
	name, at := f.placeOf(rec.Offset + headerSize)
	r := decode.New(name, rec.Body, at, f.BigEndian)
	n := r.U64()
	if r.Err() == nil && n > uint64(r.Left())/entry {
		r.Fail("ID_INDEX has %d entries, more than it has room for", n)
	}
	if r.Err() != nil || uint64(r.Left()) < n*(entry+machineEntry) {
		return r.Err()
	}
	machines := decode.New(name, rec.Body, at, f.BigEndian)
	machines.Seek(8 + n*entry)
	for range n {
		id := r.U64()
		r.Skip(entry - 8)
		machine := machines.U64()
		machines.Skip(machineEntry - 8)
		if machine != 0 {
			visit(id, int32(machine))
		}
	}
	return nil
}
