package bpfmap

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"symbolize/analyze/chart"
	"symbolize/ingest/object/btf"
)

// Pairs gives keys and their values, one for each CPU, until ok is false: Next of a
// mapdump.Dump. They are valid until the next call.
type Pairs func() (key []byte, values [][]byte, ok bool)

// Losses count the pairs and counts left out, by cause.
type Losses struct {
	Negative uint64 // counts below 0
	Beyond   uint64 // counts of slots that the scale does not have
	Crowded  uint64 // counts of keys beyond the bounds of this package
}

// Add adds the losses of another dump.
func (l *Losses) Add(o Losses) {
	l.Negative += o.Negative
	l.Beyond += o.Beyond
	l.Crowded += o.Crowded
}

// Texts describes the losses, a text for each cause.
func (l Losses) Texts() (out []string) {
	for _, x := range []struct {
		n    uint64
		text string
	}{
		{l.Negative, "%d counts are below 0 and are left out"},
		{l.Beyond, "%d counts lie in slots that the scale does not have, and are left out"},
		{l.Crowded, "%d counts of further keys are left out: there are too many"},
	} {
		if x.n > 0 {
			out = append(out, fmt.Sprintf(x.text, x.n))
		}
	}
	return out
}

// Bounds of the results.
const (
	maxRows  = 1 << 20 // addresses with their labels
	maxCells = 1 << 24 // slots of all histograms
	maxHists = 1 << 14
)

// sum adds up a count over all CPUs.
func (l *Layout) sum(f Field, values [][]byte, lost *Losses) (total uint64) {
	for _, v := range values {
		n := f.Uint(v, l.BigEndian)
		if f.Signed && int64(n) < 0 {
			lost.Negative++
			continue
		}
		total = saturate(total, n)
	}
	return total
}

func saturate(a, b uint64) uint64 {
	if a+b < a {
		return ^uint64(0)
	}
	return a + b
}

// Row is the count of an address.
type Row struct {
	Address uint64
	Label   string // the rest of the key
	Count   uint64
}

// Addresses adds up counts by address and the rest of the key, the largest first.
func (l *Layout) Addresses(next Pairs, address, count Field) ([]Row, Losses) {
	type who struct {
		address uint64
		label   string
	}
	var rows []Row
	var lost Losses
	at := make(map[who]int)
	for key, values, ok := next(); ok; key, values, ok = next() {
		n := l.sum(count, values, &lost)
		w := who{address.Uint(key, l.BigEndian), l.Label(key, address)}
		i, seen := at[w]
		switch {
		case !seen && len(rows) >= maxRows:
			lost.Crowded++
			continue
		case !seen:
			i = len(rows)
			at[w] = i
			rows = append(rows, Row{Address: w.address, Label: w.label})
		}
		rows[i].Count = saturate(rows[i].Count, n)
	}
	slices.SortFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Address, b.Address),
			strings.Compare(a.Label, b.Label))
	})
	return rows, lost
}

// Plan locates the histograms of a map.
type Plan struct {
	Scale chart.Scale
	// Slot is the number of the slot in the key, unless the values are arrays of slots.
	Slot    Field
	Count   Field // in a value; of arrays the first slot
	Slots   int   // of an array; 0: the slot is in the key
	Guessed bool  // nobody named the scale
}

// PlanOptions are the choices of the user; all others are found by BTF.
type PlanOptions struct {
	Scale *chart.Scale
	Slot  string // field of the key
	Count string // field of the value
}

// slotNames are the usual names of the slot in a key. bcc's histograms call it slot.
var slotNames = []string{"slot", "bucket", "index", "idx", "bin"}

// slotsNames are the usual names of an array of slots: libbpf-tools call it slots.
var slotsNames = []string{"slots", "buckets", "hist", "bins", "counts", "latency"}

// bccHistogram is how many elements BPF_HISTOGRAM makes.
const bccHistogram = 64

// Plan finds the histograms of a map. maxEntries is the map's.
func (l *Layout) Plan(o PlanOptions, maxEntries uint32) (*Plan, error) {
	p := &Plan{Guessed: o.Scale == nil}
	if o.Slot == "" && l.arrayPlan(p, o.Count) {
		return p.scale(o, chart.Log2), nil
	}
	var err error
	if p.Slot, err = l.slot(o.Slot); err != nil {
		return nil, err
	}
	if p.Count, err = l.Count(o.Count); err != nil {
		return nil, err
	}
	kind := chart.Log2
	if p.Slot.Name == "slot" || p.Slot.Name == "key" && l.isInt(l.Key) &&
		maxEntries == bccHistogram {
		kind = chart.BCC
	}
	return p.scale(o, kind), nil
}

func (p *Plan) scale(o PlanOptions, byDefault chart.Kind) *Plan {
	p.Scale.Kind = byDefault
	if o.Scale != nil {
		p.Scale = *o.Scale
	}
	return p
}

// isInt reports whether a type is C's int, which is the key of bcc's histograms.
func (l *Layout) isInt(id btf.ID) bool {
	return l.Types != nil && id != 0 && l.Types.Name(l.Types.Strip(id)) == "int"
}

