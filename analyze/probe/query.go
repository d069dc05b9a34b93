package probe

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// A Query is the definition of a probe.
type Query struct {
	Group, Event string // "" if they are not given
	Function     string // "" for a line of File, or an address
	File         string // of the line, or of the function's declaration
	Line         uint32
	Relative     bool   // Line is from the declaration of Function
	Offset       uint64 // from the entry of Function, or the address
	Return       bool
	Args         []Arg
}

// An Arg is an argument of a Query.
type Arg struct {
	Name   string // "" if it is not given
	Var    string // a variable, `$params`, `$vars`, `$retval`, or text that is copied
	Raw    bool   // Var is copied
	Fields []Field
	User   bool   // members are in the memory of the process
	Type   string // "" for the variable's
}

// A Field is a step from a variable into a member, or an element.
type Field struct {
	Name  string // of a member; "" for an element
	Arrow bool   // behind ->
	Index int64
}

var (
	eventWord = regexp.MustCompile(`^(?:([A-Za-z_]\w*):)?([A-Za-z_]\w*)=([^=].*)$`)
	lineWord  = regexp.MustCompile(`^(.*[^:]):(\d+)$`)
	plusWord  = regexp.MustCompile(`^(.+)\+(0[xX][0-9a-fA-F]+|\d+)$`)
	typeWord  = regexp.MustCompile(`^(?:[usx](?:8|16|32|64)|b\d+@\d+/(?:8|16|32|64)|char|string|ustring|symbol|symstr)(?:\[\d+\])?$`)
	cName     = regexp.MustCompile(`^[A-Za-z_]\w*$`)
)

// Parse reads a definition.
func Parse(text string) (*Query, error) {
	words := strings.Fields(text)
	if len(words) == 0 {
		return nil, errors.New("no function is named")
	}
	q := new(Query)
	if err := q.place(words[0]); err != nil {
		return nil, err
	}
	for _, w := range words[1:] {
		a, err := parseArg(w)
		if err != nil {
			return nil, err
		}
		switch {
		case a.Var == "$retval" && !q.Return:
			return nil, errors.New("$retval is known at a return only: FUNCTION%return")
		case q.Return && (!a.Raw || strings.HasPrefix(a.Var, "$params") || a.Var == "$vars"):
			return nil, fmt.Errorf("%s: variables are not known at a return", a.Var)
		}
		q.Args = append(q.Args, a)
	}
	if len(q.Args) == 0 && q.Return {
		q.Args = []Arg{{Var: "$retval", Raw: true}}
	} else if len(q.Args) == 0 {
		q.Args = []Arg{{Var: "$params"}}
	}
	return q, nil
}

// place reads the first word.
func (q *Query) place(w string) error {
	if m := eventWord.FindStringSubmatch(w); m != nil {
		q.Group, q.Event, w = m[1], m[2], m[3]
	}
	if strings.Contains(w, ";") {
		return fmt.Errorf("%s: lines are given by their number, not by a pattern", w)
	}
	if rest, ok := strings.CutSuffix(w, "%return"); ok {
		q.Return, w = true, rest
	} else if strings.Contains(w, "%") {
		return fmt.Errorf("%s: only %%return can follow a function", w)
	}
	if m := lineWord.FindStringSubmatch(w); m != nil {
		n, err := strconv.ParseUint(m[2], 10, 32)
		if err != nil {
			return fmt.Errorf("%s: line %s is not a number of a line", w, m[2])
		}
		q.Line, w = uint32(n), m[1]
		if strings.Contains(w, ".") && !strings.Contains(w, "::") && !strings.Contains(w, "@") {
			q.File, w = w, ""
		} else {
			q.Relative = n > 0
		}
	}
	if m := plusWord.FindStringSubmatch(w); m != nil && q.Line == 0 {
		n, err := strconv.ParseUint(m[2], 0, 64)
		if err != nil {
			return fmt.Errorf("%s: %s is no offset", w, m[2])
		}
		q.Offset, w = n, m[1]
	}
	if name, file, ok := strings.Cut(w, "@"); ok && file != "" {
		w, q.File = name, file
	}
	if strings.HasPrefix(w, "0x") {
		n, err := strconv.ParseUint(w, 0, 64)
		if err != nil || q.Offset != 0 || q.Line != 0 {
			return fmt.Errorf("%s is no address", w)
		}
		q.Offset, w = n, ""
	}
	q.Function = w
	switch {
	case w == "" && q.File == "" && q.Offset == 0:
		return errors.New("no function is named")
	case q.Return && (w == "" || q.Offset != 0 || q.Line != 0):
		return errors.New("%return is of a function: no offset and no line can be given")
	}
	return nil
}

