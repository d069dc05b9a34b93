package gopclntab

import (
	"slices"

	"symbolize/ingest/addr"
)

// span is the start of a stretch of a function's code, up to the next span, in an inlined
// call; or in the function itself (-1).
type span struct {
	start, end uint64
	call       int32 // index into walker.calls
}

// call is an entry of an inline tree.
type call struct {
	name      uint32
	startLine uint32
	callFile  uint32
	callLine  uint32
	parent    int32
	depth     uint32
	first     uint64 // address of its own first code, if has is set
	has       bool

	child, next int32 // first call in it, next call in its parent; -1 none
	last        int32 // its latest piece, -1 none
	count       int32 // of its pieces; then where its ranges end in walker.ranges
}

// piece is a stretch of code of a call, those inlined into it included.
type piece struct {
	call       int32
	start, end uint64
}

// inlines decodes the inlined calls of a function. A reason describes damage: there are no calls
// then, except for cyclic calls, where the cycles are broken.
func (w *walker) inlines(r *record) (reason string) {
	w.at = w.at[:0]
	tree, table, ok := w.t.treeOf(r)
	if !ok {
		return ""
	}
	n := w.spans(r, table)
	if n == 0 || w.left < 0 {
		return ""
	}
	if n > maxInlines {
		return "too many inlined calls"
	}
	if !w.readCalls(r, tree, n) {
		return "inline tree lies outside or makes no sense"
	}
	circles := w.breakCircles()
	if !w.depths() {
		return "inlined calls go too deep"
	}
	w.splitRanges()
	if w.left >= 0 {
		w.group()
		w.emit()
	}
	if circles {
		return "inlined calls are their own callers"
	}
	return ""
}

// spans decodes the table of call indexes by address, and returns one more than the greatest index
// in it.
func (w *walker) spans(r *record, table uint32) (n int) {
	end := uint64(w.f.End)
	s := w.t.stream(table, r.entry)
	for at := r.entry; at < end && s.next() && w.left >= 0; at = s.end {
		w.left--
		w.at = append(w.at, span{at, min(s.end, end), s.value})
		n = max(n, int(s.value)+1)
	}
	return n
}

// readCalls decodes the first n entries of an inline tree.
func (w *walker) readCalls(r *record, tree []byte, n int) bool {
	t := w.t
	size := t.trees.form.size()
	if len(tree)/size < n {
		return false
	}
	w.left -= int64(n * size)
	w.calls = slices.Grow(w.calls[:0], n)[:n]
	for i := range w.calls {
		c, ok := t.decodeCall(r, tree[i*size:])
		if !ok {
			return false
		}
		if t.trees.form.byPC() {
			w.placeCall(r, &c)
		}
		if int(c.parent) >= n {
			return false
		}
		w.calls[i] = call{
			name: c.name, startLine: c.startLine, callFile: c.callFile, callLine: c.callLine,
			parent: max(c.parent, NoParent), child: -1, next: -1, last: -1,
		}
	}
	return true
}

// placeCall sets the parent and the position of a call by its parentPc. The compiler leaves 0
// where it made no instruction for the call, as in initializers that are nothing but stores:
// such a call is right in the function, and from where is not known. A 0 that is an address
// is one in code of the function itself.
func (w *walker) placeCall(r *record, c *rawCall) {
	a := r.entry + uint64(c.parentPC)
	c.parent = w.callAt(a)
	if c.parentPC == 0 && c.parent != NoParent {
		c.parent, c.callFile, c.callLine = NoParent, NoFile, 0
		return
	}
	c.callFile, c.callLine = w.position(a)
}

// callAt returns the call that an address belongs to, or -1.
func (w *walker) callAt(a uint64) int32 {
	i, found := slices.BinarySearchFunc(w.at, a, func(s span, a uint64) int {
		switch {
		case s.start < a:
			return -1
		case s.start > a:
			return 1
		}
		return 0
	})
	if !found {
		i--
	}
	if i < 0 || a >= w.at[i].end {
		return -1
	}
	return w.at[i].call
}

