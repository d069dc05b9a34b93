package ingest

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"symbolize/buildid"
	"symbolize/ingest/addr"
)

// Words of tags, the labels that only samples of some captures have. TimeTag is followed by a
// duration, FieldTag by the name of a tracepoint's field, LabelTag by the key of a label of pprof
// files.
const (
	CgroupTag    = "cgroup"    // the path of the control group
	ContainerTag = "container" // the ID in that path, "" if none
	// Of the Kubernetes pod of that path, with a list of pods: its namespace, its name, and its
	// controller, as in "deployment/web".
	NamespaceTag = "namespace"
	PodTag       = "pod"
	WorkloadTag  = "workload"
	// Of the data that the sampled instruction accesses: its type, and the member; in parentheses why
	// they are not known. Captures do not have them: they follow from tables of types.
	DataTypeTag  = "type"
	DataFieldTag = "field"
	// AddressTag is where the data is that the sampled instruction accesses, as "totals+0x8", or the memory:
	// "[heap]", "anon".
	AddressTag = "data"
	// MemoryTag is the level of the memory that served the sampled access, as in "L1 hit".
	MemoryTag = "mem"
	// LatencyTag is LatencyWeight as a number.
	LatencyTag = LatencyWeight
	// ParallelismTag is how many recorded threads ran with the sample.
	ParallelismTag = "parallelism"
	TimeTag        = "time:"  // "time:10s": the start of an interval of that length
	FieldTag       = "field:" // "field:call_site"
	LabelTag       = "label:" // "label:thread_name"
	AllLabels      = "label"  // all labels of a pprof or OTLP file
)

// FieldLabels are the words of the labels that are fields of Sample, not tags.
var FieldLabels = [...]string{"comm", "pid", "tid", "cpu"}

// PredictionTag is the key of the tag of branches; the other constants are its values.
const (
	PredictionTag = "prediction"
	Predicted     = "predicted"
	Mispredicted  = "mispredicted"
)

// BranchTag is the key of the tag for samples made by input.BranchRuns and BranchTraces; the other constants are
// its values.
const (
	BranchTag     = "part"
	BranchSampled = "sampled" // a stack of the sampled address
	BranchTaken   = "taken"   // a branch: its target, and its source
	BranchRun     = "run"     // code between two branches: the first instruction, and the last
	BranchBogus   = "bogus"   // impossible code between two branches
	BranchTrace   = "trace"   // a branch and the code after it: the last instruction, target, source
)

// Derived events: Events of a perf.data whose samples are times between two records, in ns.
const (
	OffCPUEvent   = "off-cpu"   // threads that do not run; stacks of where they stopped
	WallEvent     = "wall"      // the same, and the samples of running threads
	RunQueueEvent = "run-queue" // ready threads without a CPU; stacks of what ran instead
	PairEvent     = "pair:"     // "pair:START,END:KEY": the time from a start to an end
)

// Keys of the tags of derived events, which are words of tags, too.
const (
	StateTag   = "state"   // why a thread does not run, as sched_switch has it, or RunningState
	WakerTag   = "waker"   // the name of the thread that woke it
	InsteadTag = "instead" // the name of the thread that ran before it
	PairTag    = "pair"    // what * in the name of the start stands for

	RunningState = "running" // of samples of running threads
)

// UnknownLevel is the MemoryTag of samples without a level.
const UnknownLevel = "N/A"

// LatencyWeight is the name of the weight of samples that processors measure: the time of the access, in cycles.
const LatencyWeight = "latency"

// PodTags are the words of tags that need a list of pods.
var PodTags = [...]string{NamespaceTag, PodTag, WorkloadTag}

// DerivedTag reports whether a word is of a tag that only derived events have.
func DerivedTag(word string) bool {
	return word == StateTag || word == WakerTag || word == InsteadTag || word == PairTag
}

// DataTag reports whether a word names a tag that is added when a profile is named.
func DataTag(word string) bool { return word == DataTypeTag || word == DataFieldTag }

// NamespaceTags are the words of tags for the number of a namespace, in the order of
// perfdata.Namespaces.
var NamespaceTags = [...]string{"netns", "utsns", "ipcns", "pidns", "userns", "mntns", "cgroupns"}

// MaxTags bounds the tags of samples.
const MaxTags = 8

// ParseTag checks a word of a tag.
func ParseTag(word string) error {
	if length, ok := strings.CutPrefix(word, TimeTag); ok {
		d, err := time.ParseDuration(length)
		if err != nil || d < time.Microsecond {
			return fmt.Errorf("%q: a time is at least 1us, as in time:10s or time:100ms", word)
		}
		return nil
	}
	for _, prefix := range []string{FieldTag, LabelTag} {
		if name, ok := strings.CutPrefix(word, prefix); ok && name != "" {
			return nil
		}
	}
	if word == AllLabels || plainTag(word) {
		return nil
	}
	return errors.New("no such label")
}

