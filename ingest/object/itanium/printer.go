package itanium

import "strconv"

// printer writes nodes. A type is written in two halves, around the name or the star that stands
// inside of the types of functions and arrays.
type printer struct {
	p     *parser
	o     Options
	b     []byte
	from  int // where the name begins in b
	steps int
	arg   int // of packs: number of the argument at hand
	bad   bool
}

func (w *printer) print(r ref) {
	w.left(r)
	w.right(r)
}

func (w *printer) text(s string) { w.b = append(w.b, s...) }

func (w *printer) last() byte {
	if len(w.b) == w.from {
		return 0
	}
	return w.b[len(w.b)-1]
}

// step counts a step and reports whether to go on.
func (w *printer) step() bool {
	w.steps++
	if w.steps > maxSteps || len(w.b)-w.from > maxOutput {
		w.bad = true
	}
	return !w.bad
}

// resolve follows template parameters to their arguments.
func (w *printer) resolve(r ref) ref {
	for {
		n := &w.p.nodes[r]
		switch n.kind {
		case kindParam:
			r = n.a
		case kindPackParam:
			r = w.p.list(n.a)[w.arg]
		default:
			return r
		}
	}
}

// holds returns the node of a function or an array that a type with a name inside is made of,
// without qualifiers.
func (w *printer) holds(r ref) *node {
	for {
		n := &w.p.nodes[w.resolve(r)]
		if n.kind != kindQual {
			return n
		}
		r = n.a
	}
}

// left writes the part of a node before what stands inside of it.
func (w *printer) left(r ref) {
	if !w.step() {
		return
	}
	n := &w.p.nodes[w.resolve(r)]
	switch n.kind {
	case kindName:
		w.text(n.text)
	case kindBuiltin:
		if w.o.LLVM && n.text == nullptr {
			w.text("std::nullptr_t")
		} else {
			w.text(n.text)
		}
	case kindQualified, kindLocal:
		w.print(n.a)
		w.text("::")
		w.print(n.b)
	case kindTemplate:
		w.template(n)
	case kindQual:
		w.qualified(n)
	case kindPointer, kindLvalue, kindRvalue:
		w.pointer(n)
	case kindFunction:
		w.result(n)
	case kindMethod:
		w.left(n.a)
		if w.p.kindOf(n.a) != kindFunction {
			w.text(n.text)
		}
	case kindMember:
		w.member(n)
	case kindArray:
		if w.holds(n.a).kind == kindArray || w.hasRight(n.a) {
			w.bad = true
		}
		w.left(n.a)
	default:
		w.leaf(n)
	}
}

// leaf writes a node that has nothing inside.
func (w *printer) leaf(n *node) {
	switch n.kind {
	case kindTyped:
		w.typed(n)
	case kindDestructor:
		w.b = append(w.b, '~')
		w.print(n.a)
	case kindCast:
		w.text("operator ")
		w.print(n.a)
	case kindTagged:
		w.print(n.a)
		w.text("[abi:")
		w.text(n.text)
		w.b = append(w.b, ']')
	case kindClosure:
		w.closure(n)
	case kindUnnamed:
		w.unnamed(int(n.n))
	case kindAuto:
		w.text("auto")
		if !w.o.LLVM {
			w.b = strconv.AppendInt(append(w.b, ':'), int64(n.n)+1, 10)
		}
	case kindLiteral:
		w.literal(n)
	case kindAddress:
		w.address(n)
	case kindSpecial:
		w.text(n.text)
		w.print(n.a)
		if n.b != 0 {
			w.text("-in-")
			w.print(n.b)
		}
	default: // a pack outside of a list
		w.bad = true
	}
}

