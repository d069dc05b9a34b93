package bpf

import (
	"encoding/hex"
	"strings"
)

// SymbolPrefix is the prefix of the kernel's names of BPF functions, "bpf_prog_TAG_NAME"
// (bpf_get_prog_name in kernel/bpf/core.c). Trampolines and dispatchers have other names.
const SymbolPrefix = "bpf_prog_"

// subprogName is the kernel's name of a subprogram without BTF (jit_subprogs in
// kernel/bpf/verifier.c).
const subprogName = "F"

// IsSymbol reports whether a kernel symbol is of a BPF function, by its prefix.
func IsSymbol(name []byte) bool {
	return len(name) >= len(SymbolPrefix) && string(name[:len(SymbolPrefix)]) == SymbolPrefix
}

// SymbolOf returns the kernel's name of a function by its tag and name; name may be "".
func SymbolOf(t Tag, name string) string {
	b := make([]byte, 0, len(SymbolPrefix)+2*len(t)+1+len(name))
	b = append(b, SymbolPrefix...)
	b = hex.AppendEncode(b, t[:])
	if name != "" {
		b = append(append(b, '_'), name...)
	}
	return string(b)
}

// SplitSymbol is the inverse of SymbolOf. ok is false for other names.
func SplitSymbol(s string) (t Tag, name string, ok bool) {
	const end = len(SymbolPrefix) + 2*len(t)
	if len(s) < end || s[:len(SymbolPrefix)] != SymbolPrefix {
		return Tag{}, "", false
	}
	if t, ok = parseTag(s[len(SymbolPrefix):end]); !ok {
		return Tag{}, "", false
	}
	switch {
	case len(s) == end:
		return t, "", true
	case s[end] != '_':
		return Tag{}, "", false
	}
	return t, s[end+1:], true
}

// TagPrefix is the prefix with which users name a tag and nothing else: "tag:91621db7a64bdc62".
const TagPrefix = "tag:"

// ParseTag returns the tag that a user names: by its digits, with or without TagPrefix, or by a
// function's symbol.
func ParseTag(s string) (t Tag, ok bool) {
	if t, _, ok = SplitSymbol(s); ok {
		return t, true
	}
	return parseTag(strings.ToLower(strings.TrimPrefix(s, TagPrefix)))
}

// parseTag is the inverse of Tag.String.
func parseTag(digits string) (t Tag, ok bool) {
	if len(digits) != 2*len(t) || strings.Trim(digits, "0123456789abcdef") != "" {
		return Tag{}, false
	}
	hex.Decode(t[:], []byte(digits)) // no error: 16 digits
	return t, true
}
