package machine

import (
	"debug/elf"
	"testing"
)

func TestRegisterName(t *testing.T) {
	for _, c := range []struct {
		machine elf.Machine
		n       uint16
		want    string
	}{
		{elf.EM_X86_64, 3, "%rbx"}, {elf.EM_X86_64, 7, "%rsp"}, {elf.EM_X86_64, 15, "%r15"},
		{elf.EM_X86_64, 17, "%xmm0"}, {elf.EM_X86_64, 33, "%st0"}, {elf.EM_X86_64, 48, "%mm7"},
		{elf.EM_X86_64, 58, "%fs.base"}, {elf.EM_X86_64, 67, "%xmm16"}, {elf.EM_X86_64, 118, "%k0"},
		{elf.EM_X86_64, 56, "register 56"}, {elf.EM_X86_64, 500, "register 500"},
		{elf.EM_386, 4, "%esp"}, {elf.EM_386, 11, "%st0"}, {elf.EM_386, 21, "%xmm0"},
		{elf.EM_AARCH64, 19, "x19"}, {elf.EM_AARCH64, 31, "sp"}, {elf.EM_AARCH64, 64, "v0"},
		{elf.EM_S390, 4, "register 4"},
	} {
		if got := Of(c.machine).RegisterName(c.n); got != c.want {
			t.Errorf("%v, %d: %s, want %s", c.machine, c.n, got, c.want)
		}
	}
}
