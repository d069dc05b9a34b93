package flow

import "symbolize/ingest/addr"

// kind is what is known of a value.
type kind uint8

const (
	unknown   kind = iota
	pointer        // off bytes into a t
	number         // a t that is not a pointer
	constant       // off
	multiple       // an unknown multiple of off
	stackAt        // the address CFA + off; from realigned on, a space without a known distance
	globalAt       // the address off
	perCPU         // the distance of this CPU's variables, of a kernel
	threadOff      // the distance off from the thread pointer
)

// realigned is where a space of a frame's own begins: of a stack pointer that was rounded, the
// distance from the CFA is not known.
const realigned = 1 << 40

// origin is how a value is known: the greater, the surer.
type origin uint8

const (
	computed origin = iota // from instructions before
	declared               // a variable is there
	derived                // a variable's value is computed from it
)

// why is the reason why a value is unknown.
type why uint8

const (
	whyNothing why = iota
	whyCall
	whyPaths
	whyArithmetic
	whyLoaded
	whyEntry
)

// value is what is known of a register or a stack slot.
type value struct {
	kind   kind
	origin origin
	why    why
	off    int64
	t      *typ
	steps
	// The value is factor times the unknown value with the number id, if that is not 0.
	id     uint64
	factor int64
}

// steps is what was added to a value besides constants.
type steps struct {
	// indexed is set if an unknown multiple of stride was added; stride 1: nothing is known of it.
	indexed bool
	// biased is set of a number if a constant was added to it, and of an address with such an index: the
	// offset may be of another array than the one that is accessed.
	biased bool
	stride int64
}

func lost(w why) value { return value{why: w} }

// addresses reports whether the value can be the base of an address.
func (v value) addresses() bool {
	switch v.kind {
	case pointer, stackAt, globalAt, perCPU, threadOff:
		return true
	}
	return false
}

// targets reports whether it is the address of an object with a type.
func (k kind) targets() bool { return k == pointer || k == globalAt }

// scalar reports whether the value is a number, perhaps an index.
func (v value) scalar() bool { return v.kind == constant || v.kind == multiple }

// factorOf returns a number that divides the value, 1 if none is known.
func (v value) factorOf() int64 {
	if v.scalar() {
		return v.off
	}
	return 1
}

// index returns v with scale times w added, of which only a factor counts.
func (v value) index(w value, scale int64) value {
	m := w.factorOf()
	if m == 0 {
		return v
	}
	v.biased = v.biased || w.biased
	if m, ok := product(m, scale); ok {
		return v.strided(m)
	}
	return v.strided(1)
}

// strided returns v with a multiple of m added.
func (v value) strided(m int64) value {
	if v.indexed {
		m = gcd(m, v.stride)
	}
	v.indexed, v.stride = true, m
	if v.origin == declared || v.origin == derived {
		v.origin = computed
	}
	return v
}

// moved returns v with a constant added.
func (v value) moved(d int64) value {
	v.off += d
	if v.origin != computed {
		v.origin = computed
	}
	v.id = 0
	return v
}

// withBias returns v with a constant added that is not followed.
func (v value) withBias() value {
	v.biased = true
	return v
}

func multipleOf(n int64, id uint64, factor int64) value {
	if n < 0 {
		n = -n
	}
	if n <= 1 {
		return value{why: whyArithmetic, id: id, factor: factor}
	}
	return value{kind: multiple, off: n, id: id, factor: factor}
}

// maxFactor bounds factors and strides.
const maxFactor = 1 << 40

func product(a, b int64) (int64, bool) {
	if a > maxFactor || a < -maxFactor || b > 1<<20 || b < -(1<<20) {
		return 1, false
	}
	p := a * b
	return p, p <= maxFactor && p >= -maxFactor
}

