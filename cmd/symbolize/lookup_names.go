package main

import (
	"path"

	"symbolize/analyze/resolve"
	"symbolize/ingest"
)

// nameAll makes the new texts of a batch as they are printed, so that printing, which
// several goroutines do, only reads.
func (l *looker) nameAll() {
	n := l.finder.NumTexts()
	l.names = append(l.names, make([]string, n-len(l.names))...)
	l.files = append(l.files, make([]string, n-len(l.files))...)
	l.demangler.WarmNames(func(yield func(string) bool) {
		for k := range l.addrs {
			if !l.wantNames(k, yield) {
				return
			}
		}
	})
	for k := range l.addrs {
		l.nameOne(k)
	}
}

// wantNames yields the names that an answer needs and that have not been needed
// before.
func (l *looker) wantNames(k int, yield func(string) bool) bool {
	p := l.finder.Place(k)
	frames := l.finder.Frames(p)
	for i := range frames {
		t := frames[i].Name
		if t != 0 && l.names[t] == "" && !yield(l.finder.Text(t)) {
			return false
		}
	}
	if peer := l.peer(k); peer >= 0 {
		return l.peerNames[peer] != "" || yield(l.peers.Symbol(peer).Name)
	}
	t, _ := l.finder.Function(p, l.o.policy)
	return t == 0 || l.names[t] != "" || yield(l.finder.Text(t))
}

// nameOne sets the names and paths of one answer.
func (l *looker) nameOne(k int) {
	p := l.finder.Place(k)
	frames := l.finder.Frames(p)
	for i := range frames {
		f := &frames[i]
		l.setName(f.Name)
		l.setFile(f.File)
		l.setFile(f.DeclFile)
	}
	if peer := l.peer(k); peer >= 0 {
		if l.peerNames[peer] == "" {
			l.peerNames[peer] = l.demangler.Name(l.peers.Symbol(peer).Name)
		}
	} else if t, _ := l.finder.Function(p, l.o.policy); t != 0 {
		l.setName(t)
	}
}

func (l *looker) setName(t resolve.Text) {
	if t != 0 && l.names[t] == "" {
		l.names[t] = l.demangler.Name(l.finder.Text(t))
	}
}

func (l *looker) setFile(t resolve.Text) {
	if t != 0 && l.files[t] == "" {
		l.files[t] = l.path(l.finder.Text(t))
	}
}

func (l *looker) path(s string) string {
	if l.o.basenames && s != "" {
		s = path.Base(s)
	}
	return ingest.Printable(s)
}

// peer returns the number of the symbol that the style's tool would choose for an
// address, −1 if there is none.
func (l *looker) peer(k int) int {
	if l.peers == nil {
		return -1
	}
	return int(l.peerOf[k])
}
