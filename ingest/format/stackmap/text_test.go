package stackmap

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"symbolize/ingest/format/rawdump"
)

// printed is the output of a script, with printf: printf("%s %d\n%s", comm, pid,
// ustack(build_id)).
const printed = `Attached 1 probe
bash 4711

93ac61ec5a8eb1396f9fbd350e3169a558528a40 0x27220
135afc8c6d1b9e02356cce218bf0109c3687ad9f 0x4a
7ffc12345678

sort 12

93ac61ec5a8eb1396f9fbd350e3169a558528a40 0x100
3

two words 13

93ac61ec5a8eb1396f9fbd350e3169a558528a40 0x200

`

// TestText reads the output of the tools, whole and odd.
func TestText(t *testing.T) {
	const id = "93ac61ec5a8eb1396f9fbd350e3169a558528a40"
	header := `{"systing_profile_export":1,"sample_event":"cpu-cycles","sample_period":1000,` +
		`"event_types":{"0":"uninterruptible_sleep","1":"cpu"}}` + "\n"
	all := Labels{PID: true, TID: true, Comm: true}
	for _, c := range []struct {
		name, text string
		want       []string
		labels     Labels
		warning    string // a part of one; "" for none
		skipped    uint64
	}{
		{name: "printed", text: printed, want: []string{
			"1 × (absent) | " + id + "+0x27220 135afc8c6d1b9e02356cce218bf0109c3687ad9f+0x4a " +
				"0x7ffc12345678 | pid 4711 | bash",
			"1 × (absent) | " + id + "+0x100 0x3 | pid 12 | sort",
			"1 × (absent) | " + id + "+0x200 | pid 13 | ",
		}, labels: Labels{PID: true, Comm: true}, skipped: 4},
		{name: "key", text: "@[\n" + id + " 0x1\n, bash]: 3\n", want: []string{
			"3 × (absent) | " + id + "+0x1 | bash"}, labels: Labels{Comm: true}, skipped: 0},
		{name: "key with labels first", text: "@name_1[bash, 7, \n" + id + " 0x1\n]: 3\n",
			want: []string{
				"3 × (absent) | " + id + "+0x1 | pid 7 | bash"},
			labels: Labels{PID: true, Comm: true}, skipped: 0},
		{name: "two numbers", text: "@[\n" + id + " 0x1\n, 7, 8, a, b]: 3\n", want: []string{
			"3 × (absent) | " + id + "+0x1"}, labels: Labels{}, skipped: 0},
		{name: "named kernel",
			text: "@[\n    do_mmap+1\n    vm_mmap_pgoff+0x20\n, \n" + id + " 0x1\n]: 2\n",
			want: []string{
				"2 × do_mmap+0x1 vm_mmap_pgoff+0x20 | " + id + "+0x1"}, labels: Labels{},
			skipped: 0},
		{name: "perf mode", text: "@[\n\tffffffff81000123 do_mmap+19 (/vmlinux)\n]: 2\n",
			want: []string{
				"2 × do_mmap+0x13 | (absent)"}, labels: Labels{}, skipped: 0},
		{name: "no user stack", text: "@[\n, bash]: 5\n@[\n" + id + " 0x1\n, bash]: 1\n",
			want: []string{
				"5 × (absent) | (no stack taken) | bash", "1 × (absent) | " + id + "+0x1 | bash"},
			labels: Labels{Comm: true}, skipped: 0},
		{name: "no count",
			text:    "@[\n" + id + " 0x1\n]: (count 3, average 2)\n@[\n" + id + " 0x2\n]: 4\n",
			want:    []string{"1 × (absent) | " + id + "+0x1", "4 × (absent) | " + id + "+0x2"},
			labels:  Labels{},
			warning: "a map's value is not a count", skipped: 0},
		{name: "two stacks", text: "@[\n" + id + " 0x1\n, \n" + id + " 0x2\n]: 3\n",
			want: []string{
				"3 × (absent) | " + id + "+0x1"}, labels: Labels{}, warning: "several user or kernel stacks",
			skipped: 0},
		{name: "cut in a key", text: "@[\n" + id + " 0x1\n]: 3\n@[\n" + id + " 0x2\n",
			want: []string{
				"3 × (absent) | " + id + "+0x1"}, labels: Labels{}, warning: "breaks off in the key",
			skipped: 0},
		{name: "cut in a count", text: "@[\n" + id + " 0x1\n]: 3\n@[\n" + id + " 0x2\n]: 4",
			want: []string{
				"3 × (absent) | " + id + "+0x1"}, labels: Labels{}, warning: "breaks off", skipped: 0},
		{name: "zero build ID",
			text: "@[\n" + strings.Repeat("0", 40) + " 0x55\n" + id + " 0x1\n]: 1\n",
			want: []string{
				"1 × (absent) | 0x55 " + id + "+0x1"}, labels: Labels{}, skipped: 0},
		{name: "short build ID",
			text: "@[\n0102030405060708" + strings.Repeat("0", 24) + " 0x55\n]: 1\n",
			want: []string{
				"1 × (absent) | 0102030405060708+0x55"}, labels: Labels{}, skipped: 0},
		{name: "below its file",
			text: "@[\n" + id + " 0x1\n" + id + " 0xffffffffffc00000\n]: 1\n", want: []string{
				"1 × (absent) | " + id + "+0x1 0x0"}, labels: Labels{}, skipped: 0},
		{name: "other maps", text: "@start[12]: 3\n@x: 7\n@[\n" + id + " 0x1\n]: 1\n",
			want: []string{
				"1 × (absent) | " + id + "+0x1"}, labels: Labels{}, skipped: 2},

		{name: "systing", text: header + `["f",0,"unknown ([buildid:` + id + `]) <0x1f>"]` + "\n" +
			`["f",1,"do_syscall_64 ([kernel] [common.c:52]) <0xffffffff81234567>"]` + "\n" +
			`["f",2,"main (app [main.c:7]) <0x401234>"]` + "\n" + `["f",3,"0x7f00"]` + "\n" +
			`["s",0,[1,0,2,3]]` + "\n" + `["p",4,100,"app"]` + "\n" + `["t",5,101,"worker",4]` + "\n" +
			`["x",5,0,1,9]` + "\n" + `["z",1,2]` + "\n" + `["x",6,0,0,2]` + "\n", want: []string{
			"9 × do_syscall_64+0x0 | " + id + "+0x1f main+0x0 0x7f00 | pid 100 | tid 101 | worker",
			"2 × do_syscall_64+0x0 | " + id + "+0x1f main+0x0 0x7f00 | pid -1 | tid -1 | "},
			labels: all, skipped: 1},
		{name: "systing, damaged",
			text: header + `["f",0,"0x1"]` + "\n" + `["s",0,[0,7]]` + "\n" + `["s",1,[0]]` +
				"\n" +
				`["x",1,0,1,1]` + "\n" + `["x",1,1,1,1]` + "\n" + `["f"]` + "\n" + `5` + "\n" +
				`["x",1,1,1,-4]` + "\n",
			want: []string{"1 × (absent) | 0x1 | pid -1 | tid -1 | "}, labels: all,
			warning: "no frame 7", skipped: 0},

		{name: "gadget",
			text: `{"comm":"a","pid":1,"user_stack":{"addresses":"[0]0x0000000000400010; ` +
				`[1]0x00007f0000000020; ","buildid":"[0]` + id + ` +10; [1]7f0000000020; ","symbols":""}}` +
				"\n" +
				`{"comm":"b"}` + "\n" + `{"proc":{"comm":"c","pid":2,"tid":3},"user_stack":{"addresses":` +
				`"[0]0x0000000000400010; "}}`, want: []string{
				"1 × (absent) | " + id + "+0x10 0x7f0000000020 | pid 1 | tid -1 | a",
				"1 × (absent) | 0x400010 | pid 2 | tid 3 | c"}, labels: all, skipped: 1},
		{name: "gadget, array", text: `[{"comm":"a","buildid":"` + id + ` +10"},` + "\n" +
			`{"comm":"b","buildid":""}]`,
			want:   []string{"1 × (absent) | " + id + "+0x10 | a", "1 × (absent) | (no stack taken) | b"},
			labels: Labels{Comm: true}, skipped: 0},
		{name: "gadget, kernel names",
			text: `{"kern_stack":"[0]do_mmap; [1]vm_mmap; ","buildid":"[0]` + id +
				` +1; "}`,
			want: []string{"1 × do_mmap+0x0 vm_mmap+0x0 | " + id + "+0x1"}, labels: Labels{},
			skipped: 0},
		{name: "gadget, rubbish",
			text: `{"buildid":"[0]` + id + ` +1; [1]zz; [2]5; ","pid":99999999999}` + "\n{]\n" +
				`{"buildid":"[0]` + id + ` +2; "}`, want: []string{"1 × (absent) | " + id + "+0x1",
				"1 × (absent) | " + id + "+0x2"}, labels: Labels{}, warning: "1 events are damaged",
			skipped: 0},
		{name: "gadget yaml",
			text: "---\nproc:\n  comm: a\n  pid: 1\nuser_stack:\n  buildid: '[0]" + id +
				" +1; '\n---\n" +
				"comm: b\n---\nbuildid: \"" + id + " +2;\n  7f10; \"\n", want: []string{
				"1 × (absent) | " + id + "+0x1 | pid 1 | a", "1 × (absent) | " + id + "+0x2 0x7f10 | pid -1 | "},
			labels: Labels{PID: true, Comm: true}, skipped: 1},
	} {
		set, err := Read(input(c.name, []byte(c.text)), &Options{})
		if set == nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var got []string
		for i := range set.Samples {
			one := *set
			one.Samples = set.Samples[i : i+1]
			got = append(got, one.text(c.labels))
		}
		if !slices.Equal(got, c.want) || err != nil {
			t.Errorf("%s:\n%s\nwant\n%s\n%v", c.name, strings.Join(got, "\n"), strings.Join(c.want, "\n"),
				err)
		}
		if set.Labels != c.labels || set.Skipped != c.skipped {
			t.Errorf("%s: labels %+v, skipped %d", c.name, set.Labels, set.Skipped)
		}
		if warnings := errorsText(set.Warnings); (warnings != "") != (c.warning != "") ||
			!strings.Contains(warnings, c.warning) {
			t.Errorf("%s: warnings %q, want %q", c.name, warnings, c.warning)
		}
	}
}

