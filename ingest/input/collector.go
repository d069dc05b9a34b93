package input

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"symbolize/ingest"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/format/pods"
	"symbolize/ingest/input/merge"
	"symbolize/ingest/sideband"
	"symbolize/ingest/texts"
)

// collector is shared by all workers of the second pass. It is read-only except labels, tags and
// places of addresses, which have locks.
type collector struct {
	*sideband.State
	opts *Options
	selection
	labelling
	tracepoints
	derived  *derivation // nil unless Selection.Event is one
	states   stateNames
	unwinder Unwinder          // nil if no sample has a copied stack
	noTable  map[uint32]uint32 // see locator
}

// selection says which samples are folded, of which event each is, and what it weighs. It does not
// change after the first sample was read.
type selection struct {
	want    *Selection
	events  []ingest.Event
	event   []int          // by event of the file: index in events, -1 if filtered out
	comms   []bool         // selected, by comm; nil for all
	pids    map[int32]bool // nil for all, as are tids and cpus
	tids    map[int32]bool
	cpus    map[int32]bool
	after   uint64 // recorded times of selected samples, both inclusive
	until   uint64
	weights []*perfdata.TracepointField // by event of the file; nil without Selection.Weight
	latency bool                        // Selection.Weight is LatencyWeight, which samples have
}

// labelling numbers the labels of samples.
type labelling struct {
	labels    merge.Numbers[merge.Labels]
	tags      *merge.Numbers[string] // in the form of ingest.JoinTags
	sources   []tagSource            // of the kept tags
	addresses fieldPlaces            // of tags
	data      dataPlaces             // of AddressTag
}

// newCollector applies the filters to the events and comms of the file.
func newCollector(sb *sideband.State, opts *Options) (*collector, error) {
	c := &collector{State: sb, opts: opts, selection: selection{want: &opts.Selection},
		labelling: labelling{tags: newTexts()}}
	if err := cmp.Or(c.chooseEvents(), c.chooseTimes(), c.chooseWeight(), c.tagSources(),
		c.chooseBranches()); err != nil {
		return nil, err
	}
	c.chooseThreads(sb.Threads.CommNames())
	if c.cpus != nil && !c.allHave(perfdata.SampleCPU) {
		return nil, texts.WithHint(fmt.Errorf("%s: samples have no CPUs; --cpu cannot select",
			sb.Records.File.Name), "record it with `perf record --sample-cpu`")
	}
	return c, nil
}

// chooseThreads sets the selected threads and CPUs. comms are the names of all threads.
func (s *selection) chooseThreads(comms []string) {
	if len(s.want.Comms) > 0 {
		s.comms = make([]bool, len(comms))
		for i, name := range comms {
			s.comms[i] = slices.Contains(s.want.Comms, name)
		}
	}
	s.pids, s.tids, s.cpus = setOf(s.want.PIDs), setOf(s.want.TIDs), setOf(s.want.CPUs)
}

// setOf returns the set of a list, nil for an empty one.
func setOf(list []int32) map[int32]bool {
	if len(list) == 0 {
		return nil
	}
	set := make(map[int32]bool, len(list))
	for _, n := range list {
		set[n] = true
	}
	return set
}

// chooseEvents makes one event of the profile for all attrs with the same name.
func (c *collector) chooseEvents() error {
	var names []string
	for i := range c.Records.File.Events {
		if ev := &c.Records.File.Events[i]; !slices.Contains(names, ev.Name) {
			names = append(names, ev.Name)
		}
	}
	wanted := c.want.Event
	if at := ingest.EventNamed(names, wanted); at >= 0 {
		wanted = names[at]
	}
	for i := range c.Records.File.Events {
		ev := &c.Records.File.Events[i]
		at := -1
		if wanted == "" || wanted == ev.Name {
			at = slices.IndexFunc(c.events, func(e ingest.Event) bool { return e.Name == ev.Name })
			if at < 0 {
				at = len(c.events)
				c.events = append(c.events, newEvent(ev))
			} else if c.events[at].Period != newEvent(ev).Period {
				c.events[at].Period = 0
			}
		}
		c.event = append(c.event, at)
	}
	if c.want.Event != "" && len(c.events) == 0 {
		if ok, err := c.derive(); ok {
			return err
		}
		if c.eventNamed(schedSwitch) >= 0 {
			names = append(names, ingest.OffCPUEvent)
		}
		return &ingest.EventError{Capture: c.Records.File.Name, Event: c.want.Event, Has: names}
	}
	return nil
}

