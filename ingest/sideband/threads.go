package sideband

import (
	"cmp"
	"slices"
	"strconv"

	"symbolize/ingest/addrspace"
	"symbolize/ingest/format/perfdata"
)

// Threads are the names, control groups and namespaces of threads, and which processes ended.
type Threads struct {
	names      []string
	numbers    map[string]uint32            // of names
	cgroups    map[uint64]string            // paths by number
	namespaces map[int32][]threadNamespaces // by thread
	ended      map[int32]bool               // processes
}

// threadNamespaces are the namespaces of a thread from a given time.
type threadNamespaces struct {
	time  uint64
	links [perfdata.NumNamespaces]perfdata.Namespace
}

// Comm returns the number of the name of a thread.
func (t *Threads) Comm(name string) uint32 {
	n, ok := t.numbers[name]
	if !ok {
		n = uint32(len(t.names))
		t.names = append(t.names, name)
		t.numbers[name] = n
	}
	return n
}

// named returns the change of a thread's name.
func (t *Threads) named(c *perfdata.Comm) change {
	id, ok := t.numbers[string(c.Name)]
	if !ok {
		id = t.Comm(string(c.Name))
	}
	return change{kind: changeName, pid: c.PID, tid: c.TID, ref: id, flag: c.Exec}
}

// CommNames returns the names of threads, by number.
func (t *Threads) CommNames() []string { return t.names }

// UnnamedThread is the bit in a comm code for a thread without a recorded name: the other bits are
// its number.
const UnnamedThread = 1 << 31

// CommCode returns the code of a thread's name, or of its number if it is unnamed.
func CommCode(comm uint32, tid int32) uint32 {
	if comm == addrspace.NoComm {
		return UnnamedThread | uint32(tid)
	}
	return comm
}

// CommName returns the name of a code; ":TID", as perf prints it, for unnamed threads.
func (t *Threads) CommName(code uint32) string {
	if code&UnnamedThread != 0 {
		return ":" + strconv.Itoa(int(int32(code<<1)>>1))
	}
	return t.names[code]
}

// cgroup adds a CGROUP record.
func (t *Threads) cgroup(f *perfdata.File, rec *perfdata.Record) error {
	var c perfdata.Cgroup
	if err := f.Cgroup(rec, &c); err != nil {
		return err
	}
	if t.cgroups == nil {
		t.cgroups = make(map[uint64]string)
	}
	t.cgroups[c.ID] = string(c.Path)
	return nil
}

// enterNamespaces adds a NAMESPACES record of a time. The kernel writes one for each new thread, and
// when a thread changes its namespaces.
func (t *Threads) enterNamespaces(n *perfdata.Namespaces, time uint64) {
	if t.namespaces == nil {
		t.namespaces = make(map[int32][]threadNamespaces)
	}
	t.namespaces[n.TID] = append(t.namespaces[n.TID], threadNamespaces{time, n.Links})
}

// sortNamespaces sorts the namespaces of each thread by time.
func (t *Threads) sortNamespaces() {
	for _, list := range t.namespaces {
		slices.SortStableFunc(list, func(a, b threadNamespaces) int {
			return cmp.Compare(a.time, b.time)
		})
	}
}

// CgroupPath returns the path of a control group by its number, "" if no record has it.
func (t *Threads) CgroupPath(number uint64) string { return t.cgroups[number] }

// Namespace returns the number of a thread's namespace at a time, by its index in
// perfdata.Namespaces.Links; 0 if no record has it.
func (t *Threads) Namespace(tid int32, time uint64, index int) uint64 {
	list := t.namespaces[tid]
	n, found := slices.BinarySearchFunc(list, time, func(n threadNamespaces, time uint64) int {
		return cmp.Compare(n.time, time)
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

// exit notes the end of a process, at an EXIT record of its first thread.
func (t *Threads) exit(f *perfdata.File, rec *perfdata.Record) {
	var task perfdata.Task
	if err := f.Task(rec, &task); err != nil || task.PID != task.TID {
		return
	}
	if t.ended == nil {
		t.ended = make(map[int32]bool)
	}
	t.ended[task.PID] = true
}
