package named

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"symbolize/ingest"
	"symbolize/ingest/texts"
)

// maxText bounds the texts of all distinct combinations of labels of a file, in bytes: samples
// refer to strings of any size by a few bytes.
const maxText = 64 << 20

// Labels selects the labels of samples that become tags.
type Labels struct {
	all  bool            // every label is kept
	keys []string        // of kept labels, unless all are kept
	seen map[string]bool // keys of labels without a field in Sample; true if kept
	left int             // bytes left of maxText
	cut  uint64          // samples with labels that did not fit
}

// NewLabels returns Labels for the words of keep.
func NewLabels(keep *ingest.Keep) *Labels {
	t := &Labels{left: maxText, seen: make(map[string]bool)}
	for _, word := range keep.TagList() {
		if word == ingest.AllLabels {
			t.all = true
			continue
		}
		t.keys = append(t.keys, ingest.TagKey(word))
	}
	return t
}

// Asked reports whether the labels of a key were requested by it.
func (t *Labels) Asked(key string) bool { return slices.Contains(t.keys, key) }

// Kept records that a key occurs, and reports whether its labels are kept.
func (t *Labels) Kept(key []byte) bool {
	kept, ok := t.seen[string(key)] // without an allocation
	if !ok {
		kept = t.all || slices.Contains(t.keys, string(key))
		t.seen[string(key)] = kept
	}
	return kept
}

// Encode returns the text of Sample.Tags for the kept labels of a sample, in the order of the kept
// keys, or by key if all are kept; "" if there are too many distinct labels.
func (t *Labels) Encode(list []ingest.Tag) string {
	size := 0
	for _, tag := range list {
		size += len(tag.Key) + len(tag.Text) + len(tag.Unit) + 24
	}
	if size > t.left {
		t.cut++
		return ""
	}
	t.left -= size
	slices.SortStableFunc(list, func(a, b ingest.Tag) int {
		if t.all {
			return cmp.Compare(a.Key, b.Key)
		}
		return cmp.Compare(slices.Index(t.keys, a.Key), slices.Index(t.keys, b.Key))
	})
	return ingest.EncodeTags(list)
}

// Warn adds warnings about labels that were left out, and about requested ones that do not occur.
func (t *Labels) Warn(name string, stats *ingest.Stats) {
	var left, all []string
	for _, key := range slices.Sorted(maps.Keys(t.seen)) {
		all = append(all, texts.Printable(key))
		if !t.seen[key] {
			left = append(left, texts.Printable(key))
		}
	}
	warn := func(hint, format string, args ...any) {
		stats.Warnings = append(stats.Warnings, ingest.Warning{
			Text: name + ": " + fmt.Sprintf(format, args...), Hint: hint})
	}
	for _, key := range t.keys {
		if _, ok := t.seen[key]; !ok {
			hint := ""
			if len(all) > 0 {
				hint = "it has " + strings.Join(all, ", ")
			}
			warn(hint, "no sample has the label %s", texts.Printable(key))
			stats.Warnings[len(stats.Warnings)-1].Result = true
		}
	}
	if len(left) > 0 {
		warn("", "labels not kept: %s", strings.Join(left, ", "))
	}
	if t.cut > 0 {
		warn("select labels, as in --labels label:KEY",
			"labels of %d samples left out: over %d MiB of distinct labels", t.cut, maxText>>20)
	}
}
