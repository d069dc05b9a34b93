package bpf

import "symbolize/buildid"

// What stands where the tag stands in the digests of aliases, so that they meet no
// function's own.
const (
	countMark = "instructions"
	nameMark  = "name"
	fixedMark = "name with tags"
)

// maxKernelName is how much of a program's name the kernel keeps without BTF, bytes
// (BPF_OBJ_NAME_LEN less the final 0).
const maxKernelName = 15

// TagIdentity is what is known of a function of which only the tag is known. Functions
// with the same instructions share it, whatever they are called and on whatever machine.
func TagIdentity(t Tag) buildid.ID { return identity("", "", t.String(), 0, nil) }

// CountIdentity is what is known of a program of which only the name, which the kernel
// may have cut, and the number of its instructions are known.
func CountIdentity(name string, instructions uint32) buildid.ID {
	return identity("", name[:min(len(name), maxKernelName)], countMark, uint64(instructions), nil)
}

// NameIdentity is what is known of a function of which only the name, which the kernel may
// have cut, is known. Functions whose tags do not depend on the host (fixed) are kept apart:
// one with another tag is not they.
func NameIdentity(name string, fixed bool) buildid.ID {
	mark := nameMark
	if fixed {
		mark = fixedMark
	}
	return identity("", name[:min(len(name), maxKernelName)], mark, 0, nil)
}

// NameOf returns the name of a function by what its symbol has behind the tag: "" where
// the kernel knew none and called a subprogram F.
func NameOf(name string) string {
	if name == subprogName {
		return ""
	}
	return name
}

// SameName reports whether two names may be those of one function, one of them cut by
// the kernel.
func SameName(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	return a == b || len(a) == maxKernelName && b[:len(a)] == a
}
