package reporter

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"

	"symbolize/ingest/record/sys"
)

// kernelTypes is the BTF of a kernel: structures with the members that the copying program reads,
// each at its own offset; members of bpf_prog_aux are in an anonymous union, as is possible in a
// kernel.
func kernelTypes(t *testing.T, without string) *btf.Spec {
	t.Helper()
	word := &btf.Int{Name: "unsigned long", Size: 8}
	b, err := btf.NewBuilder(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, members := range map[string]string{
		"bpf_prog":     "type jited_len tag len bpf_func aux",
		"user_struct":  "uid",
		"btf":          "data data_size id",
		"task_struct":  "files",
		"files_struct": "fdt", "fdtable": "fd", "file": "f_op private_data",
		"file_operations": "release",
		"pt_regs":         "orig_ax di syscallno orig_x0",
		"bpf_prog_aux": "id load_time verified_insns func_cnt name func_info_cnt nr_linfo user btf " +
			"func_info linfo jited_linfo func",
	} {
		s := &btf.Struct{Name: name, Size: 8}
		for member := range strings.FieldsSeq(members) {
			if name+"."+member == without {
				continue
			}
			s.Members = append(s.Members, btf.Member{Name: member, Type: word,
				Offset: btf.Bits(8 * s.Size)})
			s.Size += 8
		}
		if name == "bpf_prog_aux" {
			inner := &btf.Union{Size: s.Size, Members: []btf.Member{
				{Type: &btf.Struct{Size: s.Size, Members: s.Members}}}}
			s = &btf.Struct{Name: name, Size: s.Size + 8, Members: []btf.Member{
				{Name: "first", Type: word}, {Type: inner, Offset: 64}}}
		}
		if _, err := b.Add(s); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := b.Marshal(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := btf.LoadSpecFromReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

// TestCopyProgram: for each way to find a program, on each machine, all jumps and calls
// have their targets; a function missing in the kernel is an error that names it.
func TestCopyProgram(t *testing.T) {
	finds := map[string]func(l *sys.BTFLayout) asm.Instructions{
		"entry": func(*sys.BTFLayout) asm.Instructions { return atEntry() },
		"amd64": func(l *sys.BTFLayout) asm.Instructions { return atExit(l, "amd64", 0xffffffff81000000) },
		"arm64": func(l *sys.BTFLayout) asm.Instructions { return atExit(l, "arm64", 0xffff800080000000) },
	}
	for name, find := range finds {
		l := sys.NewLayout(kernelTypes(t, ""))
		code, err := copyProgram(l, 3, find(l))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		symbols, err := code.SymbolOffsets()
		if err != nil {
			t.Fatalf("%s: %v", name, err) // two of one name
		}
		for i := range code {
			if ref := code[i].Reference(); ref != "" {
				if _, ok := symbols[ref]; !ok {
					t.Errorf("%s: instruction %d, %v, goes to %q, which is nowhere", name, i, code[i], ref)
				}
			}
		}
		for _, f := range []string{copyName, copyPiece, copyFunc} {
			if _, ok := symbols[f]; !ok {
				t.Errorf("%s: no function %s", name, f)
			}
		}
		var out bytes.Buffer
		if err := code.Marshal(&out, binary.LittleEndian); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, without := range []string{"bpf_prog.tag", "bpf_prog_aux.func", "file.private_data"} {
		l := sys.NewLayout(kernelTypes(t, without))
		_, err := copyProgram(l, 3, atExit(l, "amd64", 1))
		if _, member, _ := strings.Cut(without, "."); err == nil ||
			!strings.Contains(err.Error(), member) {
			t.Errorf("without %s: %v", without, err)
		}
	}
	l := sys.NewLayout(kernelTypes(t, ""))
	if _, err := copyProgram(l, 3, atExit(l, "riscv64", 1)); err == nil ||
		!strings.Contains(err.Error(), "riscv64") {
		t.Errorf("on riscv64: %v", err)
	}
}

// TestHeadFits: all fields are inside the head, and no two overlap.
func TestHeadFits(t *testing.T) {
	l := sys.NewLayout(kernelTypes(t, ""))
	var used [headSize]bool
	code := readHead(l)
	for i := range code {
		// readTo: mov r1, dst; add r1, at; mov r2, size; …; call.
		if !code[i].IsBuiltinCall() {
			continue
		}
		at, size := code[i-4].Constant, code[i-3].Constant
		if at >= stackCtx { // scratch
			continue
		}
		for k := at - stackHead; k < at-stackHead+size; k++ {
			if k < 0 || k >= headSize || used[k] {
				t.Fatalf("bytes %d to %d of the head", at-stackHead, at-stackHead+size)
			}
			used[k] = true
		}
	}
	if !used[headType] || !used[headUID+3] {
		t.Error("the head is not filled")
	}
}
