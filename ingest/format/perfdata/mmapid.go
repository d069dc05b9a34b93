package perfdata

import (
	"slices"

	"symbolize/buildid"
)

// mmapFile is the size of MMAP2's field for the file: its device, inode and generation, or four
// bytes with the length of its build ID and the ID, padded with zeros.
const (
	mmapFile     = 24
	mmapIDHeader = 4
	maxMmapIDLen = mmapFile - mmapIDHeader
)

// file decodes MMAP2's field for the file, which may have neither: what only looks like a device
// must not make two files one.
func (m *Mmap) file(f *File, rec *Record, field []byte) {
	if rec.Misc&MiscMmapBuildID != 0 {
		if id := f.mmapID(rec, field); !id.IsZero() {
			m.BuildID = id
			return
		}
		if !f.isDevice(field) {
			return
		}
	}
	m.Maj, m.Min = u32(field, f.BigEndian), u32(field[4:], f.BigEndian)
	m.Ino, m.InoGen = u64(field[8:], f.BigEndian), u64(field[16:], f.BigEndian)
}

// mmapID returns the build ID that a record with MiscMmapBuildID has; zero if it has device and
// inode instead. While any recorder of a machine asks for build IDs, Linux sets that bit in
// the records of the others too, which did not (perf_event_mmap_output in 5.12 to 6.18 sets it for
// one event and leaves it for those after it). The event's own attr decides, unless the
// records were written by perf: `perf inject` puts IDs into a recording and leaves the attrs. Then
// the bytes decide. Those of an ID of 20 bytes are not read as a device by chance; a short one that
// is, is believed where the recording lists it.
func (f *File) mmapID(rec *Record, field []byte) buildid.ID {
	n := int(field[0])
	if n == 0 || n > maxMmapIDLen || !zeros(field[1:mmapIDHeader]) || !zeros(field[mmapIDHeader+n:]) {
		return buildid.ID{}
	}
	id := buildid.New(field[mmapIDHeader : mmapIDHeader+n])
	if !f.asksForIDs(rec) && f.isDevice(field) && !slices.ContainsFunc(f.Features.BuildIDs,
		func(e BuildIDEntry) bool { return e.ID.Matches(id) }) {
		return buildid.ID{}
	}
	return id
}

// asksForIDs reports whether the event of a record asks the kernel for build IDs; of one that perf
// synthesized, whether any event does.
func (f *File) asksForIDs(rec *Record) bool {
	if id, err := f.SampleID(rec); err == nil && id.ID != 0 {
		if i, ok := f.EventOf(rec); ok {
			return f.Events[i].Attr.Has(FlagBuildID)
		}
	}
	return slices.ContainsFunc(f.Events, func(e Event) bool { return e.Attr.Has(FlagBuildID) })
}

// isDevice reports whether the field can have a device and an inode: major numbers have 12 bits,
// minor ones 20, generations 32, and no file system has inodes that need more than 48.
func (f *File) isDevice(field []byte) bool {
	major, minor := u32(field, f.BigEndian), u32(field[4:], f.BigEndian)
	inode, generation := u64(field[8:], f.BigEndian), u64(field[16:], f.BigEndian)
	return major>>12 == 0 && minor>>20 == 0 && inode>>48 == 0 && generation>>32 == 0
}

func zeros(b []byte) bool {
	return !slices.ContainsFunc(b, func(c byte) bool { return c != 0 })
}
