package stackmap

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"symbolize/ingest/format/mapdump"
)

// jsonDump is the output of bpftool for these values, under keys from 0 on.
func jsonDump(values ...[]byte) string {
	hex := func(b []byte) string {
		var words []string
		for _, c := range b {
			words = append(words, fmt.Sprintf(`"0x%02x"`, c))
		}
		return "[" + strings.Join(words, ",") + "]"
	}
	var pairs []string
	for i, v := range values {
		pairs = append(pairs, `{"key":`+hex([]byte{byte(i), 0, 0, 0})+`,"value":`+hex(v)+"}")
	}
	return "[" + strings.Join(pairs, ",") + "]"
}

// TestLooksLikeMap: stacks of dumps without a type are recognized, and no other values.
func TestLooksLikeMap(t *testing.T) {
	words := func(list ...uint64) (b []byte) {
		for _, w := range append(list, make([]uint64, 8-len(list))...) {
			b = binary.LittleEndian.AppendUint64(b, w)
		}
		return b
	}
	frames := func(status ...byte) []byte {
		b := make([]byte, 4*frameSize)
		for i, s := range status {
			b[i*frameSize], b[i*frameSize+buildIDAt], b[i*frameSize+frameOffsetAt] = s, 7, 9
		}
		return b
	}
	const code = 0x7f00_0000_1234
	for _, c := range []struct {
		name   string
		values [][]byte
		want   bool
	}{
		{"addresses", [][]byte{words(), words(code, code+9), words(1<<64 - 9)}, true},
		{"build IDs", [][]byte{frames(), frames(1, 1, 2), frames(2)}, true},
		{"empty stacks", [][]byte{words(), words()}, false},
		{"a count between", [][]byte{words(code), words(code, 7, code)}, false},
		{"words after the end", [][]byte{words(code, 0, code)}, false},
		{"another status", [][]byte{frames(1, 1), frames(1, 5)}, false},
		{"a few numbers", [][]byte{words(code, code)[:16]}, false},
		{"nothing", nil, false},
	} {
		text := jsonDump(c.values...)
		in := &Input{Name: "dump", R: strings.NewReader(text), Size: int64(len(text))}
		d, err := mapdump.Open(in.Name, in.R, in.Size)
		if err != nil {
			t.Fatal(err)
		}
		if got := LooksLikeMap(in, &d.Header); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestReadMap: each stack of a map has its key, also an empty one.
func TestReadMap(t *testing.T) {
	value := make([]byte, 64)
	binary.LittleEndian.PutUint64(value, 1<<64-16)
	user := make([]byte, 64)
	binary.LittleEndian.PutUint64(user, 0x401000)
	text := jsonDump(value, make([]byte, 64), user, value)
	set, list, err := ReadMap(&Input{Name: "dump", R: strings.NewReader(text), Size: int64(len(text))})
	if err != nil {
		t.Fatal(err)
	}
	present := func(stack uint32) Part { return Part{Stack: stack, Cause: Present} }
	want := []Dumped{{ID: 0, Part: present(0), Kernel: true}, {ID: 1, Part: Part{Cause: NotTaken}},
		{ID: 2, Part: present(1)}, {ID: 3, Part: present(0), Kernel: true}}
	if !slices.Equal(list, want) || len(set.Samples) != 3 {
		t.Errorf("%+v, want %+v; %d samples", list, want, len(set.Samples))
	}
}
