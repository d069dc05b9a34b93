package tracefmt

import (
	"encoding/binary"
	"strings"
	"testing"

	"symbolize/ingest/format/perfdata"
)

// fields are those of a built tracepoint, and raw is a sample of it in an order of bytes.
var fields = []perfdata.TracepointField{
	{Name: "addr", Type: "void *", Offset: 0, Size: 8},
	{Name: "reason", Type: "enum skb_drop_reason", Offset: 8, Size: 4},
	{Name: "delta", Type: "int", Offset: 12, Size: 4, Signed: true},
	{Name: "size", Type: "size_t", Offset: 16, Size: 8},
	{Name: "comm", Type: "char[8]", Offset: 24, Size: 8, Text: true},
	{Name: "ip", Type: "__u8[4]", Offset: 32, Size: 4},
	{Name: "ip6", Type: "__u8[16]", Offset: 36, Size: 16},
	{Name: "args", Type: "unsigned short[2]", Offset: 52, Size: 4},
	{Name: "sock", Type: "__u8[28]", Offset: 56, Size: 28},
	{Name: "data", Type: "__data_loc u8[]", Offset: 84, Size: 4, Dynamic: true},
	{Name: "name", Type: "__data_loc char[]", Offset: 88, Size: 4, Dynamic: true, Text: true},
	{Name: "zero", Type: "u64", Offset: 92, Size: 8},
}

func raw(order binary.AppendByteOrder) []byte {
	b := order.AppendUint64(nil, 0xffffffff81000011)
	b = order.AppendUint32(b, 3)
	b = order.AppendUint32(b, 0xfffffff9) // -7
	b = order.AppendUint64(b, 4096)
	b = append(b, "bash\x00xyz"...)
	b = append(b, 127, 0, 0, 1)
	b = append(b, 0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1)
	b = order.AppendUint16(order.AppendUint16(b, 0x102), 7)
	b = order.AppendUint16(b, 2)
	b = append(append(b, 0x1f, 0x90, 10, 0, 0, 9), make([]byte, 20)...)
	b = order.AppendUint32(b, 100|3<<16)
	b = order.AppendUint32(b, 103|4<<16)
	b = order.AppendUint64(b, 0)
	return append(b, 1, 2, 0xfe, 'e', 't', 'h', 0)
}

func sample(big bool) *Sample {
	s := &Sample{Fields: fields, Raw: raw(binary.LittleEndian)}
	if big {
		s.Raw, s.BigEndian = raw(binary.BigEndian), true
	}
	s.Symbol = func(a uint64, offset bool) string {
		switch {
		case a != 0xffffffff81000011:
			return ""
		case offset:
			return "tcp_v4_rcv+0x11"
		}
		return "tcp_v4_rcv"
	}
	return s
}

