package report

import (
	"regexp"
	"strings"
)

// goShape begins the type arguments of a Go function that several types share, since they
// have the same memory layout.
const goShape = "[go.shape."

// simplify makes a name shorter by the rule of Simple, whatever language it is of: namespaces
// and packages stay, template and type arguments go, lambdas are "f()::{lambda#1}". Parameters
// and C++ template arguments were left out by the demangler already.
func simplify(name string, rust bool) string {
	if strings.Contains(name, goShape) {
		name = cutShapes(name)
	}
	if strings.Contains(name, "{lambda(") {
		name = cutLambdas(name)
	}
	if rust {
		name = cutGenerics(name)
	}
	if strings.Contains(name, "[abi:") {
		name = abiTag.ReplaceAllString(name, "")
	}
	if strings.Contains(name, thunkTo) {
		name = cutParameters(name)
	}
	return name
}

// thunkTo precedes the name of the function that a thunk calls.
const thunkTo = "thunk to "

// cutParameters removes the parameters at the end of a name: the demangler leaves them on functions
// of thunks.
func cutParameters(name string) string {
	text := strings.TrimSuffix(name, " const")
	if !strings.HasSuffix(text, ")") {
		return name
	}
	depth := 0
	for i := len(text) - 1; i >= 0; i-- {
		switch text[i] {
		case ')':
			depth++
		case '(':
			if depth--; depth == 0 {
				if strings.HasSuffix(text[:i], "operator") {
					return text
				}
				return text[:i]
			}
		}
	}
	return name
}

var abiTag = regexp.MustCompile(`\[abi:[0-9A-Za-z_]+\]`)

// cutShapes writes "[...]" for Go's shape types, as Go itself does in tracebacks.
func cutShapes(name string) string {
	var b strings.Builder
	for {
		at := strings.Index(name, goShape)
		if at < 0 {
			break
		}
		end := closing(name, at, '[', ']')
		if end < 0 {
			break
		}
		b.WriteString(name[:at] + "[...]")
		name = name[end+1:]
	}
	return b.String() + name
}

// closing returns the place of the bracket that closes the one at a place, or -1.
func closing(s string, at int, opening, end byte) int {
	depth := 0
	for i := at; i < len(s); i++ {
		switch s[i] {
		case opening:
			depth++
		case end:
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// cutLambdas removes the parameters of "{lambda(int)#2}" and the call operator after it, which
// every lambda has: "f()::{lambda(int)#2}::operator()" is "f()::{lambda#2}".
func cutLambdas(name string) string {
	const opening, call = "{lambda", "::operator()"
	var b strings.Builder
	for {
		at := strings.Index(name, opening+"(")
		if at < 0 {
			break
		}
		params := at + len(opening)
		end := closing(name, params, '(', ')')
		if end < 0 {
			break
		}
		b.WriteString(name[:params])
		name = name[end+1:]
		brace := strings.IndexByte(name, '}')
		if brace < 0 {
			break
		}
		b.WriteString(name[:brace+1])
		rest, ok := strings.CutPrefix(name[brace+1:], call)
		if ok {
			rest = strings.TrimPrefix(strings.TrimPrefix(rest, "()"), " const")
		}
		name = rest
	}
	return b.String() + name
}

// cutGenerics removes type arguments from a name of Rust: "a::f::<u8>" is "a::f", and
// "<a::S<u8> as a::T>::f" is "<a::S as a::T>::f": angle brackets without a name before them have
// the path of a type or trait.
func cutGenerics(name string) string {
	if !strings.Contains(name, "<") {
		return name
	}
	b := make([]byte, 0, len(name))
	for i := 0; i < len(name); i++ {
		if c := name[i]; c != '<' || !followsName(b) {
			b = append(b, c)
			continue
		}
		end := closingAngle(name, i)
		if end < 0 {
			return string(b) + name[i:]
		}
		b = []byte(strings.TrimSuffix(string(b), "::"))
		i = end
	}
	return string(b)
}

// followsName reports whether a text ends in a name, possibly followed by "::".
func followsName(b []byte) bool {
	if n := len(b); n > 2 && b[n-1] == ':' && b[n-2] == ':' {
		b = b[:n-2]
	}
	if len(b) == 0 {
		return false
	}
	c := b[len(b)-1]
	return c == '_' || c == '}' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' ||
		c >= 'A' && c <= 'Z' || c >= 0x80
}

// closingAngle is closing for angle brackets; "->" has none.
func closingAngle(s string, at int) int {
	depth := 0
	for i := at; i < len(s); i++ {
		switch {
		case s[i] == '<':
			depth++
		case s[i] == '>' && s[i-1] != '-':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}
