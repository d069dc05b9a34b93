package export

import (
	"io"
	"runtime"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"

	"symbolize/ingest"
)

// foldItem stands for samples with equal lines up to a text. Several items can have equal lines: they
// are next to each other, and are written as one.
type foldItem struct {
	text     uint32         // number of the text, of a comm or a frame
	stack    ingest.StackID // the samples have it, or stacks that begin with it
	from, to uint32         // the samples, in folder.order
	frames   uint16         // the frames of the stack's location up to the text
	ended    bool           // the text ends the line
}

// sortSamples lists the samples of the event by comm and stack, so that the samples of all stacks
// that begin with one are neighbours, and returns an item for each comm.
func (f *folder) sortSamples() (items []foldItem) {
	f.numberComms()
	comms := make([]uint32, len(f.p.Samples))
	for i := range f.p.Samples {
		if s := &f.p.Samples[i]; int(s.Event) == f.opts.Event {
			comms[i] = f.index[f.commOf(s)]
			f.order = append(f.order, uint32(i))
		}
	}
	slices.SortFunc(f.order, func(a, b uint32) int {
		if comms[a] != comms[b] {
			return int(comms[a]) - int(comms[b])
		}
		return int(f.p.Samples[a].Stack) - int(f.p.Samples[b].Stack)
	})
	for from := 0; from < len(f.order); {
		to, n := from, comms[f.order[from]]
		for to < len(f.order) && comms[f.order[to]] == n {
			to++
		}
		items = f.add(items, foldItem{from: uint32(from), to: uint32(to)}, []uint32{n}, &f.first)
		from = to
	}
	f.ends = make([]ingest.StackID, max(1, len(f.p.Callers)))
	for s := len(f.ends) - 1; s > 0; s-- {
		f.ends[s] = max(f.ends[s], ingest.StackID(s)+1)
		caller := &f.ends[f.p.Callers[s]]
		*caller = max(*caller, f.ends[s])
	}
	return items
}

func (f *folder) stackAt(i uint32) ingest.StackID { return f.p.Samples[f.order[i]].Stack }

// textsOf returns the texts of the innermost location of a stack, outermost first.
func (f *folder) textsOf(s ingest.StackID) []uint32 {
	if s == 0 {
		return nil
	}
	l := f.p.Leaves[s]
	if f.one[l] == manyFrames {
		return f.many[l]
	}
	return f.one[l : l+1]
}

// add adds the next of the texts to an item, as up to two items: the lines that end there, and the
// others.
func (f *folder) add(list []foldItem, it foldItem, texts []uint32, numbered *numberedTexts) []foldItem {
	it.text = texts[it.frames]
	it.frames++
	end := it.from
	if int(it.frames) == len(texts) {
		for end < it.to && f.stackAt(end) == it.stack {
			end++
		}
	}
	if end > it.from {
		list = append(list, foldItem{text: numbered.last[it.text], from: it.from, to: end, ended: true})
	}
	if end < it.to {
		it.from = end
		list = append(list, it)
	}
	return list
}

// expand appends the items of the next frames of an item.
func (f *folder) expand(list []foldItem, it *foldItem) []foldItem {
	if texts := f.textsOf(it.stack); int(it.frames) < len(texts) {
		return f.add(list, *it, texts, &f.texts)
	}
	next := it.stack + 1
	for from := it.from; from < it.to; {
		for f.ends[next] <= f.stackAt(from) {
			next = f.ends[next]
		}
		to := from + uint32(sort.Search(int(it.to-from), func(i int) bool {
			return f.stackAt(from+uint32(i)) >= f.ends[next]
		}))
		list = f.add(list, foldItem{stack: next, from: from, to: to}, f.textsOf(next), &f.texts)
		from = to
	}
	return list
}

// sort sorts items in the order of their lines.
func (f *folder) sort(list []foldItem, numbered *numberedTexts) {
	slices.SortFunc(list, func(a, b foldItem) int { return int(a.text) - int(b.text) })
	if !numbered.begins {
		return
	}
	// Where a space follows both a text and its beginning, the order depends on the value.
	lines := slices.Collect(runs(list))
	slices.SortFunc(lines, func(a, b []foldItem) int {
		return strings.Compare(string(f.appendText(nil, a, numbered)), string(f.appendText(nil, b, numbered)))
	})
	copy(list, slices.Concat(lines...))
}

// runs returns the runs of items with equal lines.
func runs(list []foldItem) func(yield func([]foldItem) bool) {
	return func(yield func([]foldItem) bool) {
		for len(list) > 0 {
			n := 1
			for n < len(list) && list[n].text == list[0].text {
				n++
			}
			if !yield(list[:n]) {
				return
			}
			list = list[n:]
		}
	}
}

