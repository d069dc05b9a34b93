package lookup

import (
	"io"
	"math"
	"runtime"
)

// answersAtOnce is how many answers a goroutine prints before they are written.
const answersAtOnce = 2048

// printer prints answers; a Looker has one for each goroutine.
type printer struct {
	*Looker
	answer Answer
	out    []byte
}

// printAll prints the answers on all cores and writes them in order.
func (l *Looker) printAll(w io.Writer) error {
	workers := min(runtime.GOMAXPROCS(0), 1+len(l.queries)/answersAtOnce)
	free := make(chan *printer, workers+1) // one more, to be written meanwhile
	for range cap(free) {
		free <- &printer{Looker: l}
	}
	blocks := make(chan chan *printer, workers+1)
	go func() {
		defer close(blocks)
		for from := 0; from < len(l.queries); from += answersAtOnce {
			p, block := <-free, make(chan *printer, 1)
			blocks <- block
			go func() {
				p.out = p.out[:0]
				for i := from; i < min(from+answersAtOnce, len(l.queries)); i++ {
					p.print(i)
				}
				block <- p
			}()
		}
	}()
	var first error
	for block := range blocks {
		p := <-block
		if first == nil {
			_, first = w.Write(p.out)
		}
		free <- p
	}
	return first
}

// print answers a query.
func (l *printer) print(i int) {
	q := &l.queries[i]
	a := &l.answer
	a.Frames = a.Frames[:0]
	a.Valid, a.Address, a.Module = q.valid, q.value, l.obj.Module
	if !q.valid {
		a.Input = string(q.text)
	}
	a.HasBPF = false
	if k := l.placeOf[i]; k >= 0 {
		l.fill(a, int(k))
		if l.bpf != nil {
			a.First, a.Last = l.bpf.Range(uint32(min(q.at, math.MaxUint32)))
			a.HasBPF = true
		}
	}
	l.out = l.o.appendAnswer(l.out, a)
}

// appendAnswer appends the answer to one line.
func (o *Options) appendAnswer(b []byte, a *Answer) []byte {
	switch o.Style {
	case GNU:
		return o.Layout.AppendGNU(b, a)
	case LLVM:
		return o.Layout.AppendLLVM(b, a)
	}
	if o.list {
		return o.Layout.AppendJSON(append(b, ','), a)
	}
	return append(o.Layout.AppendJSON(b, a), '\n')
}

// writeAnswers writes the answers to arguments, which write prints with the options that it gets: JSON
// as a list, as llvm-symbolizer does.
func (o *Options) writeAnswers(w io.Writer, write func(*Options, io.Writer) error) error {
	if o.Style != JSON {
		return write(o, w)
	}
	elements := *o
	elements.list = true
	if _, err := io.WriteString(w, "["); err != nil {
		return err
	}
	if err := write(&elements, &listWriter{w: w}); err != nil {
		return err
	}
	_, err := io.WriteString(w, "]\n")
	return err
}

// listWriter writes the elements of a list without the comma before the first.
type listWriter struct {
	w     io.Writer
	begun bool
}

func (l *listWriter) Write(elements []byte) (int, error) {
	if l.begun || len(elements) == 0 {
		return l.w.Write(elements)
	}
	l.begun = true
	n, err := l.w.Write(elements[1:])
	return n + 1, err
}

// fill makes the frames of an answer.
func (l *printer) fill(a *Answer, at int) {
	p := l.finder.Place(at)
	frames := l.finder.Frames(p)
	starts := l.finder.Starts(p)
	for i := range frames {
		f := &frames[i]
		frame := Frame{
			Function: l.names[f.Name], File: l.files[f.File], Line: f.Line, Column: f.Column,
			StartFile: l.files[f.DeclFile], StartLine: f.DeclLine,
		}
		if i < len(starts) && starts[i].OK {
			frame.StartAddress, frame.HasStart = uint64(starts[i].Addr+l.obj.base), true
		}
		a.Frames = append(a.Frames, frame)
	}
	last := Frame{}
	if n := len(a.Frames); n > 0 {
		last = a.Frames[n-1]
	}
	if n := l.llvmSymbol(at); n >= 0 {
		s := &l.llvm.symbols[n]
		last.Function = l.llvmNames[n]
		last.StartAddress, last.HasStart = s.Start, true
		if last.File == "" {
			last.File = l.path(s.File)
		}
	} else if t, start := l.finder.Function(p, l.o.Names); t != 0 {
		last.Function = l.names[t]
		last.StartAddress, last.HasStart = uint64(start+l.obj.base), true
	} else if len(a.Frames) == 0 {
		return
	}
	a.Frames = append(a.Frames[:max(0, len(a.Frames)-1)], last)
	if l.o.NoInlines && len(a.Frames) > 1 {
		a.Frames = l.withoutInlines(a.Frames)
	}
}

// withoutInlines leaves one frame, with the line of the code itself: addr2line without -i names the
// innermost function, llvm-symbolizer --no-inlines the physical one.
func (l *Looker) withoutInlines(frames []Frame) []Frame {
	if l.o.Style != GNU {
		last := frames[len(frames)-1]
		last.File, last.Line, last.Column = frames[0].File, frames[0].Line, frames[0].Column
		frames[0] = last
	}
	return frames[:1]
}