func errorsText(errs []error) string {
	var out []string
	for _, err := range errs {
		out = append(out, err.Error())
	}
	return strings.Join(out, "; ")
}

// TestSystingLimit: an export that refers to too much ends there, with the samples before.
func TestSystingLimit(t *testing.T) {
	text := `["f",0,"0x1"]` + "\n" + `["s",0,[0]]` + "\n" + `["x",0,0,1,3]` + "\n" +
		`["f",1,"0x2"]` + "\n" +
		`["f",2,"0x3"]` + "\n" + `["x",0,0,1,4]` + "\n"
	x := systingReader{set: newSet(Systing), limit: 2, frames: make(map[int64]Frame),
		stacks: make(map[int64][2]Part), events: make(map[int64]uint16)}
	err := x.records(newLineReader("x", strings.NewReader(text)))
	if err == nil || !strings.Contains(err.Error(), "more than") || len(x.set.Samples) != 1 {
		t.Errorf("%d samples, %v", len(x.set.Samples), err)
	}
	for _, text := range []string{`{"systing_profile_export":2}` + "\n",
		`{"systing_profile_export":`} {
		if set, err := Read(input("x", []byte(text)), &Options{}); set != nil || err == nil {
			t.Errorf("%q: %v, %v", text, set, err)
		}
	}
}

