package texts_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"symbolize/ingest/texts"
)

// TestJSONText has strings that come back as they were, from text that is printable.
func TestJSONText(t *testing.T) {
	for _, s := range []string{"", "plain <b> & \"quoted\" \\", "\x00\a\b\t\n\v\r\x1b]0;\x7f",
		"c1 \u009b2J \u0085", "bidi \u202e\u2066\u200f", "lines \u2028\u2029", "tag \U000e0041",
		"letters \u00e4 \u4e16 \U0001f600", "\ufffd"} {
		var out bytes.Buffer
		if err := texts.NewJSONEncoder(&out).Encode(map[string]string{s: s}); err != nil {
			t.Fatal(err)
		}
		one := texts.AppendJSONString(nil, s)
		for _, text := range []string{string(bytes.TrimSuffix(out.Bytes(), []byte("\n"))), string(one)} {
			if s != "\ufffd" && text != texts.Printable(text) {
				t.Errorf("%q: %q is not printable", s, text)
			}
		}
		var back map[string]string
		var oneBack string
		if err := json.Unmarshal(out.Bytes(), &back); err != nil || back[s] != s {
			t.Errorf("%q comes back as %q, %v", s, back, err)
		}
		if err := json.Unmarshal(one, &oneBack); err != nil || oneBack != s {
			t.Errorf("%q comes back as %q, %v", s, oneBack, err)
		}
	}
}

// TestWriteJSON: the schema is the first key, and only objects have one.
func TestWriteJSON(t *testing.T) {
	for _, c := range []struct {
		name  string
		value any
		want  string // "" for an error
	}{
		{name: "object", value: map[string]int{"a": 1}, want: "{\n  \"schema\": \"x/1\",\n  \"a\": 1\n}\n"},
		{name: "empty object", value: struct{}{}, want: "{\n  \"schema\": \"x/1\"\n}\n"},
		{name: "control characters", value: map[string]string{"a": "\x7f"},
			want: "{\n  \"schema\": \"x/1\",\n  \"a\": \"\\u007f\"\n}\n"},
		{name: "list", value: []int{1}},
		{name: "number", value: 1},
	} {
		var b bytes.Buffer
		if err := texts.WriteJSON(&b, "x/1", c.value); b.String() != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: %q, %v, want %q", c.name, &b, err, c.want)
		}
	}
}

// TestWriteJSONList: the values of a list are written as a slice of them, each before the next one is
// asked for.
func TestWriteJSONList(t *testing.T) {
	type value struct {
		Name string   `json:"name"`
		List []string `json:"list"`
	}
	all := []*value{{Name: "a <b> \x7f\u202e", List: []string{"1", "2\n"}}, {List: []string{}}, nil, {Name: "c"}}
	for n := range len(all) + 1 {
		var one, want bytes.Buffer
		failure := errors.New("no more")
		for _, end := range []error{nil, failure} {
			one.Reset()
			err := texts.WriteJSONList(&one, "x/1", "list", func(yield func(*value, error) bool) {
				for i, v := range all[:n] {
					before := one.Len()
					if !yield(v, nil) {
						return
					}
					if one.Len() == before {
						t.Errorf("value %d is not written yet", i)
					}
				}
				if end != nil {
					yield(nil, end)
				}
			})
			if err != end {
				t.Errorf("%d values: %v, want %v", n, err, end)
			}
			if end == nil {
				if err := texts.WriteJSON(&want, "x/1", map[string][]*value{"list": all[:n]}); err != nil {
					t.Fatal(err)
				}
				if one.String() != want.String() {
					t.Errorf("%d values:\n%s\nwant\n%s", n, &one, &want)
				}
			}
		}
	}
}