func TestAppend(t *testing.T) {
	for _, tc := range []struct {
		name, format, want string
		unknown            bool
	}{
		{name: "text", format: `"a 100%%\n\"b\""`, want: "a 100%\n\"b\""},
		{name: "adjacent texts", format: `"a" "b"`, want: "ab"},
		{name: "numbers", format: `"%d %u %x %#x %lu", REC->delta, REC->reason, REC->delta, REC->reason, REC->size`,
			want: "-7 3 fffffff9 0x3 4096"},
		{name: "zero", format: `"%#x 0x%lx %p %5d|%-5d|%05d", REC->zero, REC->zero, REC->zero, 7, 7, 7`,
			want: "0 0x0 (nil)     7|7    |00007"},
		{name: "width", format: `"%*d", 4, REC->reason`, want: "   3"},
		{name: "symbol", format: `"%pS %ps %p", REC->addr, (void *)REC->addr, REC->addr`,
			want: "tcp_v4_rcv+0x11 tcp_v4_rcv 0xffffffff81000011"},
		{name: "no symbol", format: `"%pS", REC->size`, want: "0x1000"},
		{name: "symbolic", format: `"%s", __print_symbolic(REC->reason, { 2, "A" }, { 3, "NO_SOCKET" })`,
			want: "NO_SOCKET"},
		{name: "symbolic, no name", format: `"%s", __print_symbolic(REC->size, { 2, "A" }, { -1, ((void *)0) })`,
			want: "0x1000"},
		{name: "symbolic, constants", format: `"%s", __print_symbolic(REC->reason, { NAME, "A" }, { 3, "B" })`,
			want: "B"},
		{name: "flags", format: `"%s", __print_flags(REC->reason, "|", { 1, "A" }, { 1U << 1, "B" }, { 4, "C" })`,
			want: "A|B"},
		{name: "flags, rest", format: `"%s", __print_flags(REC->size | 1, "", { 0x01, "A" })`, want: "A0x1000"},
		{name: "flags of 0", format: `"%s", __print_flags(REC->zero, "|", { NAME, "A" }, { 0, "none" })`,
			want: "none"},
		{name: "condition", format: `"%s%s", REC->zero ? "x" : "y", !REC->zero ? " ok" : ""`, want: "y ok"},
		{name: "operators", format: `"%d %d %d", ((unsigned int) ((REC->size) >> 8)), (1 + 2 * 3 - -1) % 5, 7 & 12 | 1 ^ 1`,
			want: "16 3 4"},
		{name: "compare", format: `"%d%d%d%d", REC->delta < 0, REC->size >= 4096 && 1 != 2, 1 << 3 == 8, 2 <= 1 || 0`,
			want: "1110"},
		{name: "casts", format: `"%d %d %u %llu", (int)REC->size, (s8)0xff, (u8)REC->delta, (u64)REC->delta`,
			want: "4096 -1 249 18446744073709551609"},
		{name: "texts", format: `"%s %s %-5s|", REC->comm, __get_str(name), __get_str(name)`,
			want: "bash eth eth  |"},
		{name: "hex", format: `"%s %s %s", __print_hex(__get_dynamic_array(data), __get_dynamic_array_len(data)), ` +
			`__print_hex_str(REC->ip, 4), __print_array(REC->args, 2, sizeof(unsigned short))`,
			want: "01 02 fe 7f000001 {0x102,0x7}"},
		{name: "element", format: `"%d %c", REC->args[1], 'x'`, want: "7 x"},
		{name: "addresses", format: `"%pI4 %pI6c %pISpc %pM", REC->ip, REC->ip6, REC->sock, REC->ip6`,
			want: "127.0.0.1 2001:db8::1 10.0.0.9:8080 20:01:0d:b8:00:00"},
		{name: "precision", format: `"%-8.3d|", 2`, want: "002     |"},
		{name: "expected", format: `"%d", __builtin_expect(!!(REC->zero), 0) ? 1 : 2`, want: "2"},

		{name: "too wide", format: `"%99999999d", 1`, unknown: true},
		{name: "another conversion", format: `"%f %d", 1, 2`, unknown: true},
		{name: "no conversion", format: `"%d %l", 1`, unknown: true},
		{name: "a function", format: `"%d", frob(REC->size)`, unknown: true},
		{name: "a statement", format: `"%d %d", ({ int x = 1; (x); }), 2`, unknown: true},
		{name: "a constant", format: `"%d", NAME`, unknown: true},
		{name: "no field", format: `"%d", REC->other`, unknown: true},
		{name: "no argument", format: `"%d %d", 1`, unknown: true},
		{name: "a number as text", format: `"%s", REC->size`, unknown: true},
		{name: "a text as number", format: `"%d", REC->comm`, unknown: true},
		{name: "pointers that count in elements", format: `"%p", ((struct page *)vmemmap_base) + (REC->size)`,
			unknown: true},
		{name: "scaled", format: `"%p", ((unsigned int *)REC->addr) + 1`, unknown: true},
		{name: "division by 0", format: `"%d", 1 / REC->zero`, unknown: true},
		{name: "outside", format: `"%d", REC->args[2]`, unknown: true},
		{name: "too few bytes", format: `"%pI6c", REC->ip`, unknown: true},
	} {
		for _, big := range []bool{false, true} {
			f, err := Parse(tc.format)
			if err != nil {
				t.Errorf("%s: %v", tc.name, err)
				continue
			}
			got, ok := f.Append([]byte("> "), sample(big))
			if ok == tc.unknown || string(got) != "> "+tc.want {
				t.Errorf("%s, big endian %t: %q %t, want %q", tc.name, big, got, ok, tc.want)
			}
		}
	}
}

