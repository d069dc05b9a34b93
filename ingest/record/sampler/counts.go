package sampler

import (
	"cmp"
	"maps"
	"slices"
)

// maxKeys bounds the distinct counts that are kept: each takes some 60 bytes.
const maxKeys = 1 << 21

// counts sums the counts read from the kernel, by stacks, process and comm.
type counts struct {
	of      map[tally]*countValue
	comms   map[[commSize]byte]uint32
	names   [][commSize]byte
	refused uint64 // samples beyond room
	room    int    // maxKeys, but in tests
}

type tally struct {
	user, kernel int32 // ids of the tables
	pid, comm    uint32
	epoch        uint64 // of the kernel's stack, see Changes
	// Of a user's stack with bare addresses the ProgramID and a time at which the process had the
	// same mappings; 0 once they are explained.
	program, mapped uint64
	number          uint32 // of the mappings, see Explainer
	time            uint64 // of a user's stack with places that are Timed, once they are explained
}

func newCounts() counts {
	return counts{of: make(map[tally]*countValue), comms: make(map[[commSize]byte]uint32),
		room: maxKeys}
}

// add adds a count of an epoch, and returns the user's stack.
func (c *counts) add(tables [2]*table, k *countKey, epoch uint64, v countValue) (user int32) {
	name, ok := c.comms[k.Comm]
	if !ok {
		if len(c.names) >= c.room {
			c.refused += v.Count
			return tables[userStack].id(k.User)
		}
		name = uint32(len(c.names))
		c.comms[k.Comm] = name
		c.names = append(c.names, k.Comm)
	}
	t := tally{user: tables[userStack].id(k.User), kernel: tables[kernelStack].id(k.Kernel),
		pid: k.PID, comm: name, epoch: epoch, program: k.Program, mapped: k.Mapped}
	sum := c.of[t]
	if sum == nil {
		if len(c.of) >= c.room {
			c.refused += v.Count
			return t.user
		}
		sum = new(countValue)
		c.of[t] = sum
	}
	sum.Count += v.Count
	sum.Weight += v.Weight
	return t.user
}

// total returns how many samples are counted.
func (c *counts) total() (n uint64) {
	for _, v := range c.of {
		n += v.Count
	}
	return n
}

// sorted lists the counts in the order of comm, process and stacks, which packs best.
func (c *counts) sorted() []tally { return slices.SortedFunc(maps.Keys(c.of), c.compare) }

func (c *counts) compare(a, b tally) int {
	return cmp.Or(slices.Compare(c.names[a.comm][:], c.names[b.comm][:]), cmp.Compare(a.pid, b.pid),
		cmp.Compare(a.user, b.user), cmp.Compare(a.kernel, b.kernel), cmp.Compare(a.epoch, b.epoch),
		cmp.Compare(a.program, b.program), cmp.Compare(a.mapped, b.mapped),
		cmp.Compare(a.number, b.number), cmp.Compare(a.time, b.time))
}

// renumbered returns the counts under the numbers of written stacks. Samples whose stacks
// are not written count together.
func (c *counts) renumbered(nums *[2]numbering) counts {
	n := *c
	n.of = make(map[tally]*countValue, len(c.of))
	for t, v := range c.of {
		t.user, t.kernel = nums[userStack].of(t.user), nums[kernelStack].of(t.kernel)
		if sum := n.of[t]; sum != nil {
			sum.Count += v.Count
			sum.Weight += v.Weight
			continue
		}
		sum := *v
		n.of[t] = &sum
	}
	return n
}

// withoutStack counts the samples that miss a stack: for lack of room in the ring, and in the
// tables.
func (c *counts) withoutStack(tables [2]*table) (ring, room uint64) {
	for t, v := range c.of {
		u, k := tables[userStack], tables[kernelStack]
		switch {
		case t.user == noID || t.kernel == noID:
			room += v.Count
		case !u.received(t.user) || !k.received(t.kernel):
			ring += v.Count
		}
	}
	return ring, room
}
