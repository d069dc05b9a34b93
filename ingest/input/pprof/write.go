package pprof

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"slices"

	"github.com/klauspost/compress/gzip"

	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/protobuf"
	"symbolize/ingest/texts"
)

// UnresolvedPrefix begins the SystemName of the Function that a pprof file has for an unresolved
// location; a Reason's text follows. Reading such a file restores the reason, so that resolve tries
// again.
const UnresolvedPrefix = "symbolize:unresolved:"

// Segment is an executable segment of an object's runtime file: its p_offset and p_memsz.
type Segment struct {
	Offset addr.Offset
	Size   uint64
}

// WriteOptions are the options of Write. The zero value is valid.
type WriteOptions struct {
	// Layout returns the executable segments of an object, in any order; nil or an
	// empty result keeps the segments that the capture observed.
	Layout func(ingest.ObjectID) []Segment
	// RefShift returns the distance of a kernel object's RefSymbol from `_text`. If it is unknown
	// the mapping is named by the RefSymbol.
	RefShift func(ingest.ObjectID) (addr.Offset, bool)
	// Demangle returns Function.name for a SystemName; nil keeps the latter.
	Demangle func(string) string
	// Count weighs frames by samples instead of periods, for the comment on the share of named
	// frames.
	Count bool
	// Comments follow the profile's own; every text report of pprof prints them.
	Comments []string
}

// Write writes p as a gzipped pprof profile.proto
// (https://github.com/google/pprof/blob/main/proto/profile.proto). Equal profiles give equal bytes.
// Each event has two columns, samples and weight. Strings are valid UTF-8 without control
// characters.
func Write(w io.Writer, p *ingest.Profile, opts WriteOptions) error {
	if p.Names != nil && len(p.Names.FrameEnds) != len(p.Locations) {
		return fmt.Errorf("names of %d locations for a profile of %d", len(p.Names.FrameEnds),
			len(p.Locations))
	}
	out := newBlockWriter(w)
	e := &encoder{p: p, opts: opts, out: out, strings: map[string]uint64{"": 0}}
	e.encode()
	if err := out.Close(); err != nil {
		return fmt.Errorf("pprof output: %w", err)
	}
	return nil
}

// Column is one sample type of a file: the counts or the weights of an event.
type Column struct {
	Type, Unit string
	Event      int
	Count      bool // samples; else weight
}

// Columns returns the sample types of a profile's events. A lone event, or the only clock among
// several, has the column `samples/count`, which Go's PGO and most readers look for; columns of
// other events begin with the event's name, as in perf_data_converter.
func Columns(events []ingest.Event) []Column {
	clocks := 0
	for i := range events {
		if events[i].IsClock() {
			clocks++
		}
	}
	cols := make([]Column, 0, 2*len(events))
	for i := range events {
		ev := &events[i]
		plain := len(events) == 1 || clocks == 1 && ev.IsClock()
		weight := texts.Printable(ev.Name)
		if plain && ev.IsClock() {
			weight = "cpu"
		}
		count := ev.CountColumn
		switch {
		case ev.OneColumn:
			cols = append(cols, Column{Type: weight, Unit: ev.Unit, Event: i})
			continue
		case count != "":
		case plain:
			count = "samples"
		default:
			count = texts.Printable(ev.Name) + "_samples"
		}
		cols = append(cols, Column{Type: count, Unit: "count", Event: i, Count: true},
			Column{Type: weight, Unit: ev.Unit, Event: i})
	}
	return cols
}

// Header returns the header of a file with these columns: a pprof input's if its default column still exists,
// otherwise made from the default event.
func Header(p *ingest.Profile, cols []Column) ingest.PprofHeader {
	var h ingest.PprofHeader
	def := ""
	if len(cols) > 0 {
		ev := p.DefaultEvent()
		i := slices.IndexFunc(cols, func(c Column) bool { return c.Event == ev && !c.Count })
		def = cols[i].Type
		h.PeriodType, h.PeriodUnit = def, cols[i].Unit
		h.Period = int64(p.Events[ev].Period)
	}
	if p.Meta.Pprof != nil {
		h = *p.Meta.Pprof
	} else {
		h.DefaultType = def
	}
	if h.DefaultType != "" && !slices.ContainsFunc(cols,
		func(c Column) bool { return c.Type == h.DefaultType }) {
		h.DefaultType = def
	}
	return h
}

