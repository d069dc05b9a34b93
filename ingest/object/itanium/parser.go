package itanium

// Options select the form of a name, as those of the general demangler do.
type Options struct {
	NoParams          bool // leave out the parameters of the function itself
	NoEnclosingParams bool // leave out those of functions around local names
	NoTemplateParams  bool // leave out template arguments
	LLVM              bool // spell as the tools of LLVM do, not those of GNU
}

// Demangler holds memory that is used again from name to name. It is for one goroutine. The zero
// value is ready.
type Demangler struct {
	p parser
	w printer
}

const (
	// maxOutput is the longest result, bytes: substitutions of a short name can grow without end.
	maxOutput = 64 << 10
	// maxSteps bounds the nodes printed for one name.
	maxSteps = 64 << 10
	// maxDepth bounds the nesting of a name. Names of real programs stay below 100.
	maxDepth = 512
)

// Append appends the demangled form of a name that begins with _Z, without suffixes of clones and
// versions. It returns false, and b unchanged, for one that it cannot demangle: the name may still
// be valid.
func (d *Demangler) Append(b []byte, name string, o Options) ([]byte, bool) {
	if len(name) < 3 || name[:2] != "_Z" {
		return b, false
	}
	p := &d.p
	p.reset(name[2:])
	top := p.encoding(!o.NoParams, false)
	if p.bad || !o.NoParams && p.at < len(p.s) {
		return b, false
	}
	d.w = printer{p: p, o: o, b: b, from: len(b)}
	d.w.print(top)
	if d.w.bad || len(d.w.b)-len(b) > maxOutput {
		return b, false
	}
	return d.w.b, true
}

// ref is the number of a node; 0 is none.
type ref int32

type kind uint8

const (
	kindNone       kind = iota
	kindName            // text
	kindQualified       // a::b
	kindLocal           // a::b, a is the encoding of a function
	kindTemplate        // a<list>
	kindPack            // list: the arguments of a template parameter pack
	kindParam           // a: what a template parameter stands for
	kindPackParam       // a: a pack, of which the argument at hand is meant
	kindExpansion       // a for each argument of the pack b
	kindBuiltin         // text
	kindQual            // a with the cv-qualifiers text
	kindPointer         // to a
	kindLvalue          // reference to a
	kindRvalue          // reference to a
	kindFunction        // type of a function that returns a, 0 for unknown, with parameters list
	kindMethod          // a, a name or type of a function, with the qualifiers text of its this
	kindMember          // pointer to a member of a, of type b
	kindArray           // of elements a, of dimension text
	kindTyped           // function with the name a of type b, and the qualifiers text of its this
	kindDestructor      // of a
	kindCast            // operator a
	kindTagged          // a with the ABI tag text
	kindClosure         // with parameters list, number n
	kindUnnamed         // type number n
	kindAuto            // parameter n of a generic lambda
	kindLiteral         // text of type a
	kindAddress         // of the function a
	kindSpecial         // text, then a, and for a construction vtable "-in-" b
)

// node is a part of a name.
type node struct {
	kind  kind
	local bool // kindTyped: around a local name
	a, b  ref
	first int32 // of list in parser.lists
	n     int32 // length of list, or a number
	text  string
}

// candidate is a component that a later substitution may name.
type candidate struct {
	node     ref
	pack     ref // the pack of its pattern, 0 outside of one
	template ref // of the template parameters in it, 0 if it has none
}

// parser makes nodes of a mangled name. Once bad is set the name is given up: peek returns 0
// from there on, so that every loop ends.
type parser struct {
	s     string
	at    int
	bad   bool
	depth int

	nodes []node
	lists []ref
	stack []ref // lists under construction
	subs  []candidate

	templates []ref // of the functions whose types are being read, outermost first
	params    int   // template parameters seen so far
	pattern   bool  // inside a pack expansion
	pack      ref   // its pack
	lambdas   int   // closures around this place
	cast      bool  // inside the type of a conversion operator
}

// inLambda is the template of the parameters of generic lambdas.
const inLambda ref = -1

func (p *parser) reset(s string) {
	*p = parser{s: s, nodes: append(p.nodes[:0], node{}), lists: p.lists[:0],
		stack: p.stack[:0], subs: p.subs[:0], templates: p.templates[:0]}
}

// peek returns the next byte, 0 at the end.
func (p *parser) peek() byte { return p.peekAt(0) }

func (p *parser) peekAt(n int) byte {
	if p.bad || p.at+n >= len(p.s) {
		return 0
	}
	return p.s[p.at+n]
}

// accept skips c if it is next.
func (p *parser) accept(c byte) bool {
	if p.peek() != c || c == 0 {
		return false
	}
	p.at++
	return true
}

// expect skips c, which must be next.
func (p *parser) expect(c byte) {
	if !p.accept(c) {
		p.bad = true
	}
}

// fail gives the name up.
func (p *parser) fail() ref {
	p.bad = true
	return 0
}

func (p *parser) add(n node) ref {
	p.nodes = append(p.nodes, n)
	return ref(len(p.nodes) - 1)
}

func (p *parser) addText(k kind, a ref, text string) ref {
	return p.add(node{kind: k, a: a, text: text})
}

func (p *parser) kindOf(r ref) kind { return p.nodes[r].kind }

// list returns the list of a node.
func (p *parser) list(r ref) []ref {
	n := &p.nodes[r]
	return p.lists[n.first : n.first+n.n]
}

// endList makes a node of what was pushed to the stack since its length was from.
func (p *parser) endList(n node, from int) ref {
	n.first, n.n = int32(len(p.lists)), int32(len(p.stack)-from)
	p.lists = append(p.lists, p.stack[from:]...)
	p.stack = p.stack[:from]
	return p.add(n)
}

// candidate adds a component that substitutions may name. seen is params before it was read.
func (p *parser) candidate(r ref, seen int) {
	c := candidate{node: r}
	if p.params != seen {
		c.pack, c.template = p.pack, p.template()
	}
	p.subs = append(p.subs, c)
}

// template returns the template whose parameters T_ means.
func (p *parser) template() ref {
	if p.lambdas > 0 {
		return inLambda
	}
	if len(p.templates) != 1 || p.cast { // the general demangler has a rule of its own
		return 0
	}
	return p.templates[0]
}

// number reads <number>, without a sign.
func (p *parser) number() int {
	c := p.peek()
	if c < '0' || c > '9' {
		p.bad = true
	}
	n := 0
	for ; c >= '0' && c <= '9'; c = p.peek() {
		if n > 1<<20 {
			p.bad = true
		}
		n = n*10 + int(c-'0')
		p.at++
	}
	return n
}

// compactNumber reads _ or <number> _, which count from 0.
func (p *parser) compactNumber() int {
	if p.accept('_') {
		return 0
	}
	n := p.number() + 1
	p.expect('_')
	return n
}

// enter guards a recursion.
func (p *parser) enter() bool {
	p.depth++
	if p.depth > maxDepth {
		p.bad = true
	}
	return !p.bad
}
