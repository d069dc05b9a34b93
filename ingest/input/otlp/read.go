package otlp

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"symbolize/ingest"
	"symbolize/ingest/decode"
	"symbolize/ingest/input/named"
	"symbolize/ingest/input/pprof"
	"symbolize/ingest/intern"
	"symbolize/ingest/protobuf"
)

// Select selects samples by their labels, and the labels to keep.
type Select = named.Options

// Options select the samples of a file.
type Options struct {
	Select
	// From and Until select samples by their time, inclusive, in ns since 1970; both are 0 for all.
	From, Until uint64
}

// Read reads a file with profiles of OpenTelemetry, of size bytes: a message in protobuf, or many in
// protobuf or JSON. Samples are counted by stack and labels. Names are kept in Names; locations
// without a name are left to resolve. What is damaged is left out, with a Partial warning; it is an
// error if nothing remains.
func Read(name string, in io.ReaderAt, size int64, opts Options) (*ingest.Profile, error) {
	r := newReader(name, opts)
	f := &file{name: name, r: in, size: size, most: opts.MaxUnpacked}
	damage, err := f.messages(r.message)
	if err != nil {
		return nil, err
	}
	damage = append(damage, r.damage...)
	if len(damage) > 0 && r.b.P.Stats.Samples == 0 {
		return nil, damage[0]
	}
	return r.finish(damage), nil
}

// messageReader folds the messages of a file.
type messageReader struct {
	contents
	name   string
	opts   Options
	b      *named.Builder
	labels labels

	// Of the current message, by index in its tables; 0 is not known yet.
	mappings, kernelMappings []uint32 // index in mapped + 1
	places, stacks           []uint32 // the Builder's number + 1
	functions                []objectFunction

	seed          intern.Seed
	mapped        []*named.Mapped
	mappedAt      intern.Table[uint32]        // index in mapped + 1, by the hash of all fields
	functionsAt   intern.Table[ingest.FuncID] // likewise
	hashes        []uint64                    // of functions' names, by FuncID; 0 is not known yet
	frameTypes    map[string]*frameType
	noType        frameType // of locations that have none
	before        *bool     // the message before is of release 1.8 or 1.9; nil if there is none
	raw           rawMapping
	key           []byte // scratch, like the following
	indices       []uint64
	list          []uint32
	location      location
	frames        []ingest.Frame
	samples       []span // of the current profile
	sample        sample
	events        map[eventKey]*event
	asked         map[string]bool // events in the file
	negative, bad uint64
	badPeriods    uint64
	firstBad      error
	at            int64  // offset of the current message in the file
	end           uint64 // of all profiles, ns since 1970
	damage        []error
	recorder      string
	observer      *observer // of Replay, otherwise nil
}

// eventKey identifies an event.
type eventKey struct{ name, unit string }

// event is an event of the profile.
type event struct {
	number    uint16
	oneColumn bool // the counts are the values
	skip      bool // not the requested one
}

func newReader(name string, opts Options) *messageReader {
	r := &messageReader{name: name, opts: opts, b: named.NewBuilder(),
		seed:       intern.MakeSeed(),
		frameTypes: make(map[string]*frameType), events: make(map[eventKey]*event), asked: make(map[string]bool)}
	r.b.Identify = opts.Select.Identify
	r.labels.init(&r.opts.Select)
	r.b.P.Meta.Captures = []string{name}
	return r
}

// message folds a message.
func (r *messageReader) message(p part) error {
	r.at = p.at
	err := r.split(p.data, func() error {
		r.labels.clear()
		if err := r.begin(p.json); err != nil {
			return err
		}
		for _, s := range r.resources {
			if err := r.resource(s); err != nil {
				return err
			}
		}
		return nil
	})
	r.b.Compact()
	if err != nil {
		r.damage = append(r.damage, &decode.Error{Name: r.name, Offset: p.at,
			Reason: fmt.Sprintf("message of %d bytes: %v", len(p.data), err)})
	}
	return nil
}

// begin forgets the message before, and brings the current one into the current version. In JSON
// names tell, and were understood.
func (r *messageReader) begin(wasJSON bool) error {
	mappings := len(r.tables[mappingTable])
	r.mappings = emptied(r.mappings, mappings)
	r.kernelMappings = emptied(r.kernelMappings, mappings)
	r.places = emptied(r.places, len(r.tables[locationTable]))
	r.stacks = emptied(r.stacks, len(r.tables[stackTable]))
	r.functions = emptied(r.functions, len(r.tables[functionTable]))
	if wasJSON {
		return nil
	}
	old, err := r.isFormer(r.before)
	if err != nil {
		return err
	}
	r.before = &old
	if !old {
		return nil
	}
	return r.upgrade()
}

// emptied returns a list of n zero values, in the memory of an older one if that is enough.
func emptied[T any](list []T, n int) []T {
	if cap(list) < n {
		return make([]T, n)
	}
	list = list[:n]
	clear(list)
	return list
}

