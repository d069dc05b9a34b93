package sideband

import (
	"cmp"
	"slices"

	"symbolize/ingest/format/perfdata"
)

// containment has the facts of a capture's records on control groups and namespaces.
type containment struct {
	cgroups    map[uint64]string // paths by number
	namespaces map[int32][]threadNamespaces
}

// threadNamespaces are the namespaces of a thread from a time on.
type threadNamespaces struct {
	time  uint64
	links [perfdata.NumNamespaces]perfdata.Namespace
}

// cgroup enters a CGROUP record.
func (sb *State) cgroup(rec *perfdata.Record) error {
	var c perfdata.Cgroup
	if err := sb.Records.File.Cgroup(rec, &c); err != nil {
		return err
	}
	if sb.containment.cgroups == nil {
		sb.containment.cgroups = make(map[uint64]string)
	}
	sb.containment.cgroups[c.ID] = string(c.Path)
	return nil
}

// enterNamespaces enters a NAMESPACES record. The kernel writes one for each new thread, and
// when one changes its namespaces.
func (sb *State) enterNamespaces(rec *perfdata.Record) error {
	var n perfdata.Namespaces
	if err := sb.Records.File.Namespaces(rec, &n); err != nil {
		return err
	}
	x := &sb.containment
	if x.namespaces == nil {
		x.namespaces = make(map[int32][]threadNamespaces)
	}
	x.namespaces[n.TID] = append(x.namespaces[n.TID],
		threadNamespaces{sb.timeOf(rec), n.Links})
	return nil
}

// sortNamespaces brings the namespaces of each thread into the order of time.
func (x *containment) sortNamespaces() {
	for _, list := range x.namespaces {
		slices.SortStableFunc(list, func(a, b threadNamespaces) int {
			return cmp.Compare(a.time, b.time)
		})
	}
}

// CgroupPath returns the path of a control group by its number, "" if no record has it.
func (sb *State) CgroupPath(number uint64) string { return sb.containment.cgroups[number] }

// Namespace returns the number of a thread's namespace at a time, by its index in
// perfdata.Namespaces.Links; 0 if no record has it.
func (sb *State) Namespace(tid int32, time uint64, index int) uint64 {
	list := sb.containment.namespaces[tid]
	n, found := slices.BinarySearchFunc(list, time, func(x threadNamespaces, t uint64) int {
		return cmp.Compare(x.time, t)
	})
	for found && n+1 < len(list) && list[n+1].time == time {
		n++ // the last of that time
	}
	if !found {
		n--
	}
	if n < 0 {
		return 0
	}
	return list[n].links[index].Inode
}
