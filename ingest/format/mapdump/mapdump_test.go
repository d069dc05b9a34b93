package mapdump

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"symbolize/fixtures/must"
	"symbolize/ingest/format/rawdump"
)

// recorded is the directory of the bpftool dumps by fixtures/src/btf/record.sh.
const recorded = "../../../fixtures/maps"

// readAll reads a dump to its end, as one line a pair.
func readAll(name string, data []byte) (d *Dump, lines []string, err error) {
	d, err = Open(name, bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, nil, err
	}
	for {
		key, values, ok := d.Next()
		if !ok {
			return d, lines, d.Err()
		}
		lines = append(lines, fmt.Sprintf("%x %x", key, values))
	}
}

// parseShow returns the map in the output of `bpftool map show` with -j or -p.
func parseShow(t *testing.T, data []byte) rawdump.Header {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	var f facts
	for member, v := range m {
		switch v := v.(type) {
		case string:
			f.set(member, v)
		case float64:
			f.number(member, uint32(v))
		}
	}
	return f.Header
}

// TestFormsAgree: each recorded dump has the same pairs in every form, and the sizes in `bpftool
// map show`.
func TestFormsAgree(t *testing.T) {
	shows, err := filepath.Glob(recorded + "/*.show")
	if err != nil || len(shows) < 20 {
		t.Fatalf("%d recorded maps, %v", len(shows), err)
	}
	plain := 0
	for _, show := range shows {
		base := strings.TrimSuffix(show, ".show")
		h := parseShow(t, must.Read(t, show))
		d, want, err := readAll(base, must.Read(t, base+".json"))
		if err != nil || len(want) == 0 {
			t.Errorf("%s.json: %v, %d pairs", base, err, len(want))
			continue
		}
		perCPU := strings.HasPrefix(TypeName(h.Type), "percpu")
		if d.Form != JSON || d.Header.KeySize != h.KeySize || d.Header.ValueSize != h.ValueSize ||
			(d.Header.CPUs > 0) != perCPU {
			t.Errorf("%s.json: %+v, shown as %+v", base, d.Header, h)
		}
		_, got, err := readAll(base, must.Read(t, base+".pretty"))
		if err != nil || strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s.pretty: %v, %q, want %q", base, err, got, want)
		}
		d, got, err = readAll(base, must.Read(t, base+".txt"))
		if h.BTFID != 0 {
			if err != nil || d.Form != Text || d.Types == nil || len(got) != len(want) ||
				(d.Header.CPUs > 0) != perCPU {
				t.Errorf("%s.txt: %v, %d pairs, want %d", base, err, len(got), len(want))
			}
			continue
		}
		plain++
		if err != nil || d.Form != Plain || strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s.txt: %v, %q, want %q", base, err, got, want)
		}
	}
	if plain < 4 {
		t.Errorf("%d maps without BTF", plain)
	}
}

func TestForms(t *testing.T) {
	for _, c := range []struct {
		name, text, want string
		cpus             uint32
	}{
		{name: "one", text: `[{"key":["0x0a"],"value":["0x01","0xff"]}]`, want: "0a [01ff]",
			cpus: 0},
		{name: "none", text: "[]\n", cpus: 0},
		{name: "no key", text: `[{"key":[],"value":["0x01"]}]`, want: " [01]", cpus: 0},
		{name: "floats",
			text: `[{"key":["0x0a"],"value":["0x01"],"formatted":{"key":1,"value":{"f":` +
				`(unsupported-kind}}},{"key":["0x0b"],"value":["0x02"]}]`, want: "0a [01]|0b [02]",
			cpus: 0},
		{name: "a quote", text: `[{"key":["0x22"],"value":["0x01"],"formatted":{"key":"""}},` +
			`{"key":["0x23"],"value":["0x02"],"formatted":{"key":""}}]`, want: "22 [01]|23 [02]",
			cpus: 0},
		{name: "bracket in a string",
			text: `[{"key":["0x22"],"value":["0x01"],"formatted":{"key":"}]\"}"}}]`,
			want: "22 [01]", cpus: 0},
		{name: "CPUs",
			text: `[{"key":["0x0a"],"values":[{"cpu":0,"value":["0x01"]},{"cpu":1,"value":` +
				`["0x02"]}],"formatted":{"key":10,"values":[{"cpu":0,"value":1}]}}]`,
			want: "0a [01 02]", cpus: 2},
		{name: "one CPU", text: `[{"key":["0x0a"],"values":[{"cpu":0,"value":["0x01"]}]}]`,
			want: "0a [01]", cpus: 1},
		{name: "inner map", text: `[{"key":["0x0a"],"value":["0x01"],"inner_map_id":1}]`,
			want: "0a [01]", cpus: 0},
		{name: "several asked",
			text: `[{"id":3,"type":"hash","name":"x","flags":0,"elements":[{"key":["0x0a"],` +
				`"value":["0x01"]}]}]`, want: "0a [01]", cpus: 0},
		{name: "text", text: "key: 0a  value: 01\nFound 1 element\n", want: "0a [01]", cpus: 0},
		{name: "text, none", text: "Found 0 elements\n", cpus: 0},
		{name: "text, long",
			text: "key:\n0a\nvalue:\n01 02\nkey:\n0b\nvalue:\n03 04\nFound 2 elements\n",
			want: "0a [0102]|0b [0304]", cpus: 0},
		{name: "text, queue", text: "value: 01\nvalue: 02\nFound 2 elements\n",
			want: " [01]| [02]", cpus: 0},
		{name: "text, CPUs", text: "key:\n0a\nvalue (CPU 00): 01\nvalue (CPU 01): 02\nkey:\n0b\n" +
			"value (CPU 00): 03\nvalue (CPU 01): 04\nFound 2 elements\n",
			want: "0a [01 02]|0b [03 04]", cpus: 2},
		{name: "text, inner map", text: "key: 0a 00 00 00  inner_map_id: 258 \nFound 1 element\n",
			want: "0a000000 [02010000]", cpus: 0},
		{name: "text, headed",
			text: "12: hash  name x  flags 0x0\nkey: 0a  value: 01\nFound 1 element\n",
			want: "0a [01]", cpus: 0},
	} {
		d, got, err := readAll(c.name, []byte(c.text))
		if err != nil || strings.Join(got, "|") != c.want {
			t.Errorf("%s: %q, %v, want %q", c.name, got, err, c.want)
		} else if d.Header.CPUs != c.cpus {
			t.Errorf("%s: %d CPUs, want %d", c.name, d.Header.CPUs, c.cpus)
		}
	}
}

