package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"symbolize/analyze/report"
	"symbolize/analyze/resolve"
	"symbolize/ingest/addr"
)

// queryLines reads queries. In a batch addresses are sorted, so that each part of a table
// is read once.
var queryLines = lineReader{read: 1 << 20, batch: 8 << 20, line: 64 << 10,
	long: func([]byte) (int, error) { return 0, errLongQuery }}

var errLongQuery = errors.New("a line of more than 64 KiB")

// looker answers queries.
type looker struct {
	o         *lookupOptions
	obj       *lookupObject
	finder    *resolve.Finder
	demangler *report.Demangler

	queries []query
	order   []uint32 // of the queries with a place, by address
	addrs   []addr.Addr
	placeOf []int32 // by query: number in addrs, or −1
	peerOf  []int32 // by number in addrs: the symbol that the style's tool would choose, or −1

	names, files []string // by resolve.Text, as printed; "" until wanted
	peers        *resolve.PeerSymbols
	peerNames    []string // by number of a peer's symbol
	said         []string // errors, each once

	list bool // JSON of arguments, in a list
	hold bool // nobody else has limited the memory
}

// query is one address that is asked for.
type query struct {
	text  []byte // as it came
	value uint64
	at    addr.Addr
	valid bool
}

func newLooker(o *lookupOptions, obj *lookupObject) *looker {
	l := &looker{o: o, obj: obj, finder: resolve.NewFinder(obj.view, obj.manifest)}
	if o.style == styleJSON {
		l.finder.KeepStarts()
	}
	if o.style == styleGNU {
		l.demangler = report.NewDemangler(o.mode)
	} else {
		l.demangler = report.NewLLVMDemangler(o.mode)
	}
	return l
}

// arguments answers the addresses of the command line.
func (l *looker) arguments(w io.Writer, args []string) error {
	if l.o.style == styleJSON { // a list, as llvm-symbolizer prints
		l.list = true
		if _, err := io.WriteString(w, "["); err != nil {
			return err
		}
	}
	l.reset()
	for _, a := range args {
		l.add([]byte(a))
	}
	if err := l.batch(w); err != nil {
		return err
	}
	if l.list {
		_, err := io.WriteString(w, "]\n")
		return err
	}
	return nil
}

// stream answers the lines of r until its end. What has come is answered before
// more is waited for, so that it serves a program that waits for each answer.
func (l *looker) stream(ctx context.Context, r io.Reader, w io.Writer) error {
	return queryLines.each(ctx, r, func(text []byte) error { return l.lines(w, text) })
}

// lines answers whole lines.
func (l *looker) lines(w io.Writer, text []byte) error {
	l.reset()
	for line := range bytes.Lines(text) {
		l.add(bytes.TrimRight(line, "\r\n"))
	}
	return l.batch(w)
}

func (l *looker) reset() { l.queries = l.queries[:0] }

// add adds a query. Its text must stay until the batch is answered.
func (l *looker) add(text []byte) {
	q := query{text: text}
	q.value, q.valid = parseAddress(text)
	l.queries = append(l.queries, q)
}

// parseAddress reads an address, with 0x or without, among blanks.
func parseAddress(text []byte) (uint64, bool) {
	digits := bytes.TrimSpace(text)
	if len(digits) > 2 && digits[0] == '0' && digits[1]|0x20 == 'x' {
		digits = digits[2:]
	}
	return parseHex(digits)
}

// parseHex is strconv.ParseUint without a copy of the text.
func parseHex(digits []byte) (v uint64, ok bool) {
	for _, c := range digits {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		if v>>60 != 0 {
			return 0, false
		}
		v = v<<4 | uint64(c)
	}
	return v, len(digits) > 0
}

// batch answers the queries in their order.
func (l *looker) batch(w io.Writer) error {
	l.join()
	l.joinPeers()
	l.nameAll()
	err := l.printAll(w)
	if l.hold {
		holdLookupMemory()
	}
	return err
}

// join looks the addresses up, sorted.
func (l *looker) join() {
	l.order = l.order[:0]
	l.placeOf = slices.Grow(l.placeOf[:0], len(l.queries))[:len(l.queries)]
	sorted := true
	for i := range l.queries {
		q := &l.queries[i]
		l.placeOf[i] = -1
		if !q.valid {
			continue
		}
		ok := false
		if q.at, ok = l.obj.place(q.value); !ok {
			continue
		}
		if n := len(l.order); n > 0 && l.queries[l.order[n-1]].at > q.at {
			sorted = false
		}
		l.order = append(l.order, uint32(i))
	}
	if !sorted {
		slices.SortFunc(l.order, func(a, b uint32) int {
			return cmp.Compare(l.queries[a].at, l.queries[b].at)
		})
	}
	l.addrs = l.addrs[:0]
	for k, i := range l.order {
		l.addrs = append(l.addrs, l.queries[i].at)
		l.placeOf[i] = int32(k)
	}
	l.finder.Join(l.addrs)
	for _, e := range l.finder.Errors() {
		m := l.obj.manifest
		text := fmt.Sprintf("%s of %s: %v", m.Sources[e.Source].Kind, m.ID, e.Err)
		if !slices.Contains(l.said, text) {
			l.said = append(l.said, text)
		}
	}
}

// joinPeers sets peerOf.
func (l *looker) joinPeers() {
	if l.obj.peers == nil {
		return
	}
	if l.peers == nil {
		var err error
		if l.peers, err = l.obj.peers(); err != nil {
			l.obj.damage = err.Error()
		}
		l.peerNames = make([]string, l.peers.Len())
	}
	l.peerOf = slices.Grow(l.peerOf[:0], len(l.addrs))[:len(l.addrs)]
	l.peers.Join(l.addrs, l.obj.base, l.peerOf)
}

// problems returns what went wrong with tables.
func (l *looker) problems() []string { return l.said }
