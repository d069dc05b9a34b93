package buildid

// FileProof identifies one state of a file on one host: two equal proofs are of the same
// file with the same content. Dev is the device that mapping records have, in the form of
// stat's st_dev; Gen is the inode's generation, 0 if unknown.
type FileProof struct {
	Dev, Inode, Gen, Size uint64
	MtimeNs, CtimeNs      int64 // ns since 1970
}

// Same reports whether the file is unchanged between two proofs. A proof without an inode proves
// nothing.
func (p FileProof) Same(o FileProof) bool {
	if p.Gen == 0 || o.Gen == 0 {
		p.Gen, o.Gen = 0, 0
	}
	return p.Inode != 0 && p == o
}

// RecordedFile is the file in a capture's mmap record. It has neither size nor times.
type RecordedFile struct {
	Major, Minor uint32
	Inode, Gen   uint64
}

// Proves reports whether the file was, with the content it has now, the one that a capture of this
// host recorded: device, inode and, where both are known, generation are equal, and nothing has
// changed the file since it was mapped (ns since 1970; 0 if that is not known, which proves
// nothing).
func (p FileProof) Proves(r RecordedFile, mappedNanos int64) bool {
	if mappedNanos == 0 || r.Inode == 0 || p.Inode != r.Inode || p.Dev != Device(r.Major, r.Minor) {
		return false
	}
	if p.Gen != 0 && r.Gen != 0 && p.Gen != r.Gen {
		return false
	}
	return p.MtimeNs <= mappedNanos && p.CtimeNs <= mappedNanos
}

// Device packs a device number as Linux's st_dev has it (gnu_dev_makedev of the C
// library).
func Device(major, minor uint32) uint64 {
	a, i := uint64(major), uint64(minor)
	return i&0xff | (a&0xfff)<<8 | (i&^0xff)<<12 | (a&^0xfff)<<32
}
