package machine

import (
	"fmt"
	"strings"
)

// Names of registers by their DWARF numbers: System V psABI of amd64, figure 3.36, of i386, table 2.14;
// DWARF for the Arm 64-bit Architecture, 4.1.
var (
	amd64RegisterNames = registerNames("%rax %rdx %rcx %rbx %rsi %rdi %rbp %rsp",
		"%r 8 15", "%rip", "%xmm 0 15", "%st 0 7", "%mm 0 7",
		"%rflags %es %cs %ss %ds %fs %gs - - %fs.base %gs.base - - %tr %ldtr %mxcsr %fcw %fsw",
		"%xmm 16 31", "- - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - -", "%k 0 7")
	i386RegisterNames = registerNames("%eax %ecx %edx %ebx %esp %ebp %esi %edi %eip %eflags -", "%st 0 7", "- -",
		"%xmm 0 7", "%mm 0 7")
	arm64RegisterNames = registerNames("x 0 30", "sp pc - - - - - - - - - - - - - vg ffr", "p 0 15", "v 0 31")
)

// registerNames makes a table of names, with "-" for numbers without one, and of rows of names: a letter and
// the first and the last number.
func registerNames(parts ...string) (names []string) {
	for _, part := range parts {
		var first, last int
		prefix := ""
		if n, _ := fmt.Sscanf(part, "%s %d %d", &prefix, &first, &last); n == 3 {
			for i := first; i <= last; i++ {
				names = append(names, fmt.Sprint(prefix, i))
			}
			continue
		}
		for name := range strings.FieldsSeq(part) {
			names = append(names, strings.TrimPrefix(name, "-"))
		}
	}
	return names
}

// RegisterName returns the name of a register by its DWARF number: "%rbx", "x19"; "register 70" for one
// without a known name. a may be nil.
func (a *Arch) RegisterName(n uint16) string {
	if a != nil && int(n) < len(a.Registers) && a.Registers[n] != "" {
		return a.Registers[n]
	}
	return fmt.Sprint("register ", n)
}
