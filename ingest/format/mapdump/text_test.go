package mapdump

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"symbolize/fixtures/must"
)

// TestText: keys and values as bpftool prints them by BTF, and damage behind them.
func TestText(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		want       string // pairs
		err        string
		lost       uint64 // pairs
	}{
		{name: "numbers", text: `[{"key": -2113630004,"value": 300}]`, want: "cc900482ffffffff [2c01000000000000]"},
		{name: "a truth", text: `[{"key": 3237,"value": true},{"key": 1,"value": false}]`,
			want: "a50c000000000000 [01]|0100000000000000 [00]"},
		{name: "hexadecimal", text: `[{"key": 0x10,"value": (nil)}]`,
			want: "1000000000000000 [0000000000000000]"},
		{name: "texts of several lengths", text: `[{"key": "ab","value": 'c'},{"key": "a","value": '''}]`,
			want: "616200 [6300]|610000 [2700]"},
		{name: "characters that are no text", text: `[{"key": [97,-1],"value": 1},{"key": "a","value": 1}]`,
			want: "61ff00 [0100000000000000]|610000 [0100000000000000]"},
		{name: "a structure", text: `[{"key": {"a": 1,"b": true},"value": {"": {"c": 2}}}]`,
			want: "010000000000000001 [0200000000000000]"},
		{name: "values of CPUs", text: `[{"key": 1,"values": [{"cpu": 0,"value": 2},{"cpu": 1,"value": 3}]}]`,
			want: "0100000000000000 [0200000000000000 0300000000000000]"},
		{name: "an unreadable value", text: `[{"key": 1,"value": {"error": "no"}},{"key": 2,"value": 3}]`,
			want: "0200000000000000 [0300000000000000]", lost: 1},
		{name: "another form", text: `[{"key": 1,"value": 2},{"key": 1,"value": {"a": 1}}]`,
			want: "0100000000000000 [0200000000000000]", err: "a value of another form"},
		{name: "other members", text: `[{"key": {"a": 1},"value": 2},{"key": {"b": 1},"value": 2}]`,
			want: "0100000000000000 [0200000000000000]", err: "a key of another form"},
		{name: "cut off", text: `[{"key": 1,"value": 2},{"key": 1,"val`,
			want: "0100000000000000 [0200000000000000]", err: "cut off"},
		{name: "without a value", text: `[{"key": 1,"value": 2},{"key": 1}]`,
			want: "0100000000000000 [0200000000000000]", err: "without a value"},
		{name: "arrays that are large together", text: `[{"key": 1,"value": [[[` + hundred("1") +
			`]]]},{"key": 1,"value": [[` + hundred("[1]") + `]]},{"key": 1,"value": [` + hundred("[[1]]") + `]}]`,
			err: "keys or values of more than 1048576 bytes"},
		{name: "nested too deep", text: `[{"key": 1,"value": ` + strings.Repeat("[", 99), err: "cut off"},
	} {
		d, got, err := readAll(tc.name, []byte(tc.text))
		if strings.Join(got, "|") != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
		if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s: %v, want %q", tc.name, err, tc.err)
		}
		if d != nil && d.Header.Lost["no"] != tc.lost {
			t.Errorf("%s: lost %v", tc.name, d.Header.Lost)
		}
	}
}

func hundred(text string) string { return strings.Repeat(text+",", 99) + text }

// TestTextTruncated: each prefix of a dump gives at most its pairs, and an error unless it is whole.
func TestTextTruncated(t *testing.T) {
	for _, name := range []string{"nested.txt", "numbers.txt", "per_cpu.txt", "kinds_bss.txt", "wide.txt"} {
		data := bytes.TrimSpace(must.Read(t, filepath.Join(recorded, name)))
		_, want, err := readAll(name, data)
		if err != nil {
			t.Fatal(err)
		}
		for n := range data {
			if _, got, err := readAll(name, data[:n]); err == nil || len(got) > len(want) {
				t.Fatalf("%s: %v, %d pairs after %d bytes", name, err, len(got), n)
			}
		}
	}
}

func FuzzText(f *testing.F) {
	for _, name := range []string{"nested.txt", "numbers.txt", "per_cpu.txt", "kinds_bss.txt"} {
		f.Add(must.Read(f, filepath.Join(recorded, name)))
	}
	f.Fuzz(fuzzOne)
}