// right writes the part of a node after what stands inside of it.
func (w *printer) right(r ref) {
	if w.bad {
		return
	}
	n := &w.p.nodes[w.resolve(r)]
	switch n.kind {
	case kindQual:
		w.right(n.a)
	case kindPointer, kindLvalue, kindRvalue:
		to := w.collapse(n)
		switch w.holds(to.a).kind {
		case kindFunction, kindArray, kindMethod:
			w.b = append(w.b, ')')
		}
		w.right(to.a)
	case kindMember:
		if k := w.holds(n.b).kind; k == kindFunction || k == kindMethod {
			w.b = append(w.b, ')')
		}
		w.right(n.b)
	case kindMethod:
		if w.p.kindOf(n.a) == kindFunction {
			w.right(n.a)
			w.text(n.text)
		}
	case kindFunction:
		w.params(n)
	case kindArray:
		w.text(" [")
		w.text(n.text)
		w.b = append(w.b, ']')
	}
}

// hasRight reports whether right writes something.
func (w *printer) hasRight(r ref) bool {
	if !w.step() {
		return false
	}
	n := w.holds(r)
	switch n.kind {
	case kindPointer, kindLvalue, kindRvalue:
		return w.hasRight(n.a)
	case kindMember:
		return w.hasRight(n.b)
	case kindFunction, kindArray, kindMethod:
		return true
	}
	return false
}

// template writes an instance of a template.
func (w *printer) template(n *node) {
	w.print(n.a)
	if w.o.NoTemplateParams {
		return
	}
	if w.last() == '<' { // an operator
		w.b = append(w.b, ' ')
	}
	w.b = append(w.b, '<')
	w.list(n, w.o.LLVM)
	if w.last() == '>' && !w.o.LLVM {
		w.b = append(w.b, ' ')
	}
	w.b = append(w.b, '>')
}

// list writes the list of a node, but for what is empty; expansions in parentheses if so asked, as
// the general demangler does where it takes them for comma expressions.
func (w *printer) list(n *node, parentheses bool) {
	first := true
	for _, r := range w.p.lists[n.first : n.first+n.n] {
		r = w.resolve(r)
		if w.empty(r) {
			w.bad = w.bad || n.kind == kindPack // the general demangler keeps the comma
			continue
		}
		if !first {
			w.text(", ")
		}
		first = false
		switch arg := &w.p.nodes[r]; arg.kind {
		case kindPack:
			w.list(arg, false)
		case kindExpansion:
			w.expansion(arg, parentheses)
		default:
			w.print(r)
		}
	}
}

// empty reports whether nothing is written for a part of a list.
func (w *printer) empty(r ref) bool {
	n := &w.p.nodes[r]
	switch n.kind {
	case kindPack:
		for _, arg := range w.p.list(r) {
			if !w.empty(w.resolve(arg)) {
				return false
			}
		}
		return true
	case kindExpansion:
		return w.p.nodes[n.b].n == 0
	}
	return false
}

// expansion writes a pattern for each argument of its pack.
func (w *printer) expansion(n *node, parentheses bool) {
	outer := w.arg
	if parentheses {
		w.b = append(w.b, '(')
	}
	for i := range int(w.p.nodes[n.b].n) {
		if i > 0 {
			w.text(", ")
		}
		w.arg = i
		w.print(n.a)
	}
	if parentheses {
		w.b = append(w.b, ')')
	}
	w.arg = outer
}

// qualified writes the left of a type with cv-qualifiers.
func (w *printer) qualified(n *node) {
	of := &w.p.nodes[w.resolve(n.a)]
	switch of.kind {
	case kindQual: // through a template parameter: once
		if of.text != n.text {
			w.bad = true
		}
		w.left(n.a)
		return
	case kindFunction, kindMethod:
		w.bad = true
	}
	w.left(n.a)
	w.text(n.text)
}

// collapse returns the reference that a reference to a reference is.
func (w *printer) collapse(n *node) *node {
	if n.kind == kindPointer || !w.step() {
		return n
	}
	to := &w.p.nodes[w.resolve(n.a)]
	if to.kind == kindLvalue || to.kind == kindRvalue {
		to = w.collapse(to)
		if to.kind == kindRvalue && n.kind == kindLvalue {
			return &node{kind: kindLvalue, a: to.a}
		}
		return to
	}
	return n
}

