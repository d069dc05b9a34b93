package main

import (
	"path"

	"symbolize/analyze/report"
	"symbolize/analyze/resolve"
	"symbolize/ingest"
)

// print answers a query.
func (l *looker) print(i int) {
	q := &l.queries[i]
	a := &l.answer
	a.Frames = a.Frames[:0]
	a.Valid, a.Address, a.Module = q.valid, q.value, l.obj.module
	if !q.valid {
		a.Input = string(q.text)
	}
	if k := l.placeOf[i]; k >= 0 {
		l.fill(a, i, l.finder.Place(int(k)))
	}
	layout := &l.o.layout
	switch l.o.style {
	case styleGNU:
		l.out = layout.AppendGNU(l.out, a)
	case styleLLVM:
		l.out = layout.AppendLLVM(l.out, a)
	default:
		if l.list && !l.first {
			l.out = append(l.out, ',')
		}
		l.first = false
		l.out = layout.AppendJSON(l.out, a)
		if !l.list {
			l.out = append(l.out, '\n')
		}
	}
}

// fill makes the frames of an answer.
func (l *looker) fill(a *report.Answer, i int, p *resolve.Place) {
	frames := l.finder.Frames(p)
	for k := range frames {
		f := &frames[k]
		a.Frames = append(a.Frames, report.AnswerFrame{
			Function: l.name(f.Name), File: l.file(f.File), Line: f.Line, Column: f.Column,
			StartFile: l.file(f.DeclFile), StartLine: f.DeclLine,
		})
	}
	last := report.AnswerFrame{}
	if n := len(a.Frames); n > 0 {
		last = a.Frames[n-1]
	}
	if peer := l.peer(i); peer >= 0 {
		s := l.obj.peers.Symbol(peer)
		last.Function = l.peerName(peer)
		last.StartAddress, last.HasStart = s.Start, true
		if last.File == "" {
			last.File = l.path(s.File)
		}
	} else if t, start := l.finder.Function(p, l.o.policy); t != 0 {
		last.Function = l.name(t)
		last.StartAddress, last.HasStart = uint64(start+l.obj.base), true
	} else if len(a.Frames) == 0 {
		return
	}
	a.Frames = append(a.Frames[:max(0, len(a.Frames)-1)], last)
	if l.o.noInlines && len(a.Frames) > 1 {
		a.Frames = l.withoutInlines(a.Frames)
	}
}

// withoutInlines leaves one frame, with the line of the code itself: addr2line
// without -i names the innermost function, llvm-symbolizer --no-inlines the
// physical one.
func (l *looker) withoutInlines(frames []report.AnswerFrame) []report.AnswerFrame {
	if l.o.style != styleGNU {
		last := frames[len(frames)-1]
		last.File, last.Line, last.Column = frames[0].File, frames[0].Line, frames[0].Column
		frames[0] = last
	}
	return frames[:1]
}

// name returns a function's name as it is printed.
func (l *looker) name(t resolve.Text) string {
	if t != 0 && l.names[t] == "" {
		l.names[t] = l.demangler.Name(l.finder.Text(t))
	}
	return l.names[t]
}

func (l *looker) peerName(i int) string {
	if l.peerNames[i] == "" {
		l.peerNames[i] = l.demangler.Name(l.obj.peers.Symbol(i).Name)
	}
	return l.peerNames[i]
}

// file returns a path as it is printed.
func (l *looker) file(t resolve.Text) string {
	if t != 0 && l.files[t] == "" {
		l.files[t] = l.path(l.finder.Text(t))
	}
	return l.files[t]
}

func (l *looker) path(s string) string {
	if l.o.basenames && s != "" {
		s = path.Base(s)
	}
	return ingest.Printable(s)
}
