package ingest

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"
)

// Words of tags, the labels of samples that only some captures have. Tags by TimeTag are
// followed by a duration, those by FieldTag by the name of a tracepoint's field.
const (
	CgroupTag    = "cgroup"    // the path of the control group
	ContainerTag = "container" // the ID that the path has, "" if none
	TimeTag      = "time:"     // "time:10s": the start of an interval of that length
	FieldTag     = "field:"    // "field:call_site"
)

// PredictionTag is the key of the tag of branches, with its values.
const (
	PredictionTag = "prediction"
	Predicted     = "predicted"
	Mispredicted  = "mispredicted"
)

// NamespaceTags are the words of tags for the number of a namespace, in the order of
// perfdata.Namespaces.
var NamespaceTags = [...]string{"netns", "utsns", "ipcns", "pidns", "userns", "mntns", "cgroupns"}

// MaxTags bounds how many tags samples can have at once.
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
	if name, ok := strings.CutPrefix(word, FieldTag); ok && name != "" {
		return nil
	}
	if word == CgroupTag || word == ContainerTag || slices.Contains(NamespaceTags[:], word) {
		return nil
	}
	return errors.New("no such label")
}

// TagWords describes all words of tags, for messages.
func TagWords() string {
	return CgroupTag + ", " + ContainerTag + ", " + strings.Join(NamespaceTags[:], ", ") +
		", time:DURATION, field:NAME"
}

// AddTag adds a tag to those that are kept.
func (k *Keep) AddTag(word string) error {
	words := k.TagList()
	if slices.Contains(words, word) {
		return nil
	}
	if len(words) == MaxTags {
		return fmt.Errorf("more than %d such labels", MaxTags)
	}
	k.Tags = strings.Join(append(words, word), ",")
	return nil
}

// TagList returns the words of the tags that are kept.
func (k *Keep) TagList() []string {
	if k.Tags == "" {
		return nil
	}
	return strings.Split(k.Tags, ",")
}

// TagKey is the name of a tag in the samples of a profile and in pprof files: that of the field
// for FieldTag, "time" for TimeTag, else its word.
func TagKey(word string) string {
	if name, ok := strings.CutPrefix(word, FieldTag); ok {
		return name
	}
	if strings.HasPrefix(word, TimeTag) {
		return strings.TrimSuffix(TimeTag, ":")
	}
	return word
}

// tagSeparator divides keys and values of tags: no name that a kernel makes has it.
const tagSeparator = "\x00"

// JoinTags makes the text of Sample.Tags of keys and values, one after the other; a tag without
// a value is left out.
func JoinTags(keysAndValues ...string) string {
	var list []string
	for i := 0; i+1 < len(keysAndValues); i += 2 {
		if keysAndValues[i+1] != "" {
			list = append(list, strings.ReplaceAll(keysAndValues[i], tagSeparator, ""),
				strings.ReplaceAll(keysAndValues[i+1], tagSeparator, ""))
		}
	}
	return strings.Join(list, tagSeparator)
}

// AllTags returns the keys and values of the tags of a sample.
func (p *Profile) AllTags(s *Sample) iter.Seq2[string, string] {
	return func(yield func(key, value string) bool) {
		for text := p.Strings[s.Tags]; text != ""; {
			var key, value string
			key, text, _ = strings.Cut(text, tagSeparator)
			value, text, _ = strings.Cut(text, tagSeparator)
			if !yield(key, value) {
				return
			}
		}
	}
}

// Tag returns the value of a tag of a sample by its key, "" if the sample lacks it.
func (p *Profile) Tag(s *Sample, key string) string {
	for k, value := range p.AllTags(s) {
		if k == key {
			return value
		}
	}
	return ""
}
