package ingest

import (
	"slices"
	"strings"
	"testing"

	"symbolize/buildid"
)

func TestParseTag(t *testing.T) {
	for _, tc := range []struct {
		word string
		key  string // "": refused
	}{
		{word: "cgroup", key: "cgroup"}, {word: "container", key: "container"},
		{word: "netns", key: "netns"}, {word: "cgroupns", key: "cgroupns"},
		{word: "time:10s", key: "time"}, {word: "time:1us", key: "time"},
		{word: "field:call_site", key: "call_site"},
		{word: "label:thread name", key: "thread name"}, {word: "label", key: "label"}, {word: "label:"},
		{word: ""}, {word: "time"}, {word: "time:"}, {word: "time:10"}, {word: "time:0s"},
		{word: "time:-1s"}, {word: "time:10ns"}, {word: "field:"}, {word: "pid"}, {word: "colour"},
	} {
		err := ParseTag(tc.word)
		if (err == nil) != (tc.key != "") {
			t.Errorf("%q: %v", tc.word, err)
		}
		if err == nil && TagKey(tc.word) != tc.key {
			t.Errorf("%q has the key %q, want %q", tc.word, TagKey(tc.word), tc.key)
		}
	}
}

func TestKeepTags(t *testing.T) {
	var k Keep
	for _, word := range []string{"netns", "cgroup", "netns"} {
		if err := k.Add(word); err != nil {
			t.Fatal(err)
		}
	}
	if got := k.TagList(); !slices.Equal(got, []string{"netns", "cgroup"}) {
		t.Errorf("%q", got)
	}
	var err error
	for _, word := range append(NamespaceTags[:], "time:1s", "time:2s") {
		if err = k.Add(word); err != nil {
			break
		}
	}
	if err == nil {
		t.Errorf("%d tags are kept", len(k.TagList()))
	}
}

func TestJoinTags(t *testing.T) {
	p := Profile{Strings: []string{"", JoinTags("cgroup", "/a b", "netns", "", "x\x00y", "1\x00\x002")}}
	var got []string
	for tag := range p.AllTags(&Sample{Tags: 1}) {
		got = append(got, tag.Key+"="+tag.Value())
	}
	if want := []string{"cgroup=/a b", "xy=12"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if v := p.Tag(&Sample{Tags: 1}, "xy"); v != "12" {
		t.Errorf("xy is %q", v)
	}
	if v := p.Tag(&Sample{}, "cgroup"); v != "" {
		t.Errorf("a sample without tags has the cgroup %q", v)
	}
}

// TestNumericTags: numbers keep their units, and no text passes for one.
func TestNumericTags(t *testing.T) {
	tags := []Tag{{Key: "bytes", Numeric: true, Number: 4096, Unit: "bytes"},
		{Key: "delay", Numeric: true, Number: -5, Unit: "ms\x01"}, {Key: "none", Text: ""},
		{Key: "text", Text: "\x0112\x01kB"}, {Key: "zero", Numeric: true}}
	p := Profile{Strings: []string{"", EncodeTags(tags)}}
	got, values := slices.Collect(p.AllTags(&Sample{Tags: 1})), []string{}
	for _, tag := range got {
		values = append(values, tag.Value())
	}
	if want := []string{"4096", "-5 ms", "12kB", "0"}; !slices.Equal(values, want) {
		t.Errorf("values %q, want %q", values, want)
	}
	if len(got) != 4 || got[1].Number != -5 || got[2].Numeric || !got[3].Numeric {
		t.Errorf("%+v", got)
	}
}

// TestPlaces: a text can have the place of an address, which its value does not show.
func TestPlaces(t *testing.T) {
	id, err := buildid.Parse("0123456789abcdef0123456789abcdef01234567")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []Object{
		{Kind: Kernel, ID: id, RefSymbol: "_text", File: FileRef{Path: KernelMapName}, Kernel: NoObject},
		{Kind: Module, File: FileRef{Path: "[ext4]"}, Kernel: NoObject},
		{Kind: JIT, Symbol: "bpf_prog_a\x02b", Kernel: NoObject},
	} {
		tags := []Tag{{Key: "a", Text: "1"}, Tag{Key: "site", Text: "0xffff"}.At(&want, 0x1234)}
		got := slices.Collect(DecodeTags(EncodeTags(tags)))
		if len(got) != 2 || got[1].Value() != "0xffff" || got[1].Key != "site" {
			t.Fatalf("%+v", got)
		}
		if _, _, ok := got[0].Place(); ok {
			t.Error("a text without a place has one")
		}
		want.Symbol = strings.ReplaceAll(want.Symbol, "\x02", "")
		if o, offset, ok := got[1].Place(); !ok || CompareObjects(&o, &want) != 0 || offset != 0x1234 {
			t.Errorf("%+v, offset %#x, %t; want %+v", o, offset, ok, want)
		}
	}
	for _, text := range []string{"k\x00v\x02", "k\x00v\x021\x02\x02\x02x\x02\x02", "k\x00v\x021\x02zz\x02\x021\x02\x02"} {
		for tag := range DecodeTags(text) {
			if _, _, ok := tag.Place(); ok || tag.Text != "v" {
				t.Errorf("%q: %+v", text, tag)
			}
		}
	}
}

func TestCanonicalLabel(t *testing.T) {
	for word, want := range map[string]string{"label:pid": "pid", "label:comm": "comm",
		"label:cgroup": "cgroup", "label:endpoint": "label:endpoint", "label:label": "label:label",
		"label": "label", "cpu": "cpu", "label:time:10s": "label:time:10s"} {
		if got := CanonicalLabel(word); got != want {
			t.Errorf("%q is %q, want %q", word, got, want)
		}
	}
}
