package bpfobj

import (
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"symbolize/fixtures/golden"
	"symbolize/fixtures/must"
	"symbolize/ingest/object/bpf"
	"symbolize/ingest/object/elf"
)

// readBytes reads an object from memory.
func readBytes(t testing.TB, b []byte) (*Object, error) {
	t.Helper()
	f, err := elf.Open("test.o", bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	return Read(f)
}

// readFile reads an object of testdata that must be valid.
func readFile(t testing.TB, name string) *Object {
	t.Helper()
	b := must.Read(t, filepath.Join("testdata", name))
	o, err := readBytes(t, b)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// named returns the function with a name.
func (o *Object) named(t testing.TB, name string) *Function {
	t.Helper()
	i := slices.IndexFunc(o.Functions, func(f Function) bool { return f.Name == name })
	if i < 0 {
		t.Fatalf("no function %s", name)
	}
	return &o.Functions[i]
}

// text prints an object.
func (o *Object) text() string {
	var b strings.Builder
	for i := range o.Functions {
		f := &o.Functions[i]
		fmt.Fprintf(&b, "%s %s program=%v length=%d count=%d at %s:%d", f.Section, f.Name, f.Program,
			f.Length, f.Count, f.File, f.Line)
		if f.Uncertain != "" {
			fmt.Fprintf(&b, " uncertain: %s", f.Uncertain)
		}
		if f.Rewritten != "" {
			fmt.Fprintf(&b, " rewritten: %s", f.Rewritten)
		}
		for _, t := range f.Tags {
			fmt.Fprintf(&b, "\n\ttag %s", t)
		}
		for _, t := range f.OwnTags {
			fmt.Fprintf(&b, "\n\town tag %s", t)
		}
		for _, l := range f.Lines {
			fmt.Fprintf(&b, "\n\t%d insn %d line %d:%d %q", l.Offset, l.Insn, l.Line, l.Column,
				strings.TrimSpace(l.Source))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// TestGolden compares the contents of the compiled objects.
func TestGolden(t *testing.T) {
	for _, name := range []string{"shapes.bpf.o", "count.bpf.o", "externs.bpf.o"} {
		golden.Compare(t, name+".txt", []byte(readFile(t, name).text()))
	}
}

// TestRecordedTag: fixtures/captures/bpf-lines.data was recorded on Linux 6.18 with this object, in
// which a program calls two functions.
func TestRecordedTag(t *testing.T) {
	f := readFile(t, "count.bpf.o").named(t, "count_system_calls_on_enter")
	if !hasTag(f, "91621db7a64bdc62") || f.Uncertain != "" || !f.Program || f.Count != 93 {
		t.Errorf("%+v", f)
	}
}

func hasTag(f *Function, tag string) bool {
	return slices.ContainsFunc(f.Tags, func(t bpf.Tag) bool { return t.String() == tag })
}

// TestPublishedTag: the program that systemd loads to count a unit's packets has the tag
// 6deef7357e7b4530 in every listing of bpftool of a kernel before 6.18, so its digest is a
// SHA-1 of the code that src/core/bpf-firewall.c generates for an empty list of rules.
func TestPublishedTag(t *testing.T) {
	const code = "bf16000000000000" + // r6 = r1
		"6167100000000000" + // r7 = *(u32 *)(r6 + 16), the protocol
		"b408000000000000" + // w8 = 0
		"4408000002000000" + // w8 |= 2
		"b700000001000000" + // r0 = 1
		"5508010002000000" + // if r8 != 2 goto +1
		"b700000000000000" + // r0 = 0
		"9500000000000000" // exit
	b, err := hex.DecodeString(code)
	if err != nil {
		t.Fatal(err)
	}
	o, err := readBytes(t, object(false, section{name: "cgroup_skb/egress", code: b}))
	if err != nil {
		t.Fatal(err)
	}
	if f := &o.Functions[0]; !hasTag(f, "6deef7357e7b4530") {
		t.Errorf("tags %v", f.Tags)
	}
}

// TestTagOfMaps: the positions of maps and variables do not count, on hosts of either byte
// order; other immediates do.
func TestTagOfMaps(t *testing.T) {
	for _, big := range []bool{false, true} {
		insn := func(op, dst, src byte, imm uint32) []byte {
			regs := src<<4 | dst
			if big {
				regs = dst<<4 | src
			}
			return order(big).AppendUint32([]byte{op, regs, 0, 0}, imm)
		}
		exit := insn(0x95, 0, 0, 0)
		for _, src := range []byte{0, srcMapFD, srcMapValue, srcFunc + 1} {
			one := slices.Concat(insn(opLoadImm64, 1, src, 7), insn(0, 0, 0, 9), exit)
			zero := slices.Concat(insn(opLoadImm64, 1, src, 0), insn(0, 0, 0, 0), exit)
			tags := func(code []byte) []bpf.Tag {
				o, err := readBytes(t, object(big, section{name: "xdp", code: code}))
				if err != nil || len(o.Functions) != 1 || o.BigEndian != big {
					t.Fatalf("%+v, %v", o, err)
				}
				return o.Functions[0].Tags
			}
			isMap := src == srcMapFD || src == srcMapValue
			if same := slices.Equal(tags(one), tags(zero)); same != isMap {
				t.Errorf("big %v, source %d: same tag %v", big, src, same)
			}
			sum := sha1.Sum(zero)
			if o, _ := readBytes(t, object(big, section{name: "xdp", code: zero})); !hasTag(
				&o.Functions[0], hex.EncodeToString(sum[:8])) {
				t.Errorf("big %v: no SHA-1 of the code among %v", big, o.Functions[0].Tags)
			}
		}
	}
}

// TestOrders: a program with subprograms that the two loaders append in different orders has a tag
// for each order, with both digests.
func TestOrders(t *testing.T) {
	o := readFile(t, "shapes.bpf.o")
	if f := o.named(t, "orders"); len(f.Tags) != 4 {
		t.Errorf("tags %v", f.Tags)
	}
	r := readerOf(t, "shapes.bpf.o")
	main := r.functions[slices.IndexFunc(r.functions, func(f *function) bool {
		return f.Name == "orders"
	})]
	for _, c := range []struct {
		order func(*function) []*function
		want  string
	}{
		{order: libbpfOrder, want: "orders zulu middle alpha"},
		{order: ciliumOrder, want: "orders alpha middle zulu"},
	} {
		var names []string
		for _, f := range c.order(main) {
			names = append(names, f.Name)
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("order %s, want %s", got, c.want)
		}
	}
}

// readerOf is the reader of an object of testdata before its link.
func readerOf(t *testing.T, name string) *linker {
	t.Helper()
	b := must.Read(t, filepath.Join("testdata", name))
	f, err := elf.Open(name, bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	r := &linker{f: f, sections: make(map[int]*sectionData)}
	r.readCode()
	r.readSymbols()
	r.readTypes()
	r.readRelocations()
	return r
}
