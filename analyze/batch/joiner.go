package batch

import (
	"slices"
	"unsafe"

	"symbolize/ingest"
	"symbolize/ingest/input/merge"
)

// joinBytes is the size of profiles from which a joiner makes one of them.
var joinBytes = 1 << 18

// joiner makes one profile of captures as they are read: the hosts of a service have most of their
// stacks in common, and memory holds their union rather than all. It grows by as much as it
// has before it is joined again, so that each stack is moved few times. The list is merged to the
// same bytes as the captures themselves.
type joiner struct {
	list  []*ingest.Profile
	from  int // in list: the profiles that can be joined with the next one
	joint int // bytes of list[from], if that is the result of joining
	size  int // bytes of list[from:]
}

// add appends a profile.
func (j *joiner) add(p *ingest.Profile) error {
	j.list = append(j.list, p)
	if !joinable(p) {
		j.from, j.joint, j.size = len(j.list), 0, 0
		return nil
	}
	j.size += sizeOf(p)
	if j.size-j.joint < max(j.joint, joinBytes) || len(j.list)-j.from < 2 {
		return nil
	}
	all, err := merge.Profiles(j.list[j.from:])
	if err != nil {
		return err
	}
	clear(j.list[j.from:])
	j.list = append(j.list[:j.from], all)
	j.joint = sizeOf(all)
	j.size = j.joint
	return nil
}

// joinable reports whether a profile may be merged before the others are known. An object with an
// inexact ID may not: which object it is, and whether that can be decided, depends on all.
func joinable(p *ingest.Profile) bool {
	return p.Names == nil && !slices.ContainsFunc(p.Objects, func(o ingest.Object) bool {
		return !o.ID.IsZero() && !o.ID.Exact()
	})
}

// sizeOf returns the approximate size of a profile's tables, in bytes.
func sizeOf(p *ingest.Profile) int {
	n := len(p.Samples)*int(unsafe.Sizeof(ingest.Sample{})) +
		len(p.Locations)*int(unsafe.Sizeof(ingest.Location{})) + 8*len(p.Callers) +
		len(p.Objects)*int(unsafe.Sizeof(ingest.Object{})) + int(unsafe.Sizeof(*p))
	for i := range p.Objects {
		o := &p.Objects[i]
		n += len(o.Segments)*int(unsafe.Sizeof(o.Segments[0])) + len(o.File.Path)
	}
	for _, s := range p.Strings {
		n += int(unsafe.Sizeof(s)) + len(s)
	}
	return n
}
