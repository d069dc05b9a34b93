//go:build linux

package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"symbolize/analyze/bpfmap"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/object/btf"
)

// smallBTF builds BTF of one-word types: each is a name, what follows it, and more words.
type smallBTF struct {
	strings string
	types   []byte
	n       uint32
}

func (b *smallBTF) add(name string, words ...uint32) uint32 {
	all := append([]uint32{uint32(1 + len(b.strings))}, words...)
	b.strings += name + "\x00"
	for _, w := range all {
		b.types = binary.LittleEndian.AppendUint32(b.types, w)
	}
	b.n++
	return b.n
}

func (b *smallBTF) parse(t *testing.T) *btf.Types {
	t.Helper()
	text := "\x00" + b.strings
	raw := []byte{0x9f, 0xeb, 1, 0}
	for _, w := range []int{24, 0, len(b.types), len(b.types), len(text)} {
		raw = binary.LittleEndian.AppendUint32(raw, uint32(w))
	}
	types, err := btf.Parse("test", append(append(raw, b.types...), text...), nil)
	if err != nil {
		t.Fatal(err)
	}
	return types
}

// TestStructOps finds the kernel's structure of a struct_ops map, by name or by size.
func TestStructOps(t *testing.T) {
	const structKind, varKind, sectionKind = 4 << 24, 14 << 24, 15 << 24
	var program, kernel smallBTF
	ops := program.add("ops___v2", structKind, 8)
	for _, section := range []struct {
		name string
		vars []string
	}{{".struct_ops.link", []string{"a_long_name_of_o", "b"}}, {".data", []string{"c"}}} {
		words := []uint32{sectionKind | uint32(len(section.vars)), 16}
		for i, name := range section.vars {
			words = append(words, program.add(name, varKind, ops, 1), uint32(8*i), 8)
		}
		program.add(section.name, words...)
	}
	kernel.add("ops", structKind, 8)
	own := btf.ID(kernel.add("bpf_struct_ops_ops", structKind, 64))
	kernel.add("bpf_struct_ops_twin", structKind, 64)
	single := btf.ID(kernel.add("bpf_struct_ops_single", structKind, 32))
	defined, types := program.parse(t), kernel.parse(t)
	for _, c := range []struct {
		what, name string
		program    *btf.Types
		size       int
		want       btf.ID
	}{
		{"by its definition", "b", defined, 64, own},
		{"by a name that is cut", "a_long_name_of_", defined, 64, own},
		{"of another size than the kernel's", "b", defined, 72, 0},
		{"a variable of another section", "c", defined, 64, 0},
		{"by the only one of its size", "x", nil, 32, single},
		{"of two of its size", "x", nil, 64, 0},
		{"of none of its size", "x", nil, 8, 0},
	} {
		m := &mapInput{header: bundle.DumpHeader{Type: mapStructOps, Name: c.name}, program: c.program,
			layout: bpfmap.Layout{KeySize: 4, ValueSize: c.size}}
		if err := m.types(types, mapSource{}); err != nil || m.layout.Value != c.want ||
			(m.layout.Types != nil) != (c.want != 0) {
			t.Errorf("%s: type %d, want %d; %v", c.what, m.layout.Value, c.want, err)
		}
	}
}

// liveOps registers a congestion control of TCP that is never used.
const liveOps = `#define SEC(n) __attribute__((section(n), used))
struct sock;
struct tcp_congestion_ops {
	unsigned (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, unsigned ack, unsigned acked);
	unsigned (*undo_cwnd)(struct sock *sk);
	char name[16];
} __attribute__((preserve_access_index));
SEC("struct_ops/a") unsigned a(unsigned long long *c) { return 2; }
SEC("struct_ops/b") void b(unsigned long long *c) {}
SEC("struct_ops/c") unsigned c(unsigned long long *c) { return 2; }
SEC(".struct_ops") struct tcp_congestion_ops live_ops = {
	(void *)a, (void *)b, (void *)c, "NAME"};
char LICENSE[] SEC("license") = "GPL";
`

// TestLiveMapStructOps: a struct_ops map prints as bpftool's dump of it, by the kernel's BTF,
// and without that says so.
func TestLiveMapStructOps(t *testing.T) {
	needLive(t, "clang", "bpftool")
	dir := t.TempDir()
	source, object := filepath.Join(dir, "ops.bpf.c"), filepath.Join(dir, "ops.bpf.o")
	name := fmt.Sprintf("live%d", os.Getpid())
	text := strings.ReplaceAll(liveOps, "NAME", name)
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	command(t, dir, "clang", "-g", "-O2", "-target", "bpf", "-c", "-o", object, source)
	out, err := exec.Command("bpftool", "struct_ops", "register", object).CombinedOutput()
	if err != nil {
		t.Skipf("SKIPPED: no struct_ops here: %v: %s", err, out)
	}
	var maps []struct {
		ID   uint32 `json:"id"`
		Type string `json:"type"`
		Name string `json:"name"`
	}
	if err := json.Unmarshal([]byte(command(t, dir, "bpftool", "-j", "map", "list")),
		&maps); err != nil {
		t.Fatal(err)
	}
	id := ""
	for _, m := range maps {
		if m.Type == "struct_ops" && m.Name == "live_ops" {
			id = fmt.Sprint(m.ID)
		}
	}
	t.Cleanup(func() { // the context of the test is cancelled by then
		out, err := exec.Command("bpftool", "struct_ops", "unregister", "id", id).CombinedOutput()
		if err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	want := command(t, dir, "bpftool", "map", "dump", "id", id)
	data := filepath.Join(dir, "maps.data")
	if code, _, said := runLive(t, "capture", "-o", data, "--maps", id, "--", "true"); code != 0 {
		t.Fatalf("capture: status %d\n%s", code, said)
	}
	code, got, said := runLive(t, "map", "--btf", "/sys/kernel/btf/vmlinux", data)
	if code != 0 || got != want || !strings.Contains(got, `"`+name+`"`) {
		t.Errorf("status %d, %s\n%s", code, said, firstChange(got, want))
	}
	code, got, said = runLive(t, "map", data)
	if code != 0 || !strings.Contains(said, "its types are those of the kernel") ||
		!strings.HasPrefix(got, "key:\n") {
		t.Errorf("without the kernel's BTF: status %d, %s\n%s", code, said, got)
	}
}