func newEvent(ev *perfdata.Event) ingest.Event {
	e := ingest.Event{Name: ev.Name, Unit: "count"}
	const cpuClock, taskClock = 0, 1
	if a := &ev.Attr; a.Type == perfdata.AttrSoftware && (a.Config == cpuClock ||
		a.Config == taskClock) || ev.Name == perfdata.OffCPUEvent {
		e.Unit = "nanoseconds"
	}
	if !ev.Attr.Has(perfdata.FlagFreq) && ev.Attr.SampleType&perfdata.SampleRead == 0 {
		e.Period = ev.Attr.SamplePeriod
	}
	return e
}

// selected reports whether a sample of a thread with the given name passes the filters.
func (c *collector) selected(s *perfdata.Sample, comm uint32) bool {
	if c.pids != nil && !c.pids[s.PID] || c.tids != nil && !c.tids[s.TID] ||
		c.cpus != nil && !c.cpus[int32(s.CPU)] {
		return false
	}
	if c.comms == nil {
		return true
	}
	if comm&sideband.UnnamedThread != 0 {
		return slices.Contains(c.want.Comms, c.Threads.CommName(comm))
	}
	return c.comms[comm]
}

// newTexts returns the numbers of texts, of which "" is 0.
func newTexts() *merge.Numbers[string] {
	t := new(merge.Numbers[string])
	t.Number("")
	return t
}

// tagSource makes one tag: the number of a sample's value, 0 for none, and the text of a number;
// without text the tag is the number.
type tagSource struct {
	key   string
	value func(x *current) uint64
	text  func(value uint64) string
}

// tag is the tag of a value.
func (s *tagSource) tag(value uint64) ingest.Tag {
	if s.text == nil {
		return ingest.Tag{Key: s.key, Numeric: true, Number: int64(value)}
	}
	return ingest.Tag{Key: s.key, Text: s.text(value)}
}

// tagger makes the tags of the samples of one reader.
type tagger struct {
	sources []tagSource
	set     *merge.Numbers[string]
	values  []byte // of the current sample, a word each
	last    []byte // of the previous sample, with the number code
	code    uint32
	known   map[string]uint32
}

// tagSources sets the sources of the kept tags. It fails if no sample of the capture can have one
// of the tags.
func (c *collector) tagSources() error {
	labels, tags := c.want.Keep.LabelWords()
	if err := refuseLabels(c.Records.File.Name, labels); err != nil {
		return err
	}
	for _, word := range slices.Concat(tags, c.recordedOfAccess(tags)) {
		if c.derived != nil && ingest.DerivedTag(word) || ingest.DataTag(word) {
			continue
		}
		src := tagSource{key: ingest.TagKey(word)}
		namespace := slices.Index(ingest.NamespaceTags[:], word)
		switch length, isTime := strings.CutPrefix(word, ingest.TimeTag); {
		case isTime:
			d, err := time.ParseDuration(length)
			if err != nil {
				return err
			}
			src.value, src.text = intervals(uint64(d))
		case ofCgroup(word):
			src.value = func(x *current) uint64 { return x.sample.Cgroup }
			src.text = c.groupText(word)
		case word == ingest.AddressTag:
			src.value = c.dataPlace
			src.text = func(n uint64) string { return strconv.FormatUint(n, 10) } // until addData
		case word == ingest.LatencyTag:
			src.value = func(x *current) uint64 { return c.latencyOf(&x.sample) }
		case word == ingest.MemoryTag:
			src.value = func(x *current) uint64 { return uint64(perfdata.DataSource(x.sample.DataSrc) & perfdata.LevelBits) }
			src.text = func(n uint64) string { return perfdata.DataSource(n).Level() }
		case word == ingest.ParallelismTag:
			if err := c.parallelismTag(&src); err != nil {
				return err
			}
		case strings.HasPrefix(word, ingest.FieldTag):
			if err := c.fieldTag(&src, src.key); err != nil {
				return err
			}
		case namespace >= 0:
			src.value = func(x *current) uint64 {
				return c.Threads.Namespace(x.sample.TID, x.time, namespace)
			}
			src.text = func(n uint64) string { return strconv.FormatUint(n, 10) }
		}
		c.sources = append(c.sources, src)
	}
	if c.opts.Payloads {
		c.payloadPlaces()
	}
	return c.checkTags(tags)
}

// refuseLabels refuses requested labels of pprof files, for other captures.
func refuseLabels(name string, words []string) error {
	for _, word := range words {
		if word != ingest.AllLabels {
			return fmt.Errorf("%s: its samples have no label %s: only pprof and OpenTelemetry files have such labels",
				name, texts.Printable(ingest.TagKey(word)))
		}
	}
	return nil
}

