package bpfobj

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"symbolize/fixtures/elfbuild"
	"symbolize/ingest/object/bpf"
)

// tagsText joins tags.
func tagsText(tags []bpf.Tag) string {
	var s []string
	for _, t := range tags {
		s = append(s, t.String())
	}
	return strings.Join(s, " ")
}

// TestRecordedOwnTags: the own tags of the functions of count.bpf.o as Linux 6.18 has them
// in fixtures/sampled. The program itself calls helpers.
func TestRecordedOwnTags(t *testing.T) {
	o := readFile(t, "count.bpf.o")
	for name, tag := range map[string]string{
		"mix_bits": "d45027060d1d16e6", "sum_window": "91f681a2a9908647",
	} {
		if f := o.named(t, name); !strings.Contains(tagsText(f.OwnTags), tag) || f.Program {
			t.Errorf("%s has own tags %s, the kernel's is %s", name, tagsText(f.OwnTags), tag)
		}
	}
	f := o.named(t, "count_system_calls_on_enter")
	if len(f.OwnTags) > 0 || f.Rewritten != rewrittenHelper {
		t.Errorf("own tags %v, rewritten %q", f.OwnTags, f.Rewritten)
	}
}

// TestOwnTags has a program that calls one subprogram with each instruction of a kind.
func TestOwnTags(t *testing.T) {
	for name, test := range map[string]struct {
		code []byte
		want string
	}{
		"nothing":                {code: exit()},
		"an addition":            {code: insn(0x0f, 1, 2, 0)},
		"a division by 7":        {code: insn(0x37, 1, 0, 7)},
		"a division":             {code: insn(0x3f, 1, 2, 0), want: rewrittenDivision},
		"a remainder of 32 bits": {code: insn(0x9c, 1, 2, 0), want: rewrittenDivision},
		"a signed one by -1": {code: []byte{0x37, 1, 1, 0, 255, 255, 255, 255},
			want: rewrittenDivision},
		"a helper":             {code: insn(opCall, 0, 0, 5), want: rewrittenHelper},
		"a kernel function":    {code: insn(opCall, 0, srcKfunc, 5), want: uncertainKfunc},
		"a packet":             {code: insn(0x20, 0, 0, 4), want: rewrittenPacket},
		"a packet by register": {code: insn(0x50, 0, 1, 4), want: rewrittenPacket},
		"an arena": {code: []byte{0xbf, 0x11, 1, 0, 1, 0, 0, 0},
			want: rewrittenArena},
		"may_goto": {code: insn(opMayGoto, 0, 0, 0), want: rewrittenLoop},
		"a constant that looks like a call": {code: slices.Concat(insn(opLoadImm64, 1, 0, 5),
			insn(0, 0, 0, 0))},
	} {
		text := slices.Concat(test.code, exit())
		o, err := readBytes(t, object(false,
			section{name: "xdp", code: calls(1), funcs: []symbol{{name: "main", start: 0, end: 16}},
				relocs: []elfbuild.Reloc{{Symbol: 2, Type: reloc6432}}},
			section{name: textSection, code: text,
				funcs: []symbol{{name: "sub", start: 0, end: uint64(len(text))}}}))
		if err != nil {
			t.Fatal(err)
		}
		f, sum := o.named(t, "sub"), sha256.Sum256(text)
		has := strings.Contains(tagsText(f.OwnTags), hex.EncodeToString(sum[:8]))
		if f.Rewritten != test.want || has != (test.want == "") {
			t.Errorf("%s: own tags %v, rewritten %q, want %q", name, f.OwnTags, f.Rewritten, test.want)
		}
		call := []byte{opCall, srcCall << 4, 1, 0, 1, 0, 0, 0} // of function 1
		sum = sha256.Sum256(slices.Concat(call, exit()))
		if f := o.named(t, "main"); !strings.Contains(tagsText(f.OwnTags), hex.EncodeToString(sum[:8])) {
			t.Errorf("%s: the program has own tags %v", name, f.OwnTags)
		}
	}
}
