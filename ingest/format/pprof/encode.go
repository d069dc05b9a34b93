package pprof

import (
	"cmp"
	"slices"

	"symbolize/ingest"
)

// Field numbers of profile.proto.
const (
	profSampleType  = 1
	profSample      = 2
	profMapping     = 3
	profLocation    = 4
	profFunction    = 5
	profString      = 6
	profDropFrames  = 7
	profKeepFrames  = 8
	profTime        = 9
	profDuration    = 10
	profPeriodType  = 11
	profPeriod      = 12
	profComment     = 13
	profDefaultType = 14
	profDocURL      = 15
)

// encoder writes one profile. Messages are assembled in msg and copied to out with their length in
// front; strings are numbered on first use and written last.
type encoder struct {
	p       *ingest.Profile
	opts    WriteOptions
	out     *blockWriter
	msg     []byte
	sub     []byte
	strings map[string]uint64
	table   []string
	plan    plan
	buf     []byte
}

func (e *encoder) encode() {
	p := e.p
	e.plan = planMappings(p, &e.opts)
	cols := columnsOf(p.Events)
	head := e.header(cols)
	for _, c := range cols {
		e.valueType(profSampleType, c.typ, c.unit)
	}
	e.samples(cols)
	e.locations()
	e.mappings() // after the locations, which determine the mappings' flags
	e.functions()
	e.head(head)
	e.out.message(profString, nil)
	for _, s := range e.table {
		e.out.text(profString, s)
	}
}

// str numbers a string.
func (e *encoder) str(s string) uint64 {
	if n, ok := e.strings[s]; ok {
		return n
	}
	n := e.fresh(s)
	e.strings[s] = n
	return n
}

// fresh numbers a string that is known to occur only once.
func (e *encoder) fresh(s string) uint64 {
	e.table = append(e.table, s)
	return uint64(len(e.table))
}

func (e *encoder) valueType(field int, typ, unit string) {
	e.msg = appendField(e.msg[:0], 1, e.str(ingest.Printable(typ)))
	e.msg = appendField(e.msg, 2, e.str(ingest.Printable(unit)))
	e.out.message(field, e.msg)
}

// samples writes one Sample per (stack, labels), in this order: with equal leaves adjacent
// level 1 of gzip does better than the default level unsorted.
func (e *encoder) samples(cols []column) {
	p := e.p
	rows := sortByStack(p)
	labels := newLabels(e)
	values := make([]uint64, len(cols))
	countCol, weightCol := columnIndex(cols, len(p.Events))
	stack := packedStack{p: p}
	for i := 0; i < len(rows); {
		s := &p.Samples[rows[i]]
		stack.set(s.Stack)
		clear(values)
		for ; i < len(rows); i++ {
			t := &p.Samples[rows[i]]
			if t.Stack != s.Stack || ingest.CompareLabels(s, t) != 0 {
				break
			}
			if c := countCol[t.Event]; c >= 0 {
				values[c] += t.Count
			}
			values[weightCol[t.Event]] += t.Weight
		}
		if !slices.ContainsFunc(values, func(v uint64) bool { return v != 0 }) {
			continue // readers drop it
		}
		e.msg = appendBytes(e.msg[:0], 1, stack.packed)
		e.sub = e.sub[:0]
		for _, v := range values {
			e.sub = appendVarint(e.sub, v)
		}
		e.msg = labels.append(appendBytes(e.msg, 2, e.sub), s)
		e.out.message(profSample, e.msg)
	}
}

// packedStack holds the stack of the current sample.
type packedStack struct {
	p       *ingest.Profile
	packed  []byte // its location ids
	current ingest.StackID
}

// set makes s the current stack; samples with the same one follow each other.
func (k *packedStack) set(s ingest.StackID) {
	if k.packed != nil && s == k.current {
		return
	}
	k.current, k.packed = s, k.packed[:0]
	for _, l := range k.p.Stack(s) {
		k.packed = appendVarint(k.packed, uint64(l)+1)
	}
}

func columnIndex(cols []column, events int) (count, weight []int) {
	count, weight = make([]int, events), make([]int, events)
	for i := range count {
		count[i] = -1
	}
	for i, c := range cols {
		if c.count {
			count[c.event] = i
		} else {
			weight[c.event] = i
		}
	}
	return count, weight
}

