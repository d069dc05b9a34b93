package dwarf

// Summary counts the units of a Data by the facts of their headers and root entries.
type Summary struct {
	Units    int           // that can hold code: no type units
	Versions map[uint8]int // units by DWARF version
	Skeleton int           // units that continue in a .dwo or .dwp file
	Damaged  int           // units that cannot be read
	Problem  string        // why there may be further units; "" if all are counted
}

// Summary reads the headers of all units.
func (d *Data) Summary() Summary {
	d.scan()
	d.units.wait()
	sum := Summary{Versions: make(map[uint8]int), Problem: d.scanErr.reason}
	for _, u := range d.units.list {
		sum.Units++
		sum.Versions[u.version]++
		if u.damage != "" {
			sum.Damaged++
		} else if u.kind == utSkeleton || u.dwoName.form != 0 && !d.dwo {
			sum.Skeleton++
		}
	}
	return sum
}
