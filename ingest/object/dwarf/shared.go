package dwarf

import "errors"

// errOverlap ends a walk of units that read the same range lists again and again.
var errOverlap = errors.New("range lists of the units overlap")

// rangeLimit is how many bytes of range lists all units together may read that have
// their own lists in other, which is d or a split file.
func (d *Data) rangeLimit(other *Data) int64 {
	size := len(d.sec.Ranges) + len(d.sec.RngLists)
	if other != d {
		size += len(other.sec.RngLists)
	}
	return sharedBudgetFloor + sharedBudgetFactor*int64(size)
}

// walkSplit charges the bytes of a unit in a split file to that file's budget, and reports
// whether it may be walked.
func (d *Data) walkSplit(split *Data, size int64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.splitRead == nil {
		d.splitRead = make(map[string]int64)
	}
	d.splitRead[split.opts.Name] += size
	return d.splitRead[split.opts.Name] <=
		sharedBudgetFloor+splitBudgetFactor*int64(len(split.sec.Info))
}

// meter counts the bytes that visited units have read of shared sections. It counts in the order
// of visits, so that the same file always ends at the same unit.
type meter struct {
	d      *Data
	ranges int64
}

// passed counts a unit, and reports whether it may be visited.
func (m *meter) passed(res *result) error {
	lists := m.d
	if lists.opts.DWP != nil {
		lists = lists.opts.DWP
	}
	if m.ranges += res.rangeBytes; m.ranges > m.d.rangeLimit(lists) {
		return errOverlap
	}
	return nil
}

// overlapping visits a Unit with the position where errOverlap ended a walk.
func overlapping(off uint64, visit func(*Unit) error) error {
	u := Unit{Offset: off}
	u.problem(".debug_info", off, "limit reached: "+errOverlap.Error()+
		", what follows is left out")
	return visit(&u)
}
