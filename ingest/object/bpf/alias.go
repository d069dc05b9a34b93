package bpf

import "symbolize/buildid"

// Markers in the tag's position of the digests of aliases, so that these differ from
// functions' own.
const (
	countMark = "instructions"
	nameMark  = "name"
	fixedMark = "name with tags"
)

// maxKernelName is the kernel's limit for a program's name without BTF, bytes
// (BPF_OBJ_NAME_LEN less the final 0).
const maxKernelName = 15

// TagIdentity is the identity of a function with only its tag known. Functions with the same
// instructions share it, under any name and on any machine.
func TagIdentity(t Tag) buildid.ID { return identity("", "", t.String(), 0, nil) }

// CountIdentity is the identity of a program with only its name, which the kernel may have
// truncated, and the number of its instructions known.
func CountIdentity(name string, instructions uint32) buildid.ID {
	return identity("", name[:min(len(name), maxKernelName)], countMark, uint64(instructions), nil)
}

// NameIdentity is the identity of a function with only its name, which the kernel may
// have truncated, known. Functions with tags that do not depend on the host (fixed) are
// separate: another tag is another function.
func NameIdentity(name string, fixed bool) buildid.ID {
	mark := nameMark
	if fixed {
		mark = fixedMark
	}
	return identity("", name[:min(len(name), maxKernelName)], mark, 0, nil)
}

// NameOf returns the name of a function by the part of its symbol after the tag: "" for
// F, the kernel's name of a subprogram without one.
func NameOf(name string) string {
	if name == subprogName {
		return ""
	}
	return name
}

// MayBeCut reports whether the kernel may have a function's name only in part, or not at all.
// name is the part of its symbol after the tag.
func MayBeCut(name string) bool { return NameOf(name) == "" || len(name) == maxKernelName }

// SameName reports whether two names may belong to one function, one of them truncated
// by the kernel.
func SameName(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	return a == b || len(a) == maxKernelName && b[:len(a)] == a
}