// appendText appends the text of items with equal lines: with ';', or if the lines end with their
// value.
func (f *folder) appendText(b []byte, items []foldItem, numbered *numberedTexts) []byte {
	b = append(b, numbered.texts[items[0].text]...)
	if !items[0].ended {
		return append(b, ';')
	}
	value := uint64(0)
	for _, it := range items {
		for _, i := range f.order[it.from:it.to] {
			if s := &f.p.Samples[i]; f.opts.Count {
				value += s.Count
			} else {
				value += s.Weight
			}
		}
	}
	return append(strconv.AppendUint(append(b, ' '), value, 10), '\n')
}

// foldLines makes lines.
type foldLines struct {
	*folder
	line   []byte       // up to the current text
	out    []byte       // lines
	levels [][]foldItem // by number of texts in line: the items that are being written
	// put gets items of at most pieceSamples samples, and makes no lines of them; nil makes lines.
	put func(*foldLines, []foldItem)
}

// pieceSamples is how many samples are one piece of text, some 100 KB.
const pieceSamples = 256

// write writes the lines of items with equal lines.
func (l *foldLines) write(items []foldItem, level int) {
	if l.put != nil {
		n := uint32(0)
		for i := range items {
			n += items[i].to - items[i].from
		}
		if n <= pieceSamples || items[0].ended {
			l.put(l, items)
			return
		}
	}
	texts := &l.texts
	if level == 0 {
		texts = &l.first
	}
	size := len(l.line)
	l.line = l.appendText(l.line, items, texts)
	if items[0].ended {
		l.out = append(l.out, l.line...)
	} else {
		for level >= len(l.levels) {
			l.levels = append(l.levels, nil)
		}
		list := l.levels[level][:0]
		for i := range items {
			list = l.expand(list, &items[i])
		}
		l.sort(list, &l.texts)
		l.levels[level] = list
		for run := range runs(list) {
			l.write(run, level+1)
		}
	}
	l.line = l.line[:size]
}

// foldPiece is a part of the text: lines that begin with line, of items.
type foldPiece struct {
	line  []byte
	items []foldItem
	level int
}

// print writes the lines of items. Pieces of text are made on all cores, while those before are
// written.
func (f *folder) print(w io.Writer, items []foldItem) error {
	f.sort(items, &f.first)
	out := pieceWriter{w: w, makers: make([]foldLines, runtime.GOMAXPROCS(0)), samples: pieceSamples}
	all := foldLines{folder: f, put: out.add}
	for i := range out.makers {
		out.makers[i].folder = f
	}
	for run := range runs(items) {
		all.write(run, 0)
	}
	out.flush()
	out.flush()
	return out.err
}

// pieceWriter writes pieces in the order in which they are added.
type pieceWriter struct {
	w       io.Writer
	makers  []foldLines
	lists   [][]foldPiece // by maker
	samples int           // of the last list
	ready   [][]byte      // text to be written
	err     error
}

// add adds the lines of items after the line of l.
func (p *pieceWriter) add(l *foldLines, items []foldItem) {
	if p.err != nil {
		return
	}
	if p.samples >= pieceSamples {
		if len(p.lists) == len(p.makers) {
			p.flush()
		}
		p.lists, p.samples = append(p.lists, nil), 0
	}
	list := &p.lists[len(p.lists)-1]
	level := 0
	if len(l.line) > 0 {
		level = 1 // any but 0 has texts of frames
	}
	*list = append(*list, foldPiece{slices.Clone(l.line), slices.Clone(items), level})
	for i := range items {
		p.samples += int(items[i].to - items[i].from)
	}
}

// flush makes the text of the lists, and writes the text of the lists before.
func (p *pieceWriter) flush() {
	var wg sync.WaitGroup
	for i, list := range p.lists {
		wg.Go(func() {
			m := &p.makers[i]
			for _, x := range list {
				m.line = append(m.line[:0], x.line...)
				m.write(x.items, x.level)
			}
		})
	}
	for _, b := range p.ready {
		if p.err == nil {
			_, p.err = p.w.Write(b)
		}
	}
	wg.Wait()
	for i := range p.ready { // their memory serves the next round
		p.ready[i] = p.ready[i][:0]
	}
	for len(p.ready) < len(p.lists) {
		p.ready = append(p.ready, nil)
	}
	for i := range p.ready {
		if i < len(p.lists) {
			p.ready[i], p.makers[i].out = p.makers[i].out, p.ready[i]
		}
	}
	p.lists, p.samples = nil, pieceSamples
}