// TestBigEndian: dumps of a machine of the other byte order, raw and of bpftool.
func TestBigEndian(t *testing.T) {
	record := make([]byte, 2*frameSize)
	record[3], record[4], record[frameOffsetAt+7] = byte(Valid), 0xaa, 0x10
	record[frameSize+3] = byte(IP)
	copy(record[frameSize+frameOffsetAt:], "\x00\x00\x7f\x12\x34\x56\x78\x9a")
	below := slices.Clone(record) // of an address below the file's mapping
	below[frameSize+3], below[frameSize+buildIDAt] = byte(Valid), 0xbb
	copy(below[frameSize+frameOffsetAt:], "\xff\xff\xff\xff\xff\xc0\x00\x00")
	addresses := []byte("\x00\x00\x7f\x12\x34\x56\x78\x9a\x00\x00\x00\x00\x01\x02\x03\x04")
	for _, c := range []struct {
		value []byte
		flags uint32
		want  string
	}{
		{value: record, flags: rawdump.FlagBuildID,
			want: "9 × (absent) | aa+0x10 0x7f123456789a | pid 258"},
		{value: below, flags: rawdump.FlagBuildID, want: "9 × (absent) | aa+0x10 0x0 | pid 258"},
		{value: addresses, flags: 0, want: "9 × (absent) | 0x7f123456789a 0x1020304 | pid 258"},
	} {
		stacks, err := rawdump.Append(nil, rawdump.Header{Type: mapTypeStackTrace, Flags: c.flags,
			KeySize: 4, ValueSize: uint32(len(c.value)), BigEndian: true},
			[][2][]byte{{{0, 0, 0, 5}, c.value}})
		if err != nil {
			t.Fatal(err)
		}
		counts := []byte("key: 00 00 00 05 ff ff ff f2 00 00 01 02  value: 00 00 00 09\nFound 1 element\n")
		text := fmt.Appendf(nil, "key: 00 00 00 05  value: % x\nFound 1 element\n", c.value)
		for _, in := range [][]byte{stacks, text} {
			set := mustRead(t, "stacks", in, &Options{Counts: input("counts", counts),
				Key: mustFields(t, "user_stack_id:0,kernel_stack_id:4,pid:8")})
			if got := set.text(Labels{PID: true}); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		}
	}
}