// Prefixes of comments, as written by perf_data_converter.
const (
	// CommentCommand precedes the command line of the recorder.
	CommentCommand = "perf-command:"
	commentVersion = "perf-version:"
	// commentCoverage begins the line that every Write replaces.
	commentCoverage = "symbolize: "
)

func (e *encoder) comments() []string {
	var c []string
	m := &e.p.Meta
	if m.Command != "" {
		c = append(c, CommentCommand+m.Command)
	}
	if m.Recorder != "" {
		c = append(c, commentVersion+m.Recorder)
	}
	c = append(c, m.Comments...)
	c = append(c, e.opts.Comments...)
	innermost, samples := e.p.WeighInnermost(e.opts.Count)
	namedSamples, _ := e.p.NamedFrames(innermost)
	named, all := e.p.NamedFrames(e.p.WeighFrames(e.opts.Count))
	if all.Weight > 0 {
		c = append(c, fmt.Sprintf("%s%.1f%% of samples named by their innermost frame, "+
			"%.1f%% of frames", commentCoverage, 100*namedSamples.Weight/samples.Weight,
			100*named.Weight/all.Weight))
	}
	return c
}

const (
	// block is the number of encoded bytes per write to gzip.
	block = 256 << 10
	// blocks bounds the blocks between encoder and gzip.
	blocks = 4
)

// blockWriter collects protobuf fields in blocks, which a second goroutine compresses by gzip,
// level 1: encoding and compressing are about equally fast.
type blockWriter struct {
	buf  []byte
	full chan []byte
	free chan []byte
	done chan error
}

func newBlockWriter(w io.Writer) *blockWriter {
	b := &blockWriter{
		full: make(chan []byte, blocks),
		free: make(chan []byte, blocks+2),
		done: make(chan error, 1),
	}
	b.buf = make([]byte, 0, block+block/4)
	go b.compress(w)
	return b
}

func (b *blockWriter) compress(w io.Writer) {
	z, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	for block := range b.full {
		if err == nil {
			_, err = z.Write(block)
		}
		b.free <- block[:0]
	}
	if err == nil {
		err = z.Close()
	}
	b.done <- err
}

// flush passes the block to gzip and gets an empty one.
func (b *blockWriter) flush() {
	b.full <- b.buf
	select {
	case b.buf = <-b.free:
	default:
		b.buf = make([]byte, 0, block+block/4)
	}
}

// Close writes the rest and returns the first error of writing.
func (b *blockWriter) Close() error {
	b.full <- b.buf
	close(b.full)
	return <-b.done
}

// message appends a message field, also an empty one, which counts in a table.
func (b *blockWriter) message(field int, msg []byte) {
	b.buf = protobuf.AppendBytes(b.buf, field, msg)
	if len(b.buf) >= block {
		b.flush()
	}
}

func (b *blockWriter) text(field int, s string) {
	b.buf = binary.AppendUvarint(append(b.buf, byte(field<<3|2)), uint64(len(s)))
	b.buf = append(b.buf, s...)
	if len(b.buf) >= block {
		b.flush()
	}
}

func (b *blockWriter) field(field int, v uint64) { b.buf = protobuf.AppendField(b.buf, field, v) }

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