func gcd(a, b int64) int64 {
	if a < 0 {
		a = -a
	}
	if b < 0 {
		b = -b
	}
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// mod is the remainder that is not negative; a if m is not positive.
func mod(a, m int64) int64 {
	if m <= 0 {
		return a
	}
	if a %= m; a < 0 {
		a += m
	}
	return a
}

// meet returns what holds of both values, and whether it is not a.
func (n *analysis) meet(a, b value) (value, bool) {
	switch {
	case a == b:
		return a, false
	case a.kind == unknown:
		before := a
		if a.id != b.id || a.factor != b.factor {
			a.id, a.factor = 0, 0
		}
		a.biased = a.biased || b.biased
		return a, a != before
	case a.kind == b.kind && a.off == b.off && (a.t == b.t || a.kind == pointer && same(a.t, b.t)):
		return meetEqual(a, b)
	case a.scalar() && b.scalar():
		return meetNumbers(a, b)
	case a.kind.targets() && b.kind == constant && b.off == 0: // a null pointer is not used
		return a, false
	case b.kind.targets() && a.kind == constant && a.off == 0:
		return b, true
	case a.kind == pointer && b.kind == pointer && same(a.t, b.t):
		return n.layouts.meetPointers(a, b)
	case a.kind == globalAt && b.kind == globalAt:
		return n.meetGlobals(a, b)
	case a.kind == number && (b.kind == constant || b.kind == number && same(a.t, b.t)):
		return a, false
	}
	return lost(whyPaths), true
}

// meetEqual is meet of values that differ in their strides, numbers or origins.
func meetEqual(a, b value) (value, bool) {
	before := a
	if b.indexed {
		a.indexed, a.stride = true, gcd(a.stride, b.stride)
		if !before.indexed {
			a.stride = b.stride
		}
	}
	if a.id != b.id || a.factor != b.factor {
		a.id, a.factor = 0, 0
	}
	if a.origin != b.origin {
		a.origin = computed
	}
	a.biased, a.why = before.biased || b.biased, before.why
	return a, a != before
}

func meetNumbers(a, b value) (value, bool) {
	g := gcd(a.off, b.off)
	if g <= 1 {
		return lost(whyPaths), true
	}
	v := value{kind: multiple, off: g}
	v.biased = a.biased || b.biased
	if a.kind == multiple && b.kind == multiple && a.id == b.id && a.factor == b.factor {
		v.id, v.factor = a.id, a.factor
	}
	return v, v != a
}

// meetPointers is meet of pointers to different places of a type: elements of an array of them, or of
// an array within.
func (l *Layouts) meetPointers(a, b value) (value, bool) {
	before := a
	if s := a.t.size; s > 0 && mod(a.off, s) == mod(b.off, s) {
		m := s
		if a.indexed {
			m = gcd(m, a.stride)
		}
		if b.indexed {
			m = gcd(m, b.stride)
		}
		a.off, a.indexed, a.stride, a.origin = mod(a.off, s), true, m, computed
		return a, a != before
	}
	pa, pb := l.leavesOf(a.t, a.off, 1), l.leavesOf(b.t, b.off, 1)
	if len(pa) > 0 && len(pb) > 0 && pa[0].Stride > 0 && pa[0].Path == pb[0].Path {
		m := pa[0].Stride
		if (a.off-b.off)%m == 0 {
			if a.indexed {
				m = gcd(m, a.stride)
			}
			if b.indexed {
				m = gcd(m, b.stride)
			}
			a.off, a.indexed, a.stride, a.origin = min(a.off, b.off), true, m, computed
			return a, a != before
		}
	}
	return lost(whyPaths), true
}

// meetGlobals is meet of two addresses in one variable: a loop walks through an array.
func (n *analysis) meetGlobals(a, b value) (value, bool) {
	before := a
	d := b.off - a.off
	x, ok := n.object.Global(addr.Addr(a.off))
	if y, found := n.object.Global(addr.Addr(b.off)); d <= 0 || !ok || !found || x.At != y.At {
		return lost(whyPaths), true
	}
	m := d
	if a.indexed {
		m = gcd(m, a.stride)
	}
	if b.indexed {
		m = gcd(m, b.stride)
	}
	a.indexed, a.stride = true, m
	return a, a != before
}