// slot finds the slot in the key.
func (l *Layout) slot(name string) (Field, error) {
	if name != "" {
		return l.KeyField(name)
	}
	if l.Types == nil || l.Key == 0 || l.isNumber(l.Key) {
		f, err := l.KeyField("key")
		if err != nil {
			err = fmt.Errorf("%w: %w", ErrNoSlot, err)
		}
		return f, err
	}
	list := l.numbers(l.Key, l.KeySize)
	for _, n := range slotNames {
		i := slices.IndexFunc(list, func(f Field) bool { return strings.EqualFold(f.Name, n) })
		if i >= 0 {
			return list[i], nil
		}
	}
	return Field{}, fmt.Errorf("%w%s", ErrNoSlot, l.list("key", l.Key))
}

// arrayPlan finds an array of slots in values: the value itself, or the member of this
// name, or one that is called as such arrays are.
func (l *Layout) arrayPlan(p *Plan, name string) bool {
	if l.Types == nil || l.Value == 0 {
		return false
	}
	id := l.Types.Strip(l.Value)
	if l.slots(p, "value", id, 0) {
		return name == "" || name == "value"
	}
	if l.Types.Kind(id) != btf.KindStruct {
		return false
	}
	names := slotsNames
	if name != "" {
		names = []string{name}
	}
	for _, n := range names {
		for i, m := range l.Types.Members(id) {
			if i >= maxMembers {
				break
			}
			if strings.EqualFold(m.Name, n) && m.BitOffset%8 == 0 &&
				l.slots(p, m.Name, l.Types.Strip(m.Type), int(m.BitOffset/8)) {
				return true
			}
		}
	}
	return false
}

// slots interprets an array of numbers as slots.
func (l *Layout) slots(p *Plan, name string, id btf.ID, at int) bool {
	if l.Types.Kind(id) != btf.KindArray {
		return false
	}
	a := l.Types.Array(id)
	elem := l.Types.Strip(a.Elem)
	size, err := l.Types.Size(elem)
	if err != nil || l.Types.Kind(elem) != btf.KindInt || size == 0 || size > maxNumber ||
		l.Types.Int(elem).Char || a.Len < 2 || uint64(a.Len) > uint64(l.ValueSize)/size ||
		at > l.ValueSize-int(size)*int(a.Len) {
		return false
	}
	p.Slots = int(a.Len)
	p.Count = Field{Name: name, Offset: at, Size: int(size), Signed: l.signed(elem)}
	return true
}

// Histograms makes a histogram for each key without its slot.
func (l *Layout) Histograms(next Pairs, p *Plan) ([]*chart.Histogram, Losses) {
	c := histogramReader{l: l, p: p, at: make(map[string]*chart.Histogram), slots: p.Scale.Slots()}
	for key, values, ok := next(); ok; key, values, ok = next() {
		c.pair(key, values)
	}
	return c.list, c.lost
}

// histogramReader makes histograms of the values of a map.
type histogramReader struct {
	l     *Layout
	p     *Plan
	at    map[string]*chart.Histogram
	list  []*chart.Histogram
	slots int
	cells int
	lost  Losses
}

func (c *histogramReader) pair(key []byte, values [][]byte) {
	if c.p.Slots == 0 {
		n := c.l.sum(c.p.Count, values, &c.lost)
		if n > 0 {
			c.add(c.histogram(key, c.p.Slot), c.p.Slot.Uint(key, c.l.BigEndian), n)
		}
		return
	}
	f := c.p.Count
	var h *chart.Histogram
	for slot := range c.p.Slots {
		if n := c.l.sum(f, values, &c.lost); n > 0 {
			if h == nil {
				h = c.histogram(key, Field{Offset: 0, Size: 0, top: -1})
			}
			c.add(h, uint64(slot), n)
		}
		f.Offset += f.Size
	}
}

// histogram returns the one for a key without a field; nil beyond the bound.
func (c *histogramReader) histogram(key []byte, but Field) *chart.Histogram {
	label := c.l.Label(key, but)
	if c.p.Slots > 0 && isArray(c.l.MapType) && string(key) == strings.Repeat("\x00", len(key)) {
		label = "" // the only element
	}
	h := c.at[label]
	if h == nil && len(c.list) < maxHists {
		h = &chart.Histogram{Label: label}
		c.at[label] = h
		c.list = append(c.list, h)
	}
	return h
}

// isArray reports whether a map is one of BPF_MAP_TYPE_ARRAY or _PERCPU_ARRAY.
func isArray(mapType uint32) bool { return mapType == 2 || mapType == 6 }

func (c *histogramReader) add(h *chart.Histogram, slot, n uint64) {
	switch {
	case slot >= uint64(c.slots):
		c.lost.Beyond = saturate(c.lost.Beyond, n)
		return
	case h == nil:
		c.lost.Crowded = saturate(c.lost.Crowded, n)
		return
	}
	if more := int(slot) + 1 - len(h.Counts); more > 0 {
		if c.cells += more; c.cells > maxCells {
			c.cells -= more
			c.lost.Crowded = saturate(c.lost.Crowded, n)
			return
		}
	}
	h.Add(int(slot), n)
}

// SumOf adds up histograms, as the sample of a heat map at a time.
func SumOf(list []*chart.Histogram, time uint64) chart.Sample {
	var sum chart.Histogram
	for _, h := range list {
		for slot, n := range h.Counts {
			if n > 0 {
				sum.Add(slot, n)
			}
		}
	}
	return chart.Sample{Time: time, Counts: sum.Counts}
}
