package demangle

import (
	"bytes"
	"regexp"
	"strings"
)

// goShape begins the type arguments of a Go function that several types share, since they
// have the same memory layout.
const goShape = "[go.shape."

// simplify makes a name shorter by the rule of Simple, in any language: namespaces
// and packages stay, template and type arguments go, lambdas are "f()::{lambda#1}". The demangler
// has left out parameters and C++ template arguments of mangled names already.
func simplify(name string, rust bool) string {
	if strings.Contains(name, goShape) {
		name = cutShapes(name)
	}
	if strings.Contains(name, lambda) {
		name = cutLambdas(name)
	}
	if rust {
		name = cutArguments(name, followsPath)
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

// lambda begins the name of a lambda: "{lambda(int)#2}" in mangled names, "{lambda:12}" in those
// that package dwarf qualifies.
const lambda = "{lambda"

// cutLambdas removes the parameters of a lambda and the call operator after it, which every lambda
// has: "f()::{lambda(int)#2}::operator()" is "f()::{lambda#2}".
func cutLambdas(name string) string {
	const call = "::operator()"
	var b strings.Builder
	for {
		at := strings.Index(name, lambda)
		if at < 0 {
			break
		}
		number := at + len(lambda)
		b.WriteString(name[:number])
		if strings.HasPrefix(name[number:], "(") {
			end := closing(name, number, '(', ')')
			if end < 0 {
				name = name[number:]
				break
			}
			number = end + 1
		}
		name = name[number:]
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

// cutTemplates removes the template arguments from a name of C++ as debug information has it:
// "std::sort<int*, f()::<lambda(int)> >" is "std::sort". Other languages and JIT compilers write
// names in angle brackets, as "List::<init>": those that follow no name stay.
func cutTemplates(name string) string { return cutArguments(name, followsName) }

// cutArguments removes type arguments: "a::f::<u8>" is "a::f", and "<a::S<u8> as a::T>::f" is
// "<a::S as a::T>::f": angle brackets that do not follow a name have the path of a type or trait.
func cutArguments(name string, follows func([]byte) bool) string {
	if !strings.Contains(name, "<") {
		return name
	}
	b := make([]byte, 0, len(name))
	for i := 0; i < len(name); i++ {
		n := operatorAt(name, i)
		b = append(b, name[i:i+n]...)
		i += n
		if n > 0 && strings.HasPrefix(name[i:], " <") { // "operator< <int>"
			i++
		}
		if i == len(name) {
			break
		}
		if name[i] != '<' || n == 0 && !follows(b) {
			b = append(b, name[i])
			continue
		}
		end := closingAngle(name, i)
		if end < 0 {
			return string(b) + name[i:]
		}
		b = bytes.TrimSuffix(b, []byte("::"))
		i = end
	}
	return string(b)
}

// operators are the ones that can be followed by template arguments or contain angle brackets,
// longer ones first.
var operators = []string{"()", "[]", "->*", "<=>", "<<=", ">>=", "->", "<<", ">>", "<=", ">=",
	"<", ">"}

// operatorAt returns the length of the operator at a place that follows the word "operator".
func operatorAt(s string, at int) int {
	const word = "operator"
	if at < len(word) || s[at-1] != 'r' || s[at-len(word):at] != word {
		return 0
	}
	for _, op := range operators {
		if strings.HasPrefix(s[at:], op) {
			return len(op)
		}
	}
	return 0
}

// followsPath reports whether a text ends in a name, possibly followed by "::".
func followsPath(b []byte) bool {
	if n := len(b); n > 2 && b[n-1] == ':' && b[n-2] == ':' {
		b = b[:n-2]
	}
	return followsName(b)
}

// followsName reports whether a text ends in a name.
func followsName(b []byte) bool {
	if len(b) == 0 {
		return false
	}
	c := b[len(b)-1]
	return c == '_' || c == '}' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' ||
		c >= 'A' && c <= 'Z' || c >= 0x80
}

// closingAngle is closing for angle brackets. Those of "->", of operators, within parentheses and
// in quotes are none.
func closingAngle(s string, at int) int {
	depth := 0
	for i := at; i < len(s); i++ {
		if n := operatorAt(s, i); n > 0 {
			i += n - 1
			continue
		}
		switch {
		case s[i] == '(':
			if end := closing(s, i, '(', ')'); end > 0 {
				i = end
			}
		case s[i] == '\'' && i+2 < len(s) && s[i+2] == '\'':
			i += 2
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
