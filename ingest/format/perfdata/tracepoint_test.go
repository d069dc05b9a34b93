package perfdata

import (
	"encoding/binary"
	"reflect"
	"strings"
	"testing"
)

const execFormat = `name: sched_process_exec
ID: 365
format:
	field:unsigned short common_type;	offset:0;	size:2;	signed:0;
	field:int common_pid;	offset:4;	size:4;	signed:1;

	field:__data_loc char[] filename;	offset:8;	size:4;	signed:0;
	field:pid_t pid;	offset:12;	size:4;	signed:1;
	field:const void * ptr;	offset:16;	size:8;	signed:0;
	field:char comm[8];	offset:24;	size:8;	signed:0;
	field:__rel_loc char[] tail;	offset:32;	size:4;	signed:0;
	field:u32 list[4];	offset:36;	size:16;	signed:0;

print fmt: "field:no field;	offset:0;	size:8;", REC->pid
`

// tracingData is TRACING_DATA with one format.
func tracingData(big bool, format string) []byte {
	var o binary.AppendByteOrder = binary.LittleEndian
	order := byte(0)
	if big {
		o, order = binary.BigEndian, 1
	}
	sized := func(b []byte, text string) []byte {
		return append(o.AppendUint64(b, uint64(len(text))), text...)
	}
	b := append([]byte("\x17\x08\x44tracing0.6\x00"), order, 8)
	b = o.AppendUint32(b, 4096)
	b = sized(append(b, "header_page\x00"...), "page")
	b = sized(append(b, "header_event\x00"...), "event")
	b = sized(o.AppendUint32(b, 1), "name: function\nID: 1\n")
	b = o.AppendUint32(b, 1)
	b = o.AppendUint32(append(b, "sched\x00"...), 1)
	return sized(b, format)
}

func TestTracepoints(t *testing.T) {
	for _, big := range []bool{false, true} {
		list, err := parseTracepoints("x", tracingData(big, execFormat), 0)
		if err != nil || len(list) != 1 {
			t.Fatal(list, err)
		}
		f := list[0]
		if f.System != "sched" || f.Name != "sched_process_exec" || f.ID != 365 || len(f.Fields) != 6 {
			t.Fatalf("%+v", f)
		}
		o := binary.ByteOrder(binary.LittleEndian)
		if big {
			o = binary.BigEndian
		}
		raw := make([]byte, 64)
		o.PutUint32(raw[8:], 5<<16|56)
		copy(raw[56:], "/bin\x00")
		o.PutUint32(raw[12:], ^uint32(6))
		o.PutUint64(raw[16:], 0xffff888100000000)
		copy(raw[24:], "bash\x00xy")
		o.PutUint32(raw[32:], 2<<16|25) // 61
		copy(raw[61:], "ok")
		var got []string
		for i := range f.Fields {
			got = append(got, f.Fields[i].Name+"="+f.Fields[i].String(raw, big))
		}
		want := []string{"filename=/bin", "pid=-7", "ptr=0xffff888100000000", "comm=bash", "tail=ok",
			"list="}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		if v, ok := f.Fields[1].Number(raw, big); !ok || int64(v) != -7 {
			t.Errorf("pid is %d, %v", int64(v), ok)
		}
		for n := range raw { // too short for some, and never a panic
			for i := range f.Fields {
				f.Fields[i].String(raw[:n], big)
			}
		}
	}
}

// TestTracepointsTruncated cuts the data at every length.
func TestTracepointsTruncated(t *testing.T) {
	whole := tracingData(false, execFormat)
	for n := range whole {
		if list, err := parseTracepoints("x", whole[:n], 0); err == nil {
			t.Errorf("%d of %d bytes: %v and no error", n, len(whole), list)
		}
	}
}

func FuzzTracepoints(f *testing.F) {
	for _, big := range []bool{false, true} {
		f.Add(tracingData(big, execFormat), make([]byte, 40), big)
	}
	f.Fuzz(func(t *testing.T, b, raw []byte, big bool) {
		list, _ := parseTracepoints("x", b, 0)
		for _, x := range list {
			for i := range x.Fields {
				if s := x.Fields[i].String(raw, big); strings.ContainsRune(s, 0) {
					t.Errorf("NUL in %q", s)
				}
			}
		}
	})
}
