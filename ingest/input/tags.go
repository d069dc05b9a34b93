package input

import (
	"encoding/binary"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"symbolize/ingest"
	"symbolize/ingest/format/perfdata"
)

// tagSet numbers the tags of samples, in the form of ingest.JoinTags, for all readers; 0 are
// none. Readers keep the number of each combination of values.
type tagSet struct {
	mu    sync.Mutex
	index map[string]uint32
	list  []string // by number
}

// at returns the text of a number.
func (s *tagSet) at(n uint32) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.list[n]
}

func (s *tagSet) number(text string) uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.index == nil {
		s.index, s.list = map[string]uint32{"": 0}, []string{""}
	}
	n, ok := s.index[text]
	if !ok {
		n = uint32(len(s.list))
		s.list = append(s.list, text)
		s.index[text] = n
	}
	return n
}

// tagSource makes one tag: a number for the value that a sample has, 0 for none, and
// the text of a number.
type tagSource struct {
	key   string
	value func(r *reader) uint64
	text  func(r *reader, value uint64) string
}

// tagger makes the tags of the samples of one reader.
type tagger struct {
	sources []tagSource
	set     *tagSet
	values  []byte // of the present sample, a word each
	last    []byte // of the sample before, whose tags have the number code
	code    uint32
	known   map[string]uint32
}

// tagSources returns the sources of the tags that are kept, and an error for those that no
// sample of the capture can have.
func (c *collector) tagSources() error {
	labels, tags := c.opts.Keep.LabelWords()
	if err := refuseLabels(c.Records.File.Name, labels); err != nil {
		return err
	}
	for _, word := range tags {
		src := tagSource{key: ingest.TagKey(word)}
		namespace := slices.Index(ingest.NamespaceTags[:], word)
		switch length, isTime := strings.CutPrefix(word, ingest.TimeTag); {
		case isTime:
			d, err := time.ParseDuration(length)
			if err != nil {
				return err
			}
			src.value, src.text = intervals(uint64(d))
		case word == ingest.CgroupTag, word == ingest.ContainerTag:
			src.value = func(r *reader) uint64 { return r.sample.Cgroup }
			src.text = cgroupText
			if word == ingest.ContainerTag {
				src.text = containerText
			}
		case strings.HasPrefix(word, ingest.FieldTag):
			if err := c.fieldTag(&src, src.key); err != nil {
				return err
			}
		case namespace >= 0:
			src.value = func(r *reader) uint64 {
				return r.c.Namespace(r.sample.TID, r.time, namespace)
			}
			src.text = func(_ *reader, n uint64) string { return strconv.FormatUint(n, 10) }
		}
		c.sources = append(c.sources, src)
	}
	return c.checkTags(tags)
}

// refuseLabels refuses labels of pprof files that were asked for by their keys, for a capture that
// has none.
func refuseLabels(name string, words []string) error {
	for _, word := range words {
		if word != ingest.AllLabels {
			return fmt.Errorf("%s: its samples have no label %s: only pprof files have such labels",
				name, ingest.Printable(ingest.TagKey(word)))
		}
	}
	return nil
}

// checkTags refuses tags for which nothing was recorded: with the option that records it.
func (c *collector) checkTags(words []string) error {
	cgroups, namespaces := false, false
	for i := range c.Records.File.Events {
		a := &c.Records.File.Events[i].Attr
		cgroups = cgroups || a.SampleType&perfdata.SampleCgroup != 0
		namespaces = namespaces || a.Has(perfdata.FlagNamespaces)
	}
	for _, word := range words {
		need, has := "", true
		switch {
		case word == ingest.CgroupTag, word == ingest.ContainerTag:
			need, has = "perf record --all-cgroups", cgroups
		case slices.Contains(ingest.NamespaceTags[:], word):
			need, has = "perf record --namespaces", namespaces
		case strings.HasPrefix(word, ingest.TimeTag):
			need, has = "perf record --timestamp", c.allHave(perfdata.SampleTime)
		}
		if !has {
			return ingest.WithHint(fmt.Errorf("%s: its samples have no %s", c.Records.File.Name,
				ingest.TagKey(word)), "record it with `%s`", need)
		}
	}
	return nil
}

// intervals makes tags of the start of the interval of a length that a sample's time lies in,
// in seconds of the recording's clock.
func intervals(length uint64) (func(*reader) uint64, func(*reader, uint64) string) {
	digits := 0
	for unit := uint64(time.Second); length%unit != 0 && unit > 1; unit /= 10 {
		digits++
	}
	value := func(r *reader) uint64 { return r.sample.Time/length + 1 }
	return value, func(_ *reader, n uint64) string {
		at := (n - 1) * length
		text := strconv.FormatUint(at/1e9, 10)
		if digits > 0 {
			text += "." + fmt.Sprintf("%09d", at%1e9)[:digits]
		}
		return text
	}
}

// cgroupText is the path of a control group, or its number where no record has the path.
func cgroupText(r *reader, number uint64) string {
	if path := r.c.CgroupPath(number); path != "" {
		return path
	}
	return "cgroup " + strconv.FormatUint(number, 10)
}

// containerID is the ID of a container as runtimes put it into paths of control groups:
// docker, containerd, CRI-O, podman; and that of a task of ECS.
var containerID = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(
		`(?:^|[^0-9a-f])([0-9a-f]{64}|[0-9a-f]{32}-[0-9]{6,10})(?:[^0-9a-f]|$)`)
})

// containerText is the ID of the innermost container in the path of a control group.
func containerText(r *reader, number uint64) string {
	path := r.c.CgroupPath(number)
	for path != "" {
		at := strings.LastIndexByte(path, '/')
		if m := containerID().FindStringSubmatch(path[at+1:]); m != nil {
			return m[1]
		}
		path = path[:max(at, 0)]
	}
	return ""
}

// newTagger returns the tagger of a reader; nil if no tags are kept.
func (c *collector) newTagger() *tagger {
	if len(c.sources) == 0 {
		return nil
	}
	return &tagger{sources: c.sources, set: &c.tags, known: make(map[string]uint32)}
}

// number returns the number of the tags of the reader's present sample.
func (t *tagger) number(r *reader) uint32 {
	t.values = t.values[:0]
	for i := range t.sources {
		t.values = binary.LittleEndian.AppendUint64(t.values, t.sources[i].value(r))
	}
	if slices.Equal(t.values, t.last) {
		return t.code
	}
	t.last = append(t.last[:0], t.values...)
	code, ok := t.known[string(t.values)]
	if !ok {
		var list []string
		for i := range t.sources {
			if v := binary.LittleEndian.Uint64(t.values[8*i:]); v != 0 {
				list = append(list, t.sources[i].key, t.sources[i].text(r, v))
			}
		}
		code = t.set.number(ingest.JoinTags(list...))
		t.known[string(t.values)] = code
	}
	t.code = code
	return code
}