// resource folds a ResourceProfiles.
func (r *messageReader) resource(s span) error {
	r.labels.scope = r.labels.scope[:0]
	err := r.below(s, []uint64{resourceResource, 1}, func(s span) error {
		var a attribute
		a.key, a.value = r.keyValue(r.bytes(s))
		r.resourceAttribute(&a)
		return nil
	})
	if err != nil {
		return err
	}
	r.labels.enter()
	return r.below(s, []uint64{resourceScopes}, func(scope span) error {
		if err := r.readScope(scope); err != nil {
			return err
		}
		return r.below(scope, []uint64{scopeProfile}, r.profile)
	})
}

// readScope keeps the name of the profiler, if all have the same.
func (r *messageReader) readScope(scope span) error {
	return r.below(scope, []uint64{scopeScope}, func(s span) error {
		var name, version []byte
		k := r.fields(s)
		for k.Next() {
			switch k.Number {
			case 1:
				name = k.Body
			case 2:
				version = k.Body
			}
		}
		text := strings.TrimSpace(string(name) + " " + string(version))
		m := &r.b.P.Meta
		if r.recorder == "" {
			r.recorder, m.Recorder = text, text
		} else if m.Recorder != text {
			m.Recorder = ""
		}
		return k.Err
	})
}

// profile folds a Profile.
func (r *messageReader) profile(s span) error {
	var typ, period eventKey
	var start, duration uint64
	var length int64
	var attributes []uint64
	r.samples = r.samples[:0]
	k := r.fields(s)
	for k.Next() {
		var err error
		ok := true
		switch k.Number {
		case profileSample:
			if k.Wire == protobuf.Bytes {
				r.samples = append(r.samples, k.span())
			}
		case profileType:
			typ, err = r.valueType(k.Body)
		case profilePeriodType:
			period, err = r.valueType(k.Body)
		case profileTime:
			start = k.Value
		case profileDuration:
			duration = k.Value
		case profilePeriod:
			if length = int64(k.Value); length < 0 {
				r.badPeriods++
				length = 0
			}
		case profileAttributes:
			attributes, ok = protobuf.Numbers(attributes, &k.Field)
		}
		if !ok {
			err = protobuf.ErrMalformed
		}
		if err != nil {
			return err
		}
	}
	if k.Err != nil {
		return k.Err
	}
	r.times(start, duration)
	r.period(period, length)
	ev := r.event(typ, period, length)
	if ev.skip {
		return nil
	}
	if err := r.labels.profile(r, attributes); err != nil {
		return err
	}
	for _, s := range r.samples {
		if err := r.fold(r.bytes(s), ev); err != nil {
			r.bad++
			if r.firstBad == nil {
				r.firstBad = fmt.Errorf("%w, in the message at offset %d", err, r.at)
			}
		}
	}
	return nil
}

// valueType decodes a ValueType.
func (r *messageReader) valueType(b []byte) (typ eventKey, err error) {
	k := protobuf.Fields(b)
	for k.Next() {
		text, err := r.entry(stringTable, k.Value)
		switch {
		case k.Number > 2: // the aggregation of release 1.8
		case err != nil:
			return typ, err
		case k.Number == 1:
			typ.name = string(text)
		default:
			typ.unit = string(text)
		}
	}
	return typ, k.Err
}

// event returns the event of a type of samples.
func (r *messageReader) event(k, period eventKey, length int64) *event {
	ev := r.events[k]
	if ev != nil {
		if !ev.skip {
			if e := &r.b.P.Events[ev.number]; e.Period != fixedPeriod(k, period, length) {
				e.Period = 0
			}
		}
		return ev
	}
	ev = &event{oneColumn: k.unit == "count"}
	r.events[k] = ev
	r.asked[k.name] = true
	if r.opts.Event != "" && k.name != r.opts.Event || len(r.b.P.Events) == math.MaxUint16 {
		ev.skip = true
		return ev
	}
	ev.number = uint16(len(r.b.P.Events))
	r.b.P.Events = append(r.b.P.Events, ingest.Event{Name: k.name, Unit: k.unit,
		Period: fixedPeriod(k, period, length)})
	return ev
}

// fixedPeriod is the period of an event that is sampled by its own count.
func fixedPeriod(k, period eventKey, length int64) uint64 {
	if k != period {
		return 0
	}
	return uint64(length)
}

// times extends the time of the profile.
func (r *messageReader) times(start, duration uint64) {
	m := &r.b.P.Meta
	switch {
	case start == 0 && duration <= math.MaxInt64:
		m.Duration = max(m.Duration, int64(duration))
		return
	case start > math.MaxInt64 || duration > math.MaxInt64-start:
		return
	}
	if m.StartNanos == 0 || int64(start) < m.StartNanos {
		m.StartNanos = int64(start)
	}
	r.end = max(r.end, start+duration)
}

