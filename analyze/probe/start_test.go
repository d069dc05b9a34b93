package probe

import (
	stdelf "debug/elf"
	"strings"
	"testing"

	"symbolize/ingest/addr"
)

// TestCheckStart checks places in code: xor %ebp,%ebp; mov %rdx,%r9; pop %rsi; ret.
func TestCheckStart(t *testing.T) {
	code := []byte{0x31, 0xed, 0x49, 0x89, 0xd1, 0x5e, 0xc3}
	const unchecked = "# unchecked: an instruction must start at f+"
	for _, c := range []struct {
		name    string
		machine stdelf.Machine
		code    []byte
		offset  string
		want    string // in the text, or the error
		refused bool
	}{
		{name: "entry", machine: stdelf.EM_X86_64, code: code, offset: "0", want: "/bin/f:"},
		{name: "start", machine: stdelf.EM_X86_64, code: code, offset: "2", want: "/bin/f:"},
		{name: "last", machine: stdelf.EM_X86_64, code: code, offset: "6", want: "/bin/f:"},
		{name: "inside", machine: stdelf.EM_X86_64, code: code, offset: "4", refused: true,
			want: "f+0x4 is inside of an instruction; instructions start at +0x2 and +0x5"},
		{name: "first byte after a start", machine: stdelf.EM_X86_64, code: code, offset: "1", refused: true,
			want: "instructions start at +0x0 and +0x2"},
		{name: "no code", machine: stdelf.EM_X86_64, offset: "4", want: unchecked},
		{name: "less code", machine: stdelf.EM_X86_64, code: code[:2], offset: "4", want: unchecked},
		{name: "no instruction", machine: stdelf.EM_X86_64, code: []byte{0x06, 0x31, 0xed}, offset: "2", want: unchecked},
		{name: "arm64", machine: stdelf.EM_AARCH64, offset: "8", want: "/bin/f:"},
		{name: "arm64, inside", machine: stdelf.EM_AARCH64, offset: "6", refused: true,
			want: "f+0x6 is inside of an instruction; instructions start at +0x4 and +0x8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := program(t, c.machine)
			p.Vars, p.Path, p.FileOffset = nil, "/bin/f", func(a addr.Addr) (uint64, bool) { return uint64(a), true }
			p.Symbols = Symbols{{Name: "f", Start: 0x1000, End: 0x1010}}
			p.Code = func(a addr.Addr, n int) []byte {
				if a != 0x1000 {
					t.Errorf("code at %#x", a)
				}
				return c.code[:min(n, len(c.code))]
			}
			q, err := Parse("f+" + c.offset)
			if err != nil {
				t.Fatal(err)
			}
			text, err := p.Text([]*Query{q})
			got := string(text)
			if (err != nil) != c.refused {
				t.Fatal(err)
			}
			if err != nil {
				got = err.Error()
			}
			if !strings.Contains(got, c.want) || !strings.Contains(c.want, "unchecked") && strings.Contains(got, "unchecked") {
				t.Errorf("%s", got)
			}
		})
	}
}