// plainTag reports whether a word is a tag of perf.data files without a parameter.
func plainTag(word string) bool {
	return word == CgroupTag || word == ContainerTag || DataTag(word) || word == AddressTag || word == MemoryTag || word == LatencyTag || word == ParallelismTag || DerivedTag(word) ||
		slices.Contains(NamespaceTags[:], word) || slices.Contains(PodTags[:], word)
}

// CanonicalLabel returns the key of a LabelTag if that is a word of its own, like "cgroup" or
// "pid", otherwise the word itself.
func CanonicalLabel(word string) string {
	if key, ok := strings.CutPrefix(word, LabelTag); ok &&
		(plainTag(key) || slices.Contains(FieldLabels[:], key)) {
		return key
	}
	return word
}

// TagWords describes all words of tags, for messages.
func TagWords() string {
	return CgroupTag + ", " + ContainerTag + ", " + strings.Join(PodTags[:], ", ") + ", " +
		ParallelismTag + ", " + strings.Join(NamespaceTags[:], ", ") +
		", " + StateTag + ", " + WakerTag + ", " + DataTypeTag + ", " + DataFieldTag + ", " + AddressTag + ", " + MemoryTag + ", " + LatencyTag + ", time:DURATION, field:NAME, label:KEY"
}

// Add adds a label by its word.
func (k *Keep) Add(word string) error {
	switch word {
	case "comm":
	case "pid":
		k.PID = true
	case "tid":
		k.TID = true
	case "cpu":
		k.CPU = true
	default:
		words := k.TagList()
		if slices.Contains(words, word) {
			break
		}
		if len(words) == MaxTags {
			return fmt.Errorf("more than %d such labels", MaxTags)
		}
		k.Tags = strings.Join(append(words, word), ",")
	}
	return nil
}

// Accesses reports whether what samples access is to be found, for DataTags or for Access.
func (k *Keep) Accesses() bool { return k.Access || slices.ContainsFunc(k.TagList(), DataTag) }

// MemoryText returns the text of AddressTag for memory of an object without a name of its own, "[heap]".
func MemoryText(o *Object) string { return "[" + ShortName(o) + "]" }

// Places reports whether samples need the places of the data that they access, for AddressTag or Accesses.
func (k *Keep) Places() bool { return k.Accesses() || slices.Contains(k.TagList(), AddressTag) }

// TagList returns the words of the tags.
func (k *Keep) TagList() []string {
	if k.Tags == "" {
		return nil
	}
	return strings.Split(k.Tags, ",")
}

// LabelWords returns the tags of pprof files, and the tags of other captures.
func (k *Keep) LabelWords() (labels, others []string) {
	for _, word := range k.TagList() {
		if word == AllLabels || strings.HasPrefix(word, LabelTag) {
			labels = append(labels, word)
		} else {
			others = append(others, word)
		}
	}
	return labels, others
}

// TagKey is the name of a tag in the samples of a profile and in pprof files: the field for
// FieldTag, the key for LabelTag, "time" for TimeTag, otherwise its word.
func TagKey(word string) string {
	for _, prefix := range []string{FieldTag, LabelTag} {
		if name, ok := strings.CutPrefix(word, prefix); ok {
			return name
		}
	}
	if strings.HasPrefix(word, TimeTag) {
		return strings.TrimSuffix(TimeTag, ":")
	}
	return word
}

// Tag is a label of a sample besides comm, pid, tid and cpu: a text, or a number with its unit.
type Tag struct {
	Key     string
	Text    string
	Numeric bool
	Number  int64
	Unit    string // "" if unknown

	place string // of a text that is an address: see Place
}

// At returns a tag with a text that is an address, and the place of the address in an object. Naming
// a profile replaces such a text by the symbol there.
func (t Tag) At(o *Object, offset addr.Offset) Tag {
	t.place = strings.Join([]string{strconv.Itoa(int(o.Kind)), o.ID.String(), withoutMarks.Replace(o.RefSymbol),
		strconv.FormatUint(uint64(offset), 16), withoutMarks.Replace(o.File.Path), withoutMarks.Replace(o.Symbol)},
		placeMark)
	return t
}

// Place returns the place that At set: of an object the kind, the build ID, the reference symbol,
// the path and the symbol. ok is false if there is none.
func (t Tag) Place() (o Object, offset addr.Offset, ok bool) {
	parts := strings.Split(t.place, placeMark)
	if len(parts) != 6 {
		return o, 0, false
	}
	kind, err1 := strconv.ParseUint(parts[0], 10, 8)
	id, err2 := buildid.Parse(parts[1])
	n, err3 := strconv.ParseUint(parts[3], 16, 64)
	if parts[1] == "" {
		err2 = nil
	}
	o = Object{Kind: ObjectKind(kind), ID: id, RefSymbol: parts[2], File: FileRef{Path: parts[4]},
		Symbol: parts[5], Kernel: NoObject}
	return o, addr.Offset(n), err1 == nil && err2 == nil && err3 == nil
}