// parseArg reads an argument.
func parseArg(w string) (a Arg, err error) {
	rest := w
	if name, value, ok := strings.Cut(rest, "="); ok {
		if !cName.MatchString(name) {
			return a, fmt.Errorf("%s: %q is no name of an argument", w, name)
		}
		a.Name, rest = name, value
	}
	if end := strings.IndexAny(rest, "$%@\\+"); end == 0 { // what tracefs knows
		a.Var, a.Raw = rest, rest != "$params" && rest != "$vars"
		if i := strings.LastIndexByte(rest, ':'); i > 0 && a.Raw {
			a.Var, a.Type = rest[:i], rest[i+1:]
		}
		return a, a.checkType(w)
	}
	if i := strings.LastIndexByte(rest, ':'); i >= 0 {
		rest, a.Type = rest[:i], rest[i+1:]
		if a.Type == "" {
			return a, fmt.Errorf("%s: no type behind the colon", w)
		}
	}
	rest, a.User = strings.CutSuffix(rest, "@user")
	end := strings.IndexAny(rest, ".-[")
	if end < 0 {
		end = len(rest)
	}
	a.Var = rest[:end]
	if !cName.MatchString(a.Var) {
		return a, fmt.Errorf("%s: %q is no name of a variable", w, a.Var)
	}
	for rest = rest[end:]; rest != ""; {
		var f Field
		if f, rest, err = parseField(rest); err != nil {
			return a, fmt.Errorf("%s: %w", w, err)
		}
		a.Fields = append(a.Fields, f)
	}
	return a, a.checkType(w)
}

func (a *Arg) checkType(w string) error {
	if a.Type != "" && !typeWord.MatchString(a.Type) {
		return fmt.Errorf("%s: type %q is none of u8 to u64, s8 to s64, x8 to x64, string, ustring, char, symbol, bWIDTH@OFFSET/SIZE",
			w, a.Type)
	}
	return nil
}

func parseField(s string) (f Field, rest string, err error) {
	switch {
	case s[0] == '[':
		text, rest, ok := strings.Cut(s[1:], "]")
		f.Index, err = strconv.ParseInt(text, 0, 32)
		if !ok || err != nil {
			return f, "", errors.New("an index must be a number in brackets")
		}
		return f, rest, nil
	case s[0] == '.':
		s = s[1:]
	case strings.HasPrefix(s, "->"):
		s, f.Arrow = s[2:], true
	default:
		return f, "", fmt.Errorf("%q does not lead to a member", s)
	}
	end := strings.IndexAny(s, ".-[")
	if end < 0 {
		end = len(s)
	}
	if f.Name = s[:end]; !cName.MatchString(f.Name) {
		return f, "", fmt.Errorf("%q is no name of a member", f.Name)
	}
	return f, s[end:], nil
}

// name returns the name that an argument has in the event.
func (a *Arg) name() string {
	if a.Name != "" {
		return a.Name
	}
	name := a.Var
	for _, f := range a.Fields {
		if f.Name != "" {
			name = f.Name
		}
	}
	if len(a.Fields) == 0 && a.Type != "" {
		name += "_" + a.Type
	}
	return notWord.ReplaceAllString(name, "_")
}

// notWord is what names of events must not have.
var notWord = regexp.MustCompile(`\W+`)