// encoder writes one profile. Messages are assembled in msg and copied to out after their length;
// strings are numbered on first use and written last.
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
	cols := Columns(p.Events)
	head := Header(p, cols)
	for _, c := range cols {
		e.valueType(profSampleType, c.Type, c.Unit)
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

// fresh numbers a string that occurs only once.
func (e *encoder) fresh(s string) uint64 {
	e.table = append(e.table, s)
	return uint64(len(e.table))
}

func (e *encoder) valueType(field int, typ, unit string) {
	e.msg = protobuf.AppendField(e.msg[:0], 1, e.str(texts.Printable(typ)))
	e.msg = protobuf.AppendField(e.msg, 2, e.str(texts.Printable(unit)))
	e.out.message(field, e.msg)
}

// samples writes one Sample per (stack, labels), in this order: with adjacent equal leaves level 1
// of gzip compresses better than the default level does unsorted.
func (e *encoder) samples(cols []Column) {
	p := e.p
	rows := sortByStack(p)
	labels := labels{e: e, comms: make([]uint64, len(p.Strings))}
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
		e.msg = protobuf.AppendBytes(e.msg[:0], 1, stack.packed)
		e.sub = e.sub[:0]
		for _, v := range values {
			e.sub = protobuf.AppendVarint(e.sub, v)
		}
		e.msg = labels.append(protobuf.AppendBytes(e.msg, 2, e.sub), s)
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
	for l := range k.p.Frames(s) {
		k.packed = protobuf.AppendVarint(k.packed, uint64(l)+1)
	}
}

func columnIndex(cols []Column, events int) (count, weight []int) {
	count, weight = make([]int, events), make([]int, events)
	for i := range count {
		count[i] = -1
	}
	for i, c := range cols {
		if c.Count {
			count[c.Event] = i
		} else {
			weight[c.Event] = i
		}
	}
	return count, weight
}

// sortByStack numbers the samples by (stack, labels, event): a counting sort by stack,
// then a sort of the few rows of each stack.
func sortByStack(p *ingest.Profile) []uint32 {
	ends := make([]uint32, len(p.Callers)+1)
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
	for _, to := range ends[:len(p.Callers)] {
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

// append appends the labels of a sample, except those left out by folding.
func (l *labels) append(b []byte, s *ingest.Sample) []byte {
	if s.Comm != 0 {
		if l.comm == 0 {
			l.comm = l.e.str("comm")
		}
		if l.comms[s.Comm] == 0 {
			l.comms[s.Comm] = l.e.str(texts.Printable(l.e.p.Strings[s.Comm]))
		}
		l.sub = protobuf.AppendField(protobuf.AppendField(l.sub[:0], 1, l.comm), 2, l.comms[s.Comm])
		b = protobuf.AppendBytes(b, 3, l.sub)
	}
	b = l.number(b, &l.pid, "pid", s.PID)
	b = l.number(b, &l.tid, "tid", s.TID)
	b = l.number(b, &l.cpu, "cpu", s.CPU)
	if s.Tags == 0 {
		return b
	}
	for t := range l.e.p.AllTags(s) {
		l.sub = protobuf.AppendField(l.sub[:0], labelKey, l.e.str(texts.Printable(t.Key)))
		switch {
		case !t.Numeric:
			l.sub = protobuf.AppendField(l.sub, labelText, l.e.str(texts.Printable(t.Text)))
		default:
			l.sub = protobuf.AppendField(l.sub, labelNumber, uint64(t.Number))
			if t.Unit != "" {
				l.sub = protobuf.AppendField(l.sub, labelUnit, l.e.str(texts.Printable(t.Unit)))
			}
		}
		b = protobuf.AppendBytes(b, sampleLabel, l.sub)
	}
	return b
}

// number appends a numeric label unless it is zero, which readers do not distinguish from an absent
// label (readLabels restores it).
func (l *labels) number(b []byte, key *uint64, name string, v int32) []byte {
	if v <= 0 {
		return b
	}
	if *key == 0 {
		*key = l.e.str(name)
	}
	l.sub = protobuf.AppendField(l.sub[:0], 1, *key)
	l.sub = protobuf.AppendField(l.sub, 3, uint64(v))
	return protobuf.AppendBytes(b, 3, l.sub)
}

// locations writes all locations; unresolved locations refer to functions numbered after the named
// ones, in order of location.
func (e *encoder) locations() {
	names := e.p.Names
	unresolved := uint64(0)
	if names != nil {
		unresolved = uint64(len(names.Functions))
	}
	for i := range e.p.Locations {
		l := &e.p.Locations[i]
		address := uint64(l.Offset)
		e.msg = protobuf.AppendField(e.msg[:0], 1, uint64(i)+1)
		var m *mapping
		if n := e.plan.mapping[i]; n > 0 {
			m = &e.plan.mappings[n-1]
			address += m.delta
			e.msg = protobuf.AppendField(e.msg, 2, uint64(n))
		}
		e.msg = protobuf.AppendField(e.msg, 3, address)
		var frames []ingest.Frame
		if names != nil {
			frames = names.At(ingest.LocationID(i))
		}
		for k := range frames {
			f := &frames[k]
			e.line(uint64(f.Func)+1, uint64(f.Line), uint64(f.Column))
		}
		if m != nil {
			m.facts.Add(names, frames)
		}
		if len(frames) == 0 {
			unresolved++
			e.line(unresolved, 0, 0)
		}
		e.out.message(profLocation, e.msg)
	}
}

func (e *encoder) line(function, line, column uint64) {
	e.sub = protobuf.AppendField(e.sub[:0], 1, function)
	e.sub = protobuf.AppendField(e.sub, 2, line)
	e.sub = protobuf.AppendField(e.sub, 3, column)
	e.msg = protobuf.AppendBytes(e.msg, 4, e.sub)
}

func (e *encoder) mappings() {
	for i := range e.plan.mappings {
		m := &e.plan.mappings[i]
		o := &e.p.Objects[m.object]
		e.msg = protobuf.AppendField(e.msg[:0], 1, uint64(i)+1)
		e.msg = protobuf.AppendField(e.msg, 2, m.start)
		e.msg = protobuf.AppendField(e.msg, 3, m.limit)
		e.msg = protobuf.AppendField(e.msg, 4, m.offset)
		e.msg = protobuf.AppendField(e.msg, 5, e.str(fileText(o, m.object, &e.opts)))
		e.msg = protobuf.AppendField(e.msg, 6, e.str(buildIDText(o.ID)))
		e.msg = protobuf.AppendBool(e.msg, 7, m.facts.Functions)
		e.msg = protobuf.AppendBool(e.msg, 8, m.facts.Files)
		e.msg = protobuf.AppendBool(e.msg, 9, m.facts.Lines)
		e.msg = protobuf.AppendBool(e.msg, 10, m.facts.Inlined)
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
			system := e.str(texts.Printable(f.SystemName))
			name := system
			if reason, ok := guessed[ingest.FuncID(i)]; ok {
				system = e.str(UnresolvedPrefix + reason.String())
				e.function(id, name, system, 0, 0)
				continue
			}
			if e.opts.Demangle != nil {
				name = e.str(texts.Printable(e.opts.Demangle(f.SystemName)))
			}
			e.function(id, name, system, e.str(texts.Printable(f.File)), uint64(f.StartLine))
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

// guessedNames returns the functions without a name of their own, with the reason.
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
	e.msg = protobuf.AppendField(e.msg[:0], 1, id)
	e.msg = protobuf.AppendField(e.msg, 2, name)
	e.msg = protobuf.AppendField(e.msg, 3, system)
	e.msg = protobuf.AppendField(e.msg, 4, file)
	e.msg = protobuf.AppendField(e.msg, 5, line)
	e.out.message(profFunction, e.msg)
}

func (e *encoder) head(h ingest.PprofHeader) {
	m := &e.p.Meta
	e.out.field(profDropFrames, e.str(texts.Printable(h.DropFrames)))
	e.out.field(profKeepFrames, e.str(texts.Printable(h.KeepFrames)))
	e.out.field(profTime, uint64(m.StartNanos))
	e.out.field(profDuration, uint64(m.Duration))
	if h.PeriodType != "" || h.PeriodUnit != "" {
		e.valueType(profPeriodType, h.PeriodType, h.PeriodUnit)
	}
	e.out.field(profPeriod, uint64(h.Period))
	for _, c := range e.comments() {
		e.out.field(profComment, e.str(texts.Printable(c)))
	}
	e.out.field(profDefaultType, e.str(texts.Printable(h.DefaultType)))
	e.out.field(profDocURL, e.str(texts.Printable(h.DocURL)))
}