// checkTags refuses tags for which nothing was recorded, and names the option that records them.
func (c *collector) checkTags(words []string) error {
	cgroups, namespaces := false, false
	for i := range c.Records.File.Events {
		a := &c.Records.File.Events[i].Attr
		cgroups = cgroups || a.SampleType&perfdata.SampleCgroup != 0
		namespaces = namespaces || a.Has(perfdata.FlagNamespaces)
	}
	for _, word := range words {
		if slices.Contains(ingest.PodTags[:], word) && c.opts.Pods == nil {
			return texts.WithHint(fmt.Errorf("%s: the label %s needs a list of pods",
				c.Records.File.Name, word),
				"`kubectl get pods -A -o json >pods.json`, and --pods pods.json")
		}
		need, has := "", true
		switch {
		case ofCgroup(word):
			need, has = "perf record --all-cgroups", cgroups
		case slices.Contains(ingest.NamespaceTags[:], word):
			need, has = "perf record --namespaces", namespaces
		case ingest.DerivedTag(word):
			need, has = "perf record -a -g -e sched:sched_switch -e sched:sched_waking`, "+
				"and use `--event off-cpu", c.derived != nil
		case word == ingest.MemoryTag:
			need, has = "perf mem record", c.anyHas(perfdata.SampleDataSrc)
		case word == ingest.LatencyTag:
			need, has = "perf mem record", c.anyHas(perfdata.SampleWeight|perfdata.SampleWeightStruct)
		case word == ingest.AddressTag:
			need, has = "perf record -d", c.hasAddresses()
		case strings.HasPrefix(word, ingest.TimeTag):
			need, has = "perf record --timestamp", c.allHave(perfdata.SampleTime)
		}
		if !has {
			return texts.WithHint(fmt.Errorf("%s: its samples have no %s", c.Records.File.Name,
				ingest.TagKey(word)), "record it with `%s`", need)
		}
	}
	return nil
}

// intervals makes tags with the start of the interval that contains a sample's time, in seconds of
// the recording's clock.
func intervals(length uint64) (func(*current) uint64, func(uint64) string) {
	digits := 0
	for unit := uint64(time.Second); length%unit != 0 && unit > 1; unit /= 10 {
		digits++
	}
	value := func(x *current) uint64 {
		if x.sample.Time == sideband.NoTime {
			return 0
		}
		return x.sample.Time/length + 1
	}
	return value, func(n uint64) string {
		at := (n - 1) * length
		text := strconv.FormatUint(at/1e9, 10)
		if digits > 0 {
			text += "." + fmt.Sprintf("%09d", at%1e9)[:digits]
		}
		return text
	}
}

// ofCgroup reports whether a tag is made from the control group of samples.
func ofCgroup(word string) bool {
	return word == ingest.CgroupTag || word == ingest.ContainerTag ||
		slices.Contains(ingest.PodTags[:], word)
}

// groupText returns the function that makes the text of a tag from the number of a control group.
func (c *collector) groupText(word string) func(uint64) string {
	switch word {
	case ingest.CgroupTag:
		return func(number uint64) string { // or the number if no record has the path
			return cmp.Or(c.Threads.CgroupPath(number), "cgroup "+strconv.FormatUint(number, 10))
		}
	case ingest.ContainerTag: // the innermost one
		return func(number uint64) string { return pods.Container(c.Threads.CgroupPath(number)) }
	}
	return func(number uint64) string {
		pod, ok := c.opts.Pods.Find(c.Threads.CgroupPath(number))
		switch {
		case !ok:
			return ""
		case pod.Workload == "": // the list lacks it
			return "unknown pod " + pod.Name
		case word == ingest.NamespaceTag:
			return pod.Namespace
		case word == ingest.PodTag:
			return pod.Name
		}
		return pod.Workload
	}
}

// newTagger returns the tagger of a reader; nil if no tags are kept.
func (l *labelling) newTagger() *tagger {
	if len(l.sources) == 0 {
		return nil
	}
	return &tagger{sources: l.sources, set: l.tags, known: make(map[string]uint32)}
}

// number returns the number of the tags of a sample.
func (t *tagger) number(x *current) uint32 {
	t.values = t.values[:0]
	for i := range t.sources {
		t.values = binary.LittleEndian.AppendUint64(t.values, t.sources[i].value(x))
	}
	if slices.Equal(t.values, t.last) {
		return t.code
	}
	t.last = append(t.last[:0], t.values...)
	code, ok := t.known[string(t.values)]
	if !ok {
		var list []ingest.Tag
		for i := range t.sources {
			if v := binary.LittleEndian.Uint64(t.values[8*i:]); v != 0 {
				list = append(list, t.sources[i].tag(v))
			}
		}
		code = t.set.Number(ingest.EncodeTags(list))
		t.known[string(t.values)] = code
	}
	t.code = code
	return code
}
