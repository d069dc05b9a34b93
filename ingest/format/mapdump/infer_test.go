package mapdump

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestInfer places members by values and by their printed texts.
func TestInfer(t *testing.T) {
	for name, test := range map[string]struct {
		samples []string // bytes in hexadecimal, and the text
		want    string   // "" if nothing can be known
	}{
		"a number":       {samples: []string{"05000000 5"}, want: "=0:4"},
		"a negative one": {samples: []string{"05000000 5", "f2ffffff -14"}, want: "=0:4s"},
		"two": {samples: []string{`0700000009000000 {"pid":7,"slot":9}`},
			want: "pid=0:4 slot=4:4"},
		"with padding": {samples: []string{`0700000000000000ffffffffffffffff {"a":7,"b":-1}`},
			want: "a=0:8 b=8:8s"},
		"small ones": {samples: []string{`01020300 {"a":1,"b":2,"c":3}`},
			want: "a=0:1 b=1:1 c=2:2"},
		"a truth": {samples: []string{`0107 {"a":true,"b":7}`}, want: "a=0:1b b=1:1"},
		"known by others": {samples: []string{`0000000000000000 {"a":0,"b":0}`,
			`0100000002000000 {"a":1,"b":2}`}, want: "a=0:4 b=4:4"},
		"in two places":   {samples: []string{`00000000000000000000000000000000 {"a":0,"b":0,"c":0}`}},
		"a sign too late": {samples: []string{"ff 255", "fe -2"}},
		"not these":       {samples: []string{"05000000 6"}},
		"other names":     {samples: []string{`05000000 {"a":5}`, `06000000 {"b":6}`}},
		"other sizes":     {samples: []string{"05000000 5", "0500 5"}},
		"text":            {samples: []string{`6400 "d"`}, want: "=0:2t"},
		"text behind a number": {
			samples: []string{`0700000064640000000000000000000000000000 {"pid":7,"comm":"dd"}`},
			want:    "pid=0:4 comm=4:16t"},
		"text before a number": {samples: []string{`6464000007000000 {"comm":"dd","pid":7}`},
			want: "comm=0:4t pid=4:4"},
		"a name of a number": {samples: []string{`0700000005000000 {"pid":7,"color":"RED"}`}},
		"text in two sizes":  {samples: []string{`6400000000000000 {"comm":"d","a":0,"b":0}`}},
		"a list":             {samples: []string{`0102 {"a":[1,2]}`}},
		"nothing":            {want: ""},
		"no members":         {samples: []string{"05000000 {}"}},
		"no JSON":            {samples: []string{"05000000 (unsupported"}},
		"of 8 bytes": {samples: []string{"ffffffffffffffff 18446744073709551615"},
			want: "=0:8"},
		"a sign too many":   {samples: []string{"fe -2", "ff 255"}},
		"bytes unaccounted": {samples: []string{`0500000007000000 {"a":5}`}},
	} {
		var x Inferrer
		for _, s := range test.samples {
			data, text, _ := strings.Cut(s, " ")
			b, err := hex.DecodeString(data)
			if err != nil {
				t.Fatal(err)
			}
			x.Add(b, json.RawMessage(text))
		}
		fields, ok := x.Fields()
		if got := fieldsText(fields); ok != (test.want != "") || ok && got != test.want {
			t.Errorf("%s: %s, %v, want %s", name, got, ok, test.want)
		}
	}
}

func fieldsText(fields []Inferred) string {
	var parts []string
	for _, f := range fields {
		part := fmt.Sprintf("%s=%d:%d", f.Name, f.Offset, f.Size)
		if f.Signed {
			part += "s"
		}
		if f.Bool {
			part += "b"
		}
		if f.Text {
			part += "t"
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, " ")
}

// TestInferHolds: a layout found by the first samples has to hold for all others, and a
// negative number that comes late makes a field signed.
func TestInferHolds(t *testing.T) {
	for _, test := range []struct {
		last, text, want string
	}{
		{last: "0100000002000000", text: `{"a":1,"b":2}`, want: "a=0:4 b=4:4"},
		{last: "0100000002000000", text: `{"a":1,"b":3}`},
		{last: "ffffffff02000000", text: `{"a":-1,"b":2}`, want: "a=0:4s b=4:4"},
		{last: "01000000", text: `{"a":1}`},
	} {
		var x Inferrer
		for i := range inferSamples + 5 {
			x.Add([]byte{byte(i), 1, 0, 0, byte(2 * i), 0, 0, 0},
				json.RawMessage(fmt.Sprintf(`{"a":%d,"b":%d}`, 256+i, 2*i)))
		}
		b, _ := hex.DecodeString(test.last)
		x.Add(b, json.RawMessage(test.text))
		fields, ok := x.Fields()
		if ok != (test.want != "") || ok && fieldsText(fields) != test.want {
			t.Errorf("%s: %s, %v, want %s", test.text, fieldsText(fields), ok, test.want)
		}
	}
}

// TestInferBounds: many members that are all zero end soon.
func TestInferBounds(t *testing.T) {
	var parts []string
	for i := range inferFields {
		parts = append(parts, fmt.Sprintf(`"m%d":0`, i))
	}
	var x Inferrer
	x.Add(make([]byte, 4*inferFields), json.RawMessage("{"+strings.Join(parts, ",")+"}"))
	if _, ok := x.Fields(); ok || x.tries > inferTries+1 {
		t.Errorf("found after %d tries", x.tries)
	}
}