// pointer writes the left of a pointer or a reference.
func (w *printer) pointer(n *node) {
	n = w.collapse(n)
	w.left(n.a)
	switch w.holds(n.a).kind {
	case kindFunction:
		w.b = append(w.b, '(')
	case kindMethod:
		w.bad = true
	case kindArray:
		w.text(" (")
	}
	switch n.kind {
	case kindPointer:
		w.b = append(w.b, '*')
	case kindLvalue:
		w.b = append(w.b, '&')
	case kindRvalue:
		w.text("&&")
	}
}

// member writes the left of a pointer to a member.
func (w *printer) member(n *node) {
	w.left(n.b)
	switch w.holds(n.b).kind {
	case kindFunction, kindMethod:
		w.b = append(w.b, '(')
	default:
		if w.hasRight(n.b) {
			w.bad = true
		}
		if w.last() != '(' {
			w.b = append(w.b, ' ')
		}
	}
	w.print(n.a)
	w.text("::*")
}

// result writes the result of a type of a function, if it is known.
func (w *printer) result(n *node) {
	if n.a == 0 {
		return
	}
	if w.hasRight(n.a) {
		w.bad = true
	}
	w.print(n.a)
	w.b = append(w.b, ' ')
}

func (w *printer) params(n *node) {
	w.b = append(w.b, '(')
	w.list(n, false)
	w.b = append(w.b, ')')
}

// typed writes a function with its parameters.
func (w *printer) typed(n *node) {
	f := &w.p.nodes[n.b]
	if !n.local || w.o.LLVM && !w.o.NoEnclosingParams {
		w.result(f)
	}
	w.print(n.a)
	if n.local && w.o.NoEnclosingParams {
		w.text("()")
	} else {
		w.params(f)
	}
	w.text(n.text)
}

func (w *printer) closure(n *node) {
	if !w.o.LLVM {
		w.text("{lambda")
	} else {
		w.quoted("'lambda", int(n.b))
	}
	w.b = append(w.b, '(')
	w.list(n, w.o.LLVM)
	w.b = append(w.b, ')')
	if !w.o.LLVM {
		w.b = append(w.b, '#')
		w.b = strconv.AppendInt(w.b, int64(n.b)+1, 10)
		w.b = append(w.b, '}')
	}
}

func (w *printer) unnamed(n int) {
	if w.o.LLVM {
		w.quoted("'unnamed", n)
		return
	}
	w.text("{unnamed type#")
	w.b = append(strconv.AppendInt(w.b, int64(n)+1, 10), '}')
}

// quoted writes a number of LLVM, which leaves the first one out.
func (w *printer) quoted(text string, n int) {
	w.text(text)
	if n > 0 {
		w.b = strconv.AppendInt(w.b, int64(n)-1, 10)
	}
	w.b = append(w.b, '\'')
}

// address writes the address of a function: GNU leaves out its parameters.
func (w *printer) address(n *node) {
	w.b = append(w.b, '&')
	of := n.a
	if f := &w.p.nodes[of]; f.kind == kindTyped && !w.o.LLVM {
		of = f.a
	}
	parentheses := false
	switch w.p.kindOf(of) {
	case kindName, kindQualified:
	default:
		parentheses = !w.o.LLVM
	}
	if parentheses {
		w.b = append(w.b, '(')
	}
	w.print(of)
	if parentheses {
		w.b = append(w.b, ')')
	}
}

// suffixes holds the suffixes of literals by their type.
var suffixes = map[string]string{"int": "", "unsigned int": "u", "long": "l",
	"unsigned long": "ul", "long long": "ll", "unsigned long long": "ull"}

func (w *printer) literal(n *node) {
	t := &w.p.nodes[n.a]
	suffix, number := "", false
	if t.kind == kindBuiltin {
		suffix, number = suffixes[t.text]
		switch t.text {
		case "double", "long double", "float", "__float128", nullptr:
			w.bad = true
		case "bool":
			if n.n == 0 && (n.text == "0" || n.text == "1") {
				w.text([...]string{"false", "true"}[n.text[0]-'0'])
				return
			}
		}
	}
	if !number {
		w.b = append(w.b, '(')
		w.print(n.a)
		w.b = append(w.b, ')')
	}
	if n.n != 0 {
		w.b = append(w.b, '-')
	}
	w.text(n.text)
	w.text(suffix)
}