// TestUnread: bpftool's read failures are counted by message.
func TestUnread(t *testing.T) {
	for _, text := range []string{
		`[{"key":["0x0a"],"value":{"error":"Permission denied"}},{"key":["0x0b"],"value":["0x01"]}]`,
		"key: 0a  value: Permission denied\nkey: 0b  value: 01\nFound 1 element\n",
	} {
		d, got, err := readAll("x", []byte(text))
		if err != nil || len(got) != 1 || d.Header.Lost["Permission denied"] != 1 {
			t.Errorf("%s: %q, %v, lost %v", text, got, err, d.Header.Lost)
		}
	}
}

func TestErrors(t *testing.T) {
	long := strings.Repeat(`"0x00",`, maxKey+1)
	for _, c := range []struct{ name, text, want string }{
		{name: "empty", want: "not a dump"},
		{name: "other JSON", text: `{"version":1}`, want: "not a dump"},
		{name: "other text", text: "hello", want: "not a dump"},
		{name: "failed", text: `{"error":"get map by id (9): No such file or directory"}`,
			want: "No such file"},
		{name: "failed in text", text: "Error: get map by id (9): No such file or directory\n",
			want: "No such file"},
		{name: "sizes",
			text: `[{"key":["0x0a"],"value":["0x01"]},{"key":["0x0a"],"value":["0x01","0x02"]}]`,
			want: "other sizes than the first"},
		{name: "CPUs",
			text: `[{"key":["0x0a"],"values":[{"cpu":0,"value":["0x01"]}]},{"key":["0x0b"],` +
				`"values":[]}]`, want: "without a value"},
		{name: "key too long", text: `[{"key":[` + long + `"0x00"],"value":["0x01"]}]`,
			want: "a key of more than"},
		{name: "nested", text: `[{"key":["0x0a"],"formatted":` + strings.Repeat("[", maxNest+2),
			want: "nested"},
		{name: "brackets", text: "[[[[[[{\"key\":", want: "brackets"},
		{name: "several",
			text: `[{"id":1,"elements":[{"key":["0x0a"],"value":["0x01"]}]},{"id":2,` +
				`"elements":[]}]`, want: "more than one map"},
		{name: "several in text",
			text: "1: hash  flags 0x0\nkey: 0a  value: 01\nFound 1 element\n" +
				"2: hash  flags 0x0\nFound 0 elements\n", want: "more than one map"},
		{name: "count", text: "key: 0a  value: 01\nFound 2 elements\n", want: "bpftool counted 2"},
		{name: "CPU missing", text: "key:\n0a\nvalue (CPU 01): 01\nFound 1 element\n",
			want: "CPU 0 should follow"},
		{name: "no value", text: "key: 0a  Found 1 element\n", want: "where a value begins"},
		{name: "no key", text: "key: 0a  value: 01\n0x\nFound 1 element\n",
			want: "where a key begins"},
	} {
		if _, _, err := readAll(c.name, []byte(c.text)); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

func TestRaw(t *testing.T) {
	h := rawdump.Header{KeySize: 1, ValueSize: 3, CPUs: 2, BTFID: 5, Name: "x"}
	data, err := rawdump.Append(nil, h, [][2][]byte{
		{{1}, {1, 2, 3, 0, 0, 0, 0, 0, 4, 5, 6, 0, 0, 0, 0, 0}}})
	if err != nil {
		t.Fatal(err)
	}
	d, got, err := readAll("x", data)
	if err != nil || len(got) != 1 || got[0] != "01 [010203 040506]" || d.Form != Raw ||
		d.Header.BTFID != 5 {
		t.Errorf("%q, %v, %+v", got, err, d)
	}
	if _, got, err = readAll("x", data[:len(data)-1]); err == nil || len(got) != 0 {
		t.Errorf("cut off: %q, %v", got, err)
	}
}

// TestTruncated: each prefix of a dump gives a prefix of its pairs, and an error unless
// it is whole.
func TestTruncated(t *testing.T) {
	for _, name := range []string{"numbers.json", "numbers.pretty", "per_cpu.json", "per_cpu.pretty",
		"floats.json", "bare.txt", "bare_long.txt", "bare_cpu.txt"} {
		data := bytes.TrimSpace(must.Read(t, filepath.Join(recorded, name)))
		_, want, err := readAll(name, data)
		if err != nil {
			t.Fatal(err)
		}
		for n := range data {
			_, got, err := readAll(name, data[:n])
			if err == nil {
				// "Found 1 element" is a complete prefix of "Found 1 elements"
				if !bytes.Contains(data[:n], []byte("Found")) {
					t.Fatalf("%s: no error after %d bytes", name, n)
				}
				continue
			}
			if len(got) > len(want) || strings.Join(got, "|") != strings.Join(want[:len(got)], "|") {
				t.Fatalf("%s: %q after %d bytes, of %q", name, got, n, want)
			}
		}
	}
}

func TestTypeNames(t *testing.T) {
	if TypeName(7) != "stack_trace" || TypeName(1000) != "type 1000" || TypeNumber("nothing") != 0 {
		t.Error("names of types")
	}
}

// FuzzJSON and FuzzPlain: any bytes end in pairs of equal sizes or an error, and reading
// twice gives the same.
func FuzzJSON(f *testing.F) {
	for _, name := range []string{"numbers.json", "floats.pretty", "per_cpu.json", "wide.json"} {
		data := must.Read(f, filepath.Join(recorded, name))
		f.Add(data)
	}
	f.Add([]byte(`[{"id":1,"elements":[{"key":["0x0a"],"value":{"error":"x"}}]},{}]`))
	f.Fuzz(fuzzOne)
}

func FuzzPlain(f *testing.F) {
	for _, name := range []string{"bare.txt", "bare_cpu.txt", "bare_long.txt"} {
		data := must.Read(f, filepath.Join(recorded, name))
		f.Add(data)
	}
	f.Add([]byte("12: hash  name x  flags 0x0\nkey: 0a  value: <no entry>\nFound 0 elements\n"))
	f.Fuzz(fuzzOne)
}

func FuzzRaw(f *testing.F) {
	data, err := rawdump.Append(nil, rawdump.Header{KeySize: 1, ValueSize: 3, CPUs: 2},
		[][2][]byte{{{1}, make([]byte, 16)}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(fuzzOne)
}

func fuzzOne(t *testing.T, data []byte) {
	d, got, err := readAll("x", data)
	_, again, err2 := readAll("x", data)
	if fmt.Sprint(got, err) != fmt.Sprint(again, err2) {
		t.Fatalf("%q, %v and then %q, %v", got, err, again, err2)
	}
	if d == nil {
		return
	}
	size := 2*int(d.Header.KeySize) + 1 + max(1, int(d.Header.CPUs))*(2*int(d.Header.ValueSize)+1) + 1
	for _, line := range got {
		if len(line) != size && d.Header.CPUs > 0 {
			t.Fatalf("%q: %d bytes, want %d", line, len(line), size)
		}
	}
}

func BenchmarkJSON(b *testing.B) {
	data := []byte("[")
	for i := range 10000 {
		data = fmt.Appendf(data, `{"key":["0x%02x","0x00","0x00","0x00"],"value":["0x01"%s]},`, i&255,
			strings.Repeat(`,"0xff"`, 63))
	}
	data[len(data)-1] = ']'
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		d, err := Open("x", bytes.NewReader(data), int64(len(data)))
		if err != nil {
			b.Fatal(err)
		}
		n := 0
		for _, _, ok := d.Next(); ok; _, _, ok = d.Next() {
			n++
		}
		if n != 10000 || d.Err() != nil {
			b.Fatal(n, d.Err())
		}
	}
}
