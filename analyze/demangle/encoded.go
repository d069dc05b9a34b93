package demangle

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Encoded returns the name of a function of OCaml or Haskell as it is in the source, with its
// module: the compilers write names into symbols with the characters that assemblers accept. ok is
// false for all other symbols.
func Encoded(symbol string) (name string, ok bool) {
	switch {
	case len(symbol) > maxMangled:
		return "", false
	case strings.HasPrefix(symbol, "caml"):
		return ocamlName(symbol)
	}
	return haskellName(symbol)
}

// mayBeEncoded reports whether a symbol is worth a look by Encoded.
func mayBeEncoded(s string) bool {
	if len(s) > 4 && s[0] == 'c' && s[4] >= 'A' && s[4] <= 'Z' {
		return strings.HasPrefix(s, "caml")
	}
	n := len(s)
	return n > 5 && (s[n-1] == 'o' || s[n-1] == 'y' || s[n-1] == 'w' || s[n-1] == 't') && (s[n-5] == '_' || s[n-6] == '_')
}

// ocamlName decodes a symbol of ocamlopt: "caml", the modules with "__" between them, "__" (from
// OCaml 5.1 on "."), the name with $hh for characters outside of identifiers, "_" and a number
// that makes the symbol unique.
func ocamlName(symbol string) (string, bool) {
	s := strings.TrimSuffix(strings.TrimPrefix(symbol, "caml"), "_code") // flambda 2 appends it
	if s == "" || s[0] < 'A' || s[0] > 'Z' {
		return "", false
	}
	unit, name, dot := strings.Cut(s, ".")
	modules := strings.Split(unit, "__")
	if len(modules) > 2 && modules[0] == "Dune" && modules[1] == "exe" {
		modules = modules[2:] // where dune puts the modules of programs
	}
	if !dot {
		first := 1
		for first < len(modules) && isUpper(modules[first]) {
			first++
		}
		name = strings.Join(modules[first:], "__")
		modules = modules[:first]
	}
	if name != "entry" { // the initialization of a module, which has no number
		at := strings.LastIndexByte(name, '_')
		if at <= 0 || !isNumber(name[at+1:]) {
			return "", false
		}
		if stem := name[:at]; stem != "fun" { // a function without a name
			name = stem
		}
	}
	name, ok := decodeDollars(name)
	if !ok || name == "" {
		return "", false
	}
	if r, _ := utf8.DecodeRuneInString(name); r != '_' && !unicode.IsLetter(r) {
		name = "(" + name + ")"
	}
	return strings.Join(modules, ".") + "." + name, true
}

func isUpper(s string) bool { return s != "" && s[0] >= 'A' && s[0] <= 'Z' }