// sortByStack numbers the samples by (stack, labels, event): a counting sort by stack,
// then a sort of the few rows of each stack.
func sortByStack(p *ingest.Profile) []uint32 {
	ends := make([]uint32, len(p.StackEnds)+1)
	for i := range p.Samples {
		ends[p.Samples[i].Stack+1]++
	}
	for i := 1; i < len(ends); i++ {
		ends[i] += ends[i-1]
	}
	rows := make([]uint32, len(p.Samples))
	for i := range p.Samples {
		s := p.Samples[i].Stack
		rows[ends[s]] = uint32(i)
		ends[s]++
	}
	from := uint32(0)
	for _, to := range ends[:len(p.StackEnds)] {
		if to-from > 1 {
			slices.SortStableFunc(rows[from:to], func(a, b uint32) int {
				s, t := &p.Samples[a], &p.Samples[b]
				if c := ingest.CompareLabels(s, t); c != 0 {
					return c
				}
				return cmp.Compare(s.Event, t.Event)
			})
		}
		from = to
	}
	return rows
}

// labels holds the string numbers of the labels, created on first use.
type labels struct {
	e                   *encoder
	comm, pid, tid, cpu uint64
	comms               []uint64 // by StringID
	sub                 []byte
}

func newLabels(e *encoder) *labels {
	return &labels{e: e, comms: make([]uint64, len(e.p.Strings))}
}

// append writes the labels of a sample; those that folding left out are absent.
func (l *labels) append(b []byte, s *ingest.Sample) []byte {
	if s.Comm != 0 {
		if l.comm == 0 {
			l.comm = l.e.str("comm")
		}
		if l.comms[s.Comm] == 0 {
			l.comms[s.Comm] = l.e.str(ingest.Printable(l.e.p.Strings[s.Comm]))
		}
		l.sub = appendField(appendField(l.sub[:0], 1, l.comm), 2, l.comms[s.Comm])
		b = appendBytes(b, 3, l.sub)
	}
	b = l.number(b, &l.pid, "pid", s.PID)
	b = l.number(b, &l.tid, "tid", s.TID)
	b = l.number(b, &l.cpu, "cpu", s.CPU)
	if s.Tags == 0 {
		return b
	}
	for t := range l.e.p.AllTags(s) {
		l.sub = appendField(l.sub[:0], labelKey, l.e.str(ingest.Printable(t.Key)))
		switch {
		case !t.Numeric:
			l.sub = appendField(l.sub, labelText, l.e.str(ingest.Printable(t.Text)))
		default:
			l.sub = appendField(l.sub, labelNumber, uint64(t.Number))
			if t.Unit != "" {
				l.sub = appendField(l.sub, labelUnit, l.e.str(ingest.Printable(t.Unit)))
			}
		}
		b = appendBytes(b, sampleLabel, l.sub)
	}
	return b
}

// number writes a numeric label. A zero is left out: readers do not distinguish it from
// an absent one (readLabels restores it).
func (l *labels) number(b []byte, key *uint64, name string, v int32) []byte {
	if v <= 0 {
		return b
	}
	if *key == 0 {
		*key = l.e.str(name)
	}
	l.sub = appendField(l.sub[:0], 1, *key)
	l.sub = appendField(l.sub, 3, uint64(v))
	return appendBytes(b, 3, l.sub)
}

// locations writes all locations; unresolved ones refer to functions numbered after the named ones,
// in order of location.
func (e *encoder) locations() {
	names := e.p.Names
	unresolved := uint64(0)
	if names != nil {
		unresolved = uint64(len(names.Functions))
	}
	for i := range e.p.Locations {
		l := &e.p.Locations[i]
		address := uint64(l.Offset)
		e.msg = appendField(e.msg[:0], 1, uint64(i)+1)
		var m *mapping
		if n := e.plan.mapping[i]; n > 0 {
			m = &e.plan.mappings[n-1]
			address += m.delta
			e.msg = appendField(e.msg, 2, uint64(n))
		}
		e.msg = appendField(e.msg, 3, address)
		var frames []ingest.Frame
		if names != nil {
			frames = names.At(ingest.LocationID(i))
		}
		for k := range frames {
			f := &frames[k]
			e.line(uint64(f.Func)+1, uint64(f.Line), uint64(f.Column))
			if m != nil {
				m.functions = true
				m.files = m.files || names.Functions[f.Func].File != ""
				m.lines = m.lines || f.Line != 0
				m.inlined = m.inlined || f.Inlined
			}
		}
		if len(frames) == 0 {
			unresolved++
			e.line(unresolved, 0, 0)
		}
		e.out.message(profLocation, e.msg)
	}
}