// period keeps the type and the length of the period, if all profiles have the same.
func (r *messageReader) period(k eventKey, length int64) {
	if k == (eventKey{}) {
		return
	}
	h := ingest.PprofHeader{PeriodType: k.name, PeriodUnit: k.unit, Period: length}
	m := &r.b.P.Meta
	switch {
	case m.Pprof == nil:
		m.Pprof = &h
	case m.Pprof.PeriodType != k.name || m.Pprof.PeriodUnit != k.unit:
		m.Pprof.PeriodType, m.Pprof.PeriodUnit, m.Pprof.Period = "", "", 0
	case m.Pprof.Period != length:
		m.Pprof.Period = 0
	}
}

// headerAttribute keeps what a pprof file has as a field: comments, each once, and the first value of
// each other key.
func (r *messageReader) headerAttribute(key string, list []string) {
	m := &r.b.P.Meta
	if key == keyComment {
		for _, text := range list {
			if command, ok := strings.CutPrefix(text, pprof.CommentCommand); ok && m.Command == "" {
				m.Command = command
			} else if !ok && !slices.Contains(m.Comments, text) {
				m.Comments = append(m.Comments, text)
			}
		}
		return
	}
	if m.Pprof == nil {
		m.Pprof = &ingest.PprofHeader{}
	}
	field := map[string]*string{keyDropFrames: &m.Pprof.DropFrames, keyKeepFrames: &m.Pprof.KeepFrames,
		keyDocURL: &m.Pprof.DocURL}[key]
	if len(list) > 0 && *field == "" {
		*field = list[0]
	}
}

// resourceAttribute uses an attribute of a resource.
func (r *messageReader) resourceAttribute(a *attribute) {
	a.kind = kindOf(a.key)
	if a.kind == hostNameKind {
		var t ingest.Tag
		r.tag(&t, a.value)
		m := &r.b.P.Meta
		if m.Host == "" && len(r.asked) == 0 {
			m.Host = t.Text
		} else if m.Host != t.Text {
			m.Host = ""
		}
	}
	r.labels.addScope(&r.contents, a)
}

// finish makes the profile and its warnings.
func (r *messageReader) finish(damage []error) *ingest.Profile {
	p := r.b.P
	if r.end > uint64(p.Meta.StartNanos) && p.Meta.StartNanos > 0 {
		p.Meta.Duration = int64(r.end) - p.Meta.StartNanos
	}
	r.columns()
	r.b.Profile()
	pairEvents(p)
	count(p)
	p.Meta.MainProgram = p.MainProgram(func(s *ingest.Sample) uint64 { return s.Weight })
	if h := p.Meta.Pprof; h != nil && len(p.Events) > 0 {
		h.DefaultType = p.Events[0].Name // the first profile is the one to show
	}
	warn := func(partial bool, format string, args ...any) {
		p.Stats.Warnings = append(p.Stats.Warnings, ingest.Warning{Partial: partial,
			Text: fmt.Sprintf(format, args...)})
	}
	for _, err := range damage[:min(len(damage), maxWarnings)] {
		warn(true, "%v", err)
	}
	if more := len(damage) - maxWarnings; more > 0 {
		warn(true, "%s: %d more messages are damaged", r.name, more)
	}
	if r.bad > 0 {
		warn(true, "%s: %d of %d samples left out: %v", r.name, r.bad, r.bad+p.Stats.Records, r.firstBad)
	}
	if r.negative > 0 {
		warn(false, "%s: %d negative values left out", r.name, r.negative)
	}
	if r.badPeriods > 0 {
		warn(false, "%s: %d negative periods left out", r.name, r.badPeriods)
	}
	r.labels.Warn(r.name, &p.Stats)
	p.Stats.BadRecords += r.bad
	return p
}

// maxWarnings bounds the warnings about damaged messages.
const maxWarnings = 10

// columns makes the values of events without times their counts.
func (r *messageReader) columns() {
	p := r.b.P
	one := make([]bool, len(p.Events))
	for _, ev := range r.events {
		if !ev.skip && ev.oneColumn {
			one[ev.number], p.Events[ev.number].OneColumn = true, true
		}
	}
	for i := range p.Samples {
		if s := &p.Samples[i]; one[s.Event] {
			s.Count = s.Weight
		}
	}
}

// count counts the samples with their final counts.
func count(p *ingest.Profile) {
	st := &p.Stats
	st.Samples, st.Weight, st.Frames = 0, 0, 0
	for i := range p.Samples {
		s := &p.Samples[i]
		st.Samples += s.Count
		st.Weight += s.Weight
		for range p.Frames(s.Stack) {
			st.Frames += s.Count
		}
	}
}

var errShape = errors.New("a sample without values and times, or with different numbers of them")
