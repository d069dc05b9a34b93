// Package lookup answers for addresses of one object: function, file and line with all inlined
// calls, printed as llvm-symbolizer, addr2line or llvm-symbolizer's JSON print them.
//
// An Object is opened from a file (OpenFile) or from the store (OpenID). A Looker answers
// batches of addresses of one Object; Files answers lines that name the file themselves.
// Addresses of a batch are sorted, so that each chunk of a symbol table is read once, names are
// demangled once, and answers are printed on all cores in the order of the queries.
package lookup

import (
	"bytes"
	"cmp"
	"io"
	"slices"

	"symbolize/analyze/demangle"
	"symbolize/analyze/resolve"
	"symbolize/buildid"
	"symbolize/ingest/addr"
	"symbolize/ingest/object/bpf"
	"symbolize/store/symtab"
)

// Looker answers addresses of one object. It is for one goroutine; printing uses several.
type Looker struct {
	o         *Options
	obj       *Object
	finder    *resolve.Finder
	demangler *demangle.Demangler

	queries []query
	order   []uint32 // of the queries with a place, by address
	addrs   []addr.Addr
	placeOf []int32 // by query: number in addrs, or −1
	llvmOf  []int32 // by number in addrs: the symbol that llvm-symbolizer prints, or −1

	names, files []string // by resolve.Text, as printed; "" until needed
	llvm         *llvmSymbols
	llvmNames    []string // by number of a symbol of llvm
	problems     []string // errors, each once
	conflict     string   // see Conflict
	stripped     int      // see Stripped
	demangled    int      // see WantsStored

	bpf *bpf.Instructions // of a BPF function, as JSON has them
	// AfterBatch is called after each batch if it is not nil: memory of a batch is free then.
	AfterBatch func()
}

// query is one address to look up.
type query struct {
	text  []byte // as read
	value uint64
	at    addr.Addr
	valid bool
}

// New returns a Looker for an object that was opened with the same options.
func New(obj *Object, o *Options) *Looker {
	l := &Looker{o: o, obj: obj, finder: resolve.NewFinder(obj.view, obj.manifest)}
	if o.Style == JSON {
		l.finder.KeepStarts()
	}
	if o.Style != LLVM {
		l.bpf = obj.bpfRuns()
	}
	if o.Style == GNU {
		l.demangler = demangle.New(o.Demangle)
	} else {
		l.demangler = demangle.NewLLVM(o.Demangle)
		if o.Demangle == demangle.Full {
			l.finder.UseDemangled(Stored().ID)
		}
	}
	return l
}

// Arguments answers addresses as one batch; as JSON the answers are one list.
func (l *Looker) Arguments(w io.Writer, args []string) error {
	l.reset()
	for _, a := range args {
		l.add([]byte(a))
	}
	return l.o.writeAnswers(w, func(o *Options, w io.Writer) error {
		l.o = o
		return l.batch(w)
	})
}

// Lines answers whole lines, each of one address. text may be overwritten afterwards.
func (l *Looker) Lines(w io.Writer, text []byte) error {
	l.reset()
	for line := range bytes.Lines(text) {
		l.add(bytes.TrimRight(line, "\r\n"))
	}
	return l.batch(w)
}

func (l *Looker) reset() { l.queries = l.queries[:0] }

// add adds a query. Its text must stay until the batch is answered.
func (l *Looker) add(text []byte) {
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
func (l *Looker) batch(w io.Writer) error {
	l.join()
	l.joinLLVM()
	l.countStripped()
	l.nameAll()
	err := l.printAll(w)
	if l.AfterBatch != nil {
		l.AfterBatch()
	}
	return err
}

// join looks the addresses up, sorted.
func (l *Looker) join() {
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
	if l.conflict == "" {
		if how := l.finder.Contradiction(l.addrs); how != "" {
			l.conflict = resolve.ConflictText(l.obj.manifest, how)
		}
	}
	for _, err := range l.finder.Errors() {
		if text := err.Error(); !slices.Contains(l.problems, text) {
			l.problems = append(l.problems, text)
		}
	}
}

// joinLLVM sets llvmOf.
func (l *Looker) joinLLVM() {
	if l.obj.llvm == nil {
		return
	}
	if l.llvm == nil {
		var err error
		if l.llvm, err = l.obj.llvm(); err != nil {
			l.obj.damage = err.Error()
		}
		l.llvmNames = make([]string, len(l.llvm.symbols))
	}
	l.llvmOf = slices.Grow(l.llvmOf[:0], len(l.addrs))[:len(l.addrs)]
	l.llvm.join(l.addrs, l.obj.base, l.llvmOf)
}

// Damage describes damage in the object's own symbols, "" for none.
func (l *Looker) Damage() string { return l.obj.damage }

// Problems lists the symbol tables that could not be read, each once.
func (l *Looker) Problems() []string { return l.problems }

// Conflict returns the warning that files with the object's build ID contradict one another about
// addresses that were looked up, or "".
func (l *Looker) Conflict() string { return l.conflict }

// manyNames is a number of names that take 0.1 s to demangle.
const manyNames = 4096

// WantsStored reports whether names stored demangled (Stored) would have saved much time, and of
// which object.
func (l *Looker) WantsStored() (id buildid.ID, wants bool) {
	return l.obj.manifest.ID, l.demangled >= manyNames && l.finder.UsesDemangled()
}

// Module is the object as the user named it.
func (l *Looker) Module() string { return l.obj.Module }

// Close closes the object.
func (l *Looker) Close() error { return l.obj.Close() }

// Style selects the tool with the output to reproduce.
type Style uint8

// The styles.
const (
	LLVM Style = iota // llvm-symbolizer --inlines
	GNU               // addr2line -f -i -C
	JSON              // llvm-symbolizer --output-style=JSON
)

// Options select the addresses' origin and the form of the answers.
type Options struct {
	Offsets bool   // addresses are file offsets; of a kernel, offsets from _text
	Section string // addresses count from the start of this section; "" for ELF addresses
	// Only are all addresses that will be looked up, nil if they are not known: a file that is
	// indexed for them needs no larger tables.
	Only []string

	Style     Style
	Layout    Layout
	Demangle  demangle.Mode
	Names     resolve.NamePolicy
	OwnNames  bool // Names overrides the choice of Style's tool
	NoInlines bool // only the physical frame
	Basenames bool // files without directories

	list bool // answers in JSON are elements of a list, each after a comma
}

// Stored makes the demangled names that tables keep: the full names of the styles LLVM and JSON.
// Without them, looking up all 55,000 functions of a program in C++ costs 12 % more processor time.
func Stored() *symtab.Demangler {
	d := demangle.NewLLVM(demangle.Full)
	return &symtab.Demangler{ID: "llvm full " + demangle.Revision, Name: d.Uncached}
}