func (e *encoder) line(function, line, column uint64) {
	e.sub = appendField(e.sub[:0], 1, function)
	e.sub = appendField(e.sub, 2, line)
	e.sub = appendField(e.sub, 3, column)
	e.msg = appendBytes(e.msg, 4, e.sub)
}

func (e *encoder) mappings() {
	for i := range e.plan.mappings {
		m := &e.plan.mappings[i]
		o := &e.p.Objects[m.object]
		e.msg = appendField(e.msg[:0], 1, uint64(i)+1)
		e.msg = appendField(e.msg, 2, m.start)
		e.msg = appendField(e.msg, 3, m.limit)
		e.msg = appendField(e.msg, 4, m.offset)
		e.msg = appendField(e.msg, 5, e.str(fileText(o, m.object, &e.opts)))
		e.msg = appendField(e.msg, 6, e.str(buildIDText(o.ID)))
		e.msg = appendBool(e.msg, 7, m.functions)
		e.msg = appendBool(e.msg, 8, m.files)
		e.msg = appendBool(e.msg, 9, m.lines)
		e.msg = appendBool(e.msg, 10, m.inlined)
		e.out.message(profMapping, e.msg)
	}
}

// functions writes the named functions, then one per unresolved location.
func (e *encoder) functions() {
	id := uint64(0)
	names := e.p.Names
	if names != nil {
		guessed := guessedNames(names)
		for i := range names.Functions {
			f := &names.Functions[i]
			id++
			system := e.str(ingest.Printable(f.SystemName))
			name := system
			if reason, ok := guessed[ingest.FuncID(i)]; ok {
				system = e.str(UnresolvedPrefix + reason.String())
				e.function(id, name, system, 0, 0)
				continue
			}
			if e.opts.Demangle != nil {
				name = e.str(ingest.Printable(e.opts.Demangle(f.SystemName)))
			}
			e.function(id, name, system, e.str(ingest.Printable(f.File)), uint64(f.StartLine))
		}
	}
	for i := range e.p.Locations {
		if names != nil && len(names.At(ingest.LocationID(i))) > 0 {
			continue
		}
		id++
		l := &e.p.Locations[i]
		e.buf = ingest.AppendUnresolved(e.buf[:0], &e.p.Objects[l.Object], l.Offset)
		reason := ingest.NotIndexed
		if names != nil {
			reason = names.Reasons[i]
		}
		e.function(id, e.fresh(string(e.buf)), e.str(UnresolvedPrefix+reason.String()), 0, 0)
	}
}

// guessedNames returns the functions that have no name of their own, with the reason.
func guessedNames(n *ingest.Names) map[ingest.FuncID]ingest.Reason {
	found := make(map[ingest.FuncID]ingest.Reason)
	for l, reason := range n.Reasons {
		if reason == ingest.ReasonNone || n.Named(ingest.LocationID(l)) {
			continue
		}
		if frames := n.At(ingest.LocationID(l)); len(frames) > 0 {
			found[frames[len(frames)-1].Func] = reason
		}
	}
	return found
}

func (e *encoder) function(id, name, system, file, line uint64) {
	e.msg = appendField(e.msg[:0], 1, id)
	e.msg = appendField(e.msg, 2, name)
	e.msg = appendField(e.msg, 3, system)
	e.msg = appendField(e.msg, 4, file)
	e.msg = appendField(e.msg, 5, line)
	e.out.message(profFunction, e.msg)
}

func (e *encoder) head(h ingest.PprofHeader) {
	m := &e.p.Meta
	e.out.field(profDropFrames, e.str(ingest.Printable(h.DropFrames)))
	e.out.field(profKeepFrames, e.str(ingest.Printable(h.KeepFrames)))
	e.out.field(profTime, uint64(m.StartNanos))
	e.out.field(profDuration, uint64(m.Duration))
	if h.PeriodType != "" || h.PeriodUnit != "" {
		e.valueType(profPeriodType, h.PeriodType, h.PeriodUnit)
	}
	e.out.field(profPeriod, uint64(h.Period))
	for _, c := range e.comments() {
		e.out.field(profComment, e.str(ingest.Printable(c)))
	}
	e.out.field(profDefaultType, e.str(ingest.Printable(h.DefaultType)))
	e.out.field(profDocURL, e.str(ingest.Printable(h.DocURL)))
}