func TestField(t *testing.T) {
	const format = `"at=%pS why=%s n=%d %s %s %pI4 %s %s%s", REC->addr, ` +
		`__print_symbolic((int)(REC->reason), { 3, "NO_SOCKET" }), REC->zero, ` +
		`__print_flags(REC->size & ~0xfUL, "|", { 4096, "A" }), REC->comm, REC->ip, ` +
		`(REC->delta) ? __print_flags((unsigned char)REC->delta, "|", { 0xf0, "B" }) : "none", ` +
		`(REC->size & 0xff) ? __print_flags(REC->size & 0xff, "|", { 4, "D" }) : "R", REC->size & 0xff00 ? "+" : ""`
	f, err := Parse(format)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		field, want string
		symbol      bool
	}{
		{field: "addr", want: "tcp_v4_rcv+0x11", symbol: true},
		{field: "reason", want: "NO_SOCKET"},
		{field: "ip", want: "127.0.0.1"},
		{field: "delta", want: "B|0x9"},
		{field: "size", want: "R+"}, // the first text is not of all of it
		{field: "zero"},
		{field: "zero"},
		{field: "comm"},
		{field: "other"},
	} {
		x := f.Field(tc.field)
		if (x == nil) != (tc.want == "") {
			t.Errorf("%s: %v", tc.field, x)
		}
		if x == nil {
			continue
		}
		if got, ok := x.Text(sample(false)); !ok || got != tc.want || x.Symbol != tc.symbol {
			t.Errorf("%s: %q %t", tc.field, got, x.Symbol)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for _, tc := range []struct{ name, format, want string }{
		{name: "no text", format: `REC->addr`, want: "begins without a text"},
		{name: "empty", format: ``, want: "begins without a text"},
		{name: "no end", format: `"abc`, want: "begins without a text"},
		{name: "brackets", format: `"%d", (1))`, want: "brackets"},
		{name: "behind", format: `"%d" REC->x`, want: `"REC->x" behind it`},
		{name: "long", format: strings.Repeat("x", maxText+1), want: "more than"},
	} {
		if _, err := Parse(tc.format); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
	for _, deep := range []string{strings.Repeat("(", 1<<16), strings.Repeat("-", 1<<16) + "1",
		strings.Repeat("(int)", 1<<14) + "1", strings.Repeat("1?", 1<<14), "f" + strings.Repeat("(f", 1<<14),
		strings.Repeat("1+", 1<<15) + "1"} {
		f, err := Parse(`"%d", ` + deep)
		if err == nil {
			f.Append(nil, sample(false))
		}
	}
}

// TestTruncated prints beginnings of a sample, and formats cut anywhere.
func TestTruncated(t *testing.T) {
	const format = `"%pS %s %pI4 %s", REC->addr, __get_str(name), REC->ip, ` +
		`__print_hex(__get_dynamic_array(data), __get_dynamic_array_len(data))`
	f, err := Parse(format)
	if err != nil {
		t.Fatal(err)
	}
	for n := range sample(false).Raw {
		s := sample(false)
		s.Raw = s.Raw[:n]
		if text, ok := f.Append(nil, s); ok && n < 103 {
			t.Errorf("%d bytes: %q", n, text)
		}
	}
	for n := range format {
		if f, err := Parse(format[:n]); err == nil {
			f.Append(nil, sample(false))
		}
	}
}

func FuzzFormat(f *testing.F) {
	for _, s := range []string{`"%pS %s", REC->addr, __print_symbolic(REC->reason, { 3, "B" }, { -1, ((void *)0) })`,
		`"%d %*x", (int)REC->delta << 3, 3, REC->args[1]`, `"%s", __print_array(REC->args, 2, sizeof(u16))`,
		`"%s", REC->zero ? "a" "b" : __print_flags(REC->size | ~1UL, "|", {0x1000u, "X"})`, `"%d", ({ f(x, "}"); })`,
		`"%pISpc %pU", REC->sock, __get_dynamic_array(data)`} {
		f.Add(s, raw(binary.LittleEndian), false)
	}
	f.Fuzz(func(t *testing.T, format string, data []byte, big bool) {
		x, err := Parse(format)
		if err != nil {
			return
		}
		s := &Sample{Fields: fields, Raw: data, BigEndian: big}
		text, ok := x.Append([]byte("> "), s)
		if !strings.HasPrefix(string(text), "> ") || !ok && len(text) > 2 {
			t.Errorf("%q %t", text, ok)
		}
		for i := range fields {
			if y := x.Field(fields[i].Name); y != nil {
				y.Text(s)
			}
		}
	})
}
