package input

import (
	"slices"
	"strconv"
	"sync"

	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/addrspace"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/intern"
	"symbolize/ingest/sideband"
)

// recordedOfAccess returns the words of the tags that Keep.Accesses and Keep.Access add to those of a list, of
// what was recorded.
func (c *collector) recordedOfAccess(tags []string) (list []string) {
	keep := &c.want.Keep
	if c.derived != nil || !keep.Accesses() {
		return nil
	}
	add := func(word string, has bool) {
		if has && !slices.Contains(tags, word) {
			list = append(list, word)
		}
	}
	add(ingest.AddressTag, c.hasAddresses())
	if keep.Access {
		add(ingest.MemoryTag, c.anyHas(perfdata.SampleDataSrc))
		add(ingest.LatencyTag, c.anyHas(perfdata.SampleWeight|perfdata.SampleWeightStruct))
	}
	return list
}

// hasAddresses reports whether samples of a selected event have the addresses of data.
func (c *collector) hasAddresses() bool {
	for i := range c.Records.File.Events {
		if c.event[i] >= 0 && c.Records.File.Events[i].Attr.DataAddresses() {
			return true
		}
	}
	return false
}

// longestInsn is the size of the longest instruction: x86 has it.
const longestInsn = 15

// dataPlaces numbers the places of data that samples access.
type dataPlaces struct {
	mu    sync.Mutex
	known map[dataPlace]uint64
	list  []dataPlace // by number, from 1 on
}

// dataPlace is a place of data: the object of its mapping, and the object with the data, an offset in it.
// Memory behind the end of a file's mapping has the file as its object: a program's .bss is there.
type dataPlace struct {
	area, object uint32 // object is noData if no object has the data
	offset       uint64
}

const noData = ^uint32(0)

// dataPlace returns the number of the place of the data that a sample accesses; 0 if it is not known. An address in
// the instruction itself was fetched, not accessed.
func (c *collector) dataPlace(x *current) uint64 {
	s := &x.sample
	if s.Addr == 0 || x.guest || s.Event < 0 || !c.Records.File.Events[s.Event].Attr.DataAddresses() ||
		s.Fields&perfdata.SampleIP != 0 && s.Addr-s.IP < longestInsn {
		return 0
	}
	if s.Addr >= kernelHalf {
		return c.data.numberOf(c.kernelData(s.Addr, x.kernel))
	}
	return c.data.numberOf(c.userData(addr.PC(s.Addr), c.Data.Process(s.PID, x.time).Version()))
}

func (c *collector) kernelData(at uint64, v addrspace.Version) dataPlace {
	if m := c.Spaces.InKernel(v, addr.PC(at)); m != nil {
		return dataPlace{m.Object, m.Object, uint64(m.Offset(addr.PC(at)))}
	}
	return dataPlace{area: sideband.UnmappedKernel, object: noData}
}

func (c *collector) userData(at addr.PC, v addrspace.Version) dataPlace {
	m := c.Data.User(v, at)
	if m == nil {
		return dataPlace{area: sideband.Unmapped, object: noData}
	}
	switch c.Objects.List[m.Object].Kind {
	case ingest.ELF:
		return dataPlace{m.Object, m.Object, uint64(m.Offset(at))}
	case ingest.Anonymous:
		if m.Start == 0 {
			break
		}
		before := c.Data.User(v, m.Start-1)
		if before != nil && c.Objects.List[before.Object].Kind == ingest.ELF {
			return dataPlace{m.Object, before.Object, uint64(before.Offset(at))}
		}
	}
	return dataPlace{area: m.Object, object: noData}
}

// numberOf returns the number of a place.
func (d *dataPlaces) numberOf(p dataPlace) uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, ok := d.known[p]
	if !ok {
		if d.known == nil {
			d.known = make(map[dataPlace]uint64)
		}
		d.list = append(d.list, p)
		n = uint64(len(d.list))
		d.known[p] = n
	}
	return n
}

// objects returns places in the objects that have data and code, unordered: files without code have no variables.
func (d *dataPlaces) objects(list []ingest.Object) (places []intern.Pair) {
	for _, p := range d.list {
		if p.object != noData && hasVariables(&list[p.object]) {
			places = append(places, intern.Pair{Object: p.object, Offset: p.offset})
		}
	}
	return places
}

func hasVariables(o *ingest.Object) bool {
	return o.Kind == ingest.Kernel || o.Kind == ingest.Module || len(o.Segments) > 0
}

// add returns a tag with the name of the memory and the place in place of its number.
func (d *dataPlaces) add(t ingest.Tag, objects []ingest.Object) ingest.Tag {
	n, err := strconv.ParseUint(t.Text, 10, 64)
	if t.Key != ingest.AddressTag || err != nil || n == 0 || n > uint64(len(d.list)) {
		return t
	}
	p := d.list[n-1]
	t.Text = ingest.MemoryText(&objects[p.area])
	if p.object != noData && hasVariables(&objects[p.object]) {
		return t.At(&objects[p.object], addr.Offset(p.offset))
	}
	return t
}