func isNumber(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// decodeDollars replaces $hh by the byte.
func decodeDollars(s string) (string, bool) {
	var b []byte
	for i := 0; i < len(s); i++ {
		if s[i] != '$' {
			b = append(b, s[i])
			continue
		}
		if i+3 > len(s) {
			return "", false
		}
		v, err := strconv.ParseUint(s[i+1:i+3], 16, 8)
		if err != nil {
			return "", false
		}
		b = append(b, byte(v))
		i += 2
	}
	return string(b), utf8.Valid(b)
}

// haskellEnds are the ends of symbols of code that GHC makes: of an info table, before which or at
// which the code begins, also of a constructor; and of entries for other ways to call.
var haskellEnds = []string{"_con_info", "_static_info", "_info", "_entry", "_slow", "_fast"}

// haskellName decodes a symbol of GHC: [package "_"] module "_" name ["_" unique] and one of
// haskellEnds, each part z-encoded, without the package. C programs may have such symbols, too: a
// part of it must have an escape that names of C lack, or the module is Main.
func haskellName(symbol string) (string, bool) {
	var s string
	found := false
	for _, end := range haskellEnds {
		if s, found = strings.CutSuffix(symbol, end); found {
			break
		}
	}
	if !found {
		return "", false
	}
	parts := strings.Split(s, "_")
	if len(parts) < 2 || len(parts) > 4 {
		return "", false
	}
	escaped := parts[0] == "Main"
	for i, part := range parts {
		text, special, ok := decodeZ(part)
		if !ok {
			return "", false
		}
		parts[i], escaped = text, escaped || special
	}
	if !isModule(parts[0]) && len(parts) > 2 {
		parts = parts[1:] // the package
	}
	if !escaped || len(parts) > 3 || !isModule(parts[0]) || !isHaskell(parts[1]) {
		return "", false
	}
	return parts[0] + "." + parts[1], true
}

// isModule reports whether a text is the name of a Haskell module: words with capitals, and dots;
// ":Main" is the module that GHC makes for a program.
func isModule(s string) bool {
	for word := range strings.SplitSeq(strings.TrimPrefix(s, ":"), ".") {
		if !isUpper(word) || strings.ContainsFunc(word, func(r rune) bool { return !isIdentifier(r) }) {
			return false
		}
	}
	return true
}

func isIdentifier(r rune) bool {
	return r == '_' || r == '\'' || unicode.IsLetter(r) || unicode.IsDigit(r)
}

// isHaskell reports whether a text can be a name of Haskell: an identifier, an operator, a tuple, or
// a name that GHC makes, which begins with $.
func isHaskell(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	switch {
	case s == "":
		return false
	case r == '$' && len(s) > 1:
		return true
	case r == '_' || unicode.IsLetter(r):
		return !strings.ContainsFunc(s, func(r rune) bool { return !isIdentifier(r) && r != '#' && r != '$' })
	}
	return !strings.ContainsFunc(s, isIdentifier)
}

// zEscapes are the characters that follow z and Z in GHC's encoding of names.
var (
	zEscapes = map[byte]byte{'a': '&', 'b': '|', 'c': '^', 'd': '$', 'e': '=', 'g': '>', 'h': '#', 'i': '.',
		'l': '<', 'm': '-', 'n': '!', 'p': '+', 'q': '\'', 'r': '\\', 's': '/', 't': '*', 'u': '_', 'v': '%', 'z': 'z'}
	zCapitals = map[byte]byte{'L': '(', 'R': ')', 'M': '[', 'N': ']', 'C': ':', 'Z': 'Z'}
)

// decodeZ decodes a part of a symbol of GHC. special: it has escapes, not only for z and Z
// themselves.
func decodeZ(s string) (text string, special, ok bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != 'z' && s[i] != 'Z' {
			b.WriteByte(s[i])
			continue
		}
		if i+1 == len(s) {
			return "", false, false
		}
		table := zEscapes
		if s[i] == 'Z' {
			table = zCapitals
		}
		next := s[i+1]
		if c, ok := table[next]; ok {
			b.WriteByte(c)
			special = special || next|0x20 != 'z'
			i++
			continue
		}
		n := 0
		for n < 6 && i+1+n < len(s) && strings.IndexByte("0123456789abcdef", s[i+1+n]) >= 0 {
			n++
		}
		if n == 0 || next > '9' || i+1+n == len(s) {
			return "", false, false
		}
		digits, kind := s[i+1:i+1+n], s[i+1+n]
		switch {
		case s[i] == 'z' && kind == 'U':
			r, err := strconv.ParseUint(digits, 16, 32)
			if err != nil || r > unicode.MaxRune {
				return "", false, false
			}
			b.WriteRune(rune(r))
		case s[i] == 'Z' && (kind == 'T' || kind == 'H'):
			size, err := strconv.Atoi(digits)
			if err != nil || size > maxTuple {
				return "", false, false
			}
			hash := ""
			if kind == 'H' { // unboxed
				hash = "#"
			}
			b.WriteString("(" + hash + strings.Repeat(",", max(size-1, 0)) + hash + ")")
		default:
			return "", false, false
		}
		special = true
		i += 1 + n
	}
	return b.String(), special, true
}

// maxTuple is GHC's largest tuple.
const maxTuple = 64