// TestHugeCounts: counts beyond a profile's largest are cut, reported once, and never wrap.
func TestHugeCounts(t *testing.T) {
	const id = "93ac61ec5a8eb1396f9fbd350e3169a558528a40"
	text := "@[\n" + id + " 0x1\n]: 9000000000000000000\n@[\n" + id + " 0x2\n]: 18446744073709551615\n" +
		"@[\n" + id + " 0x3\n]: 5\n"
	set := mustRead(t, "x", []byte(text), &Options{})
	want := "223372036854775807 × (absent) | " + id + "+0x2\n" +
		"9000000000000000000 × (absent) | " + id + "+0x1"
	if got := set.text(Labels{}); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if w := errorsText(set.Warnings); strings.Count(w, "are cut") != 1 {
		t.Errorf("warnings %q", w)
	}
	header := `{"systing_profile_export":1,"sample_event":"cpu-clock","sample_period":10000000000}` + "\n"
	set = mustRead(t, "x", []byte(header+`["f",0,"0x1"]`+"\n"+`["s",0,[0]]`+"\n"+
		`["x",0,0,1,9000000000000]`+"\n"), &Options{})
	if s := set.Samples; len(s) != 1 || s[0].Count != 9e12 || s[0].Weight != maxTotal {
		t.Errorf("%+v", s)
	}
	counts := "key: 05 00 00 00\nvalue (CPU 00): ff ff ff ff ff ff ff ff\n" +
		"value (CPU 01): ff ff ff ff ff ff ff ff\nFound 1 element\n"
	stacks := "key: 05 00 00 00  value: 12 34 56 78 9a 7f 00 00\nFound 1 element\n"
	set = mustRead(t, "x", []byte(stacks), &Options{Counts: input("counts", []byte(counts))})
	if s := set.Samples; len(s) != 1 || s[0].Count != maxTotal {
		t.Errorf("%+v", s)
	}
}

// TestBpftraceJSON: printed stacks, values that are no counts, and damaged lines.
func TestBpftraceJSON(t *testing.T) {
	const id = "0123456789abcdef0123456789abcdef01234567"
	for _, tt := range []struct{ name, text, want, warning string }{
		{name: "printed", text: `{"type": "printf", "data": "app "}
{"type": "printf", "data": "12\n"}
{"type": "printf", "data": "` + id + ` 0x10\nffff00\n\n"}
{"type": "time", "data": "12:00:00\n"}
`, want: "12 app 1"},
		{name: "a count as a text", text: `{"type": "map", "data": {"@": {"\n` + id + `0x10\n": "9007199254740993"}}}` + "\n",
			want: "-1  9007199254740993"},
		{name: "a histogram of a stack", text: `{"type": "hist", "data": {"@": {"\n` + id +
			`0x10\n": [{"min": 1, "max": 2, "count": 3}]}}}` + "\n", want: "-1  1", warning: "a map's value is not a count"},
		{name: "comm first", text: `{"type": "map", "data": {"@a_b": {"app,\n` + id + `0x10\n": 2}}}` + "\n", want: "-1 app 2"},
		{name: "a damaged line between", text: "{\"type\": \"map\", \"data\": {\"@\": {\"\\n" + id + "0x10\\n\": 2}}}\n{\"type\": nonsense\n" +
			"{\"type\": \"map\", \"data\": {\"@\": {\"\\n" + id + "0x20\\n\": 3}}}\n", want: "-1  2|-1  3",
			warning: "1 lines are damaged, the first at offset 0x"},
		{name: "a long key", text: "{\"type\": \"map\", \"data\": {\"@\": {\"\\n" + id + "0x10\\n\": 2, \"" +
			strings.Repeat("x", 3*maxLine) + "\": 3}}}\n", want: "-1  2", warning: "a text of more than 1048576 bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			set := mustRead(t, tt.name, []byte(tt.text), &Options{})
			var got []string
			for i := range set.Samples {
				sm := &set.Samples[i]
				got = append(got, fmt.Sprintf("%d %s %d", sm.PID, sm.Comm, sm.Count))
			}
			if text := strings.Join(got, "|"); text != tt.want || set.Form != Bpftrace {
				t.Errorf("%v: %s", set.Form, text)
			}
			warnings := fmt.Sprint(set.Warnings)
			if (len(set.Warnings) > 0) != (tt.warning != "") || !strings.Contains(warnings, tt.warning) {
				t.Errorf("warnings %s", warnings)
			}
		})
	}
	for _, text := range []string{`{"type": "map", "data": {"@x": {"go": 1}}}`, `{"type": 3}`, `{"types": "map"}`, "{"} {
		if form := Sniff(input("x", []byte(text))); form == Bpftrace {
			t.Errorf("%s: %v", text, form)
		}
	}
}
