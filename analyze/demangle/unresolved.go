package demangle

import (
	"strings"

	"github.com/ianlancetaylor/demangle"
)

// misnumbers reports whether the library can give the substitutions of a C++ name other numbers
// than the compiler: after a scoped name in an expression ("sr") that has template
// arguments before its last part. The library counts the name of the template as one, which clang
// does not. After "srN" gcc counts each part and clang none, and nothing in a name tells them
// apart. Without a later substitution the name is right.
func misnumbers(core string) bool {
	at, tried := 0, 0
	for {
		next := strings.Index(core[at:], "sr")
		if next < 0 {
			return false
		}
		at += next + len("sr")
		if rest := core[at:]; scopeCounts(rest) && hasSubstitution(rest) {
			if tried == maxScopes || isUnresolved(core[:at-len("sr")]) {
				return true
			}
			tried++
		}
	}
}

// maxScopes is how many places of a name are tried: each costs as much as the name, and none has
// as many.
const maxScopes = 16

// scopeCounts reports whether the library or a compiler counts parts of the scope that s begins
// with as substitutions: "NT_1BE", "3std9is_signedI…".
func scopeCounts(s string) bool {
	if strings.HasPrefix(s, "N") {
		return true
	}
	for s != "" && isDigit(s[0]) {
		n := 0
		for s != "" && isDigit(s[0]) && n <= maxMangled {
			n, s = 10*n+int(s[0]-'0'), s[1:]
		}
		if n > len(s) {
			return false
		}
		s = s[n:]
		if strings.HasPrefix(s, "I") {
			return true
		}
	}
	return false
}

// hasSubstitution reports whether s contains "S_", "S0_", "SA_".
func hasSubstitution(s string) bool {
	for {
		_, after, ok := strings.Cut(s, "S")
		if !ok {
			return false
		}
		end := strings.IndexFunc(after, func(r rune) bool {
			return (r < '0' || r > '9') && (r < 'A' || r > 'Z')
		})
		if end >= 0 && after[end] == '_' {
			return true
		}
		s = after
	}
}

// isUnresolved reports whether an "sr" after the text begins a scoped name, and is not part of an
// identifier: only then does the library look for a substitution after it, here one of a number
// beyond the length of any name.
func isUnresolved(before string) bool {
	_, err := demangle.ToString(before + "srSZZZ_")
	return err != nil && strings.Contains(err.Error(), "substitution index out of range")
}