// breakCircles moves calls that are their own callers to the function itself: of each cycle the one
// that is found first. Those in it, and all others, keep their callers.
func (w *walker) breakCircles() (found bool) {
	// The depth marks calls as not seen (0), on the way up from call i (i+1), and sound.
	const sound = 1<<32 - 1
	for i := range w.calls {
		w.stack = w.stack[:0]
		c := int32(i)
		for c >= 0 && w.calls[c].depth == 0 {
			w.calls[c].depth = uint32(i) + 1
			w.stack = append(w.stack, c)
			c = w.calls[c].parent
		}
		if c >= 0 && w.calls[c].depth == uint32(i)+1 {
			w.calls[c].parent = NoParent
			found = true
		}
		for _, c := range w.stack {
			w.calls[c].depth = sound
		}
	}
	for i := range w.calls {
		w.calls[i].depth = 0
	}
	return found
}

// depths computes how deep the calls are nested. It is false if they go too deep.
func (w *walker) depths() bool {
	for i := range w.calls {
		w.stack = w.stack[:0]
		c := int32(i)
		for c >= 0 && w.calls[c].depth == 0 {
			if len(w.stack) > maxDepth {
				return false
			}
			w.stack = append(w.stack, c)
			c = w.calls[c].parent
		}
		depth := uint32(0)
		if c >= 0 {
			depth = w.calls[c].depth
		}
		for _, c := range slices.Backward(w.stack) {
			depth++
			w.calls[c].depth = depth
		}
		if depth > maxDepth {
			return false
		}
	}
	return true
}

// splitRanges assigns each stretch of code to its call and to all enclosing calls.
func (w *walker) splitRanges() {
	w.pieces = w.pieces[:0]
	for _, s := range w.at {
		if s.call < 0 {
			continue
		}
		if own := &w.calls[s.call]; !own.has {
			own.has, own.first = true, s.start
		}
		for i := s.call; i >= 0 && w.left >= 0; {
			c := &w.calls[i]
			w.left--
			if c.last >= 0 && w.pieces[c.last].end == s.start {
				w.pieces[c.last].end = s.end
			} else {
				c.last = int32(len(w.pieces))
				c.count++
				w.pieces = append(w.pieces, piece{i, s.start, s.end})
			}
			i = c.parent
		}
	}
}

// group sorts the pieces by call, into w.ranges; the order of address is kept. After it, a call's
// ranges end at its count and begin at the count of the call before.
func (w *walker) group() {
	w.ranges = slices.Grow(w.ranges[:0], len(w.pieces))[:len(w.pieces)]
	sum := int32(0)
	for i := range w.calls {
		c := &w.calls[i]
		sum, c.count = sum+c.count, sum
	}
	for _, p := range w.pieces {
		c := &w.calls[p.call]
		w.ranges[c.count] = addr.Range{Start: addr.Addr(p.start), End: addr.Addr(p.end)}
		c.count++
	}
}

// emit puts the calls that have code into pre-order.
func (w *walker) emit() {
	roots := int32(-1)
	for i := len(w.calls) - 1; i >= 0; i-- { // backwards: lists are built from their ends
		c := &w.calls[i]
		list := &roots
		if c.parent >= 0 {
			list = &w.calls[c.parent].child
		}
		c.next, *list = *list, int32(i)
	}
	w.stack = w.stack[:0]
	parent := NoParent
	for i := roots; ; {
		for i < 0 {
			if len(w.stack) == 0 {
				return
			}
			up := w.stack[len(w.stack)-1]
			w.stack = w.stack[:len(w.stack)-1]
			i = w.calls[up].next
			parent = w.f.Inlines[w.calls[up].last].Parent
		}
		c := &w.calls[i]
		if c.last < 0 {
			i = c.next // no code, and so none in its calls
			continue
		}
		c.last = int32(len(w.f.Inlines)) // from here on its index in Function.Inlines
		w.add(i, parent)
		parent = c.last
		w.stack = append(w.stack, i)
		i = c.child
	}
}

// add appends a call to the function's.
func (w *walker) add(i, parent int32) {
	c := &w.calls[i]
	from := int32(0)
	if i > 0 {
		from = w.calls[i-1].count
	}
	in := Inline{
		Name: w.name(c.name), File: NoFile, StartLine: c.startLine, Parent: parent,
		Depth: c.depth, CallFile: c.callFile, CallLine: c.callLine,
		Ranges: w.ranges[from:c.count:c.count],
	}
	if c.has {
		in.File, _ = w.position(c.first)
	}
	w.f.Inlines = append(w.f.Inlines, in)
}