// Value returns the text of a tag, or its number and unit.
func (t Tag) Value() string {
	switch {
	case !t.Numeric:
		return t.Text
	case t.Unit == "" || t.Unit == t.Key:
		return strconv.FormatInt(t.Number, 10)
	}
	return strconv.FormatInt(t.Number, 10) + " " + t.Unit
}

// tagSeparator separates keys and values of tags; numberMark precedes a number and its unit, and
// placeMark the parts of the place of an address. They do not occur in names of the kernel.
const (
	tagSeparator = "\x00"
	numberMark   = "\x01"
	placeMark    = "\x02"
)

var withoutMarks = strings.NewReplacer(tagSeparator, "", numberMark, "", placeMark, "")

// JoinTags returns the text of Sample.Tags for alternating keys and values; tags without a value
// are left out.
func JoinTags(keysAndValues ...string) string {
	var list []Tag
	for i := 0; i+1 < len(keysAndValues); i += 2 {
		list = append(list, Tag{Key: keysAndValues[i], Text: keysAndValues[i+1]})
	}
	return EncodeTags(list)
}

// EncodeTags returns the text of Sample.Tags; tags with an empty text are left out.
func EncodeTags(tags []Tag) string {
	var b strings.Builder
	for _, t := range tags {
		if !t.Numeric && t.Text == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteString(tagSeparator)
		}
		b.WriteString(withoutMarks.Replace(t.Key))
		b.WriteString(tagSeparator)
		if !t.Numeric {
			b.WriteString(withoutMarks.Replace(t.Text))
			if t.place != "" {
				b.WriteString(placeMark + t.place)
			}
			continue
		}
		b.WriteString(numberMark + strconv.FormatInt(t.Number, 10) + numberMark)
		b.WriteString(withoutMarks.Replace(t.Unit))
	}
	return b.String()
}

// AppendTags returns the text of Sample.Tags for the tags in two such texts.
func AppendTags(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + tagSeparator + b
}

// Latency returns the profile with the weight of each sample divided by its tag ParallelismTag: wall-
// clock time if the weight is processor time. Samples without the tag keep theirs. The profiles share
// all tables.
func (p *Profile) Latency() *Profile {
	running := make(map[StringID]uint64)
	out := *p
	out.Samples = slices.Clone(p.Samples)
	for i := range out.Samples {
		s := &out.Samples[i]
		n, ok := running[s.Tags]
		if !ok {
			n, _ = strconv.ParseUint(p.Tag(s, ParallelismTag), 10, 64) // 0 if there is none
			n = max(n, 1)
			running[s.Tags] = n
		}
		s.Weight /= n
	}
	return &out
}

// AllTags returns the tags of a sample in their order. A key can occur several times.
func (p *Profile) AllTags(s *Sample) iter.Seq[Tag] { return DecodeTags(p.Strings[s.Tags]) }

// DecodeTags returns the tags of a text of EncodeTags.
func DecodeTags(text string) iter.Seq[Tag] {
	return func(yield func(Tag) bool) {
		for text := text; text != ""; {
			var t Tag
			t.Key, text, _ = strings.Cut(text, tagSeparator)
			t.Text, text, _ = strings.Cut(text, tagSeparator)
			t.Text, t.place, _ = strings.Cut(t.Text, placeMark)
			if number, ok := strings.CutPrefix(t.Text, numberMark); ok {
				number, t.Unit, _ = strings.Cut(number, numberMark)
				t.Text, t.Numeric = "", true
				t.Number, _ = strconv.ParseInt(number, 10, 64) // EncodeTags wrote it
			}
			if !yield(t) {
				return
			}
		}
	}
}

// Tag returns the value of a tag of a sample by its key, "" if the sample lacks it; several
// values are joined by commas, as pprof does.
func (p *Profile) Tag(s *Sample, key string) string {
	values := ""
	for t := range p.AllTags(s) {
		switch {
		case t.Key != key:
		case values == "":
			values = t.Value()
		default:
			values += "," + t.Value()
		}
	}
	return values
}

// LabelValue returns the value of a label of a sample by its word: one of FieldLabels, or of a tag;
// "" for none.
func (p *Profile) LabelValue(s *Sample, label string) string {
	number := int32(-1)
	switch label {
	case "comm":
		return p.Strings[s.Comm]
	case "pid":
		number = s.PID
	case "tid":
		number = s.TID
	case "cpu":
		number = s.CPU
	default:
		return p.Tag(s, TagKey(label))
	}
	if number < 0 {
		return ""
	}
	return strconv.Itoa(int(number))
}
