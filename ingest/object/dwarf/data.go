package dwarf

import (
	"sync"

	"symbolize/ingest/addr"
)

// Sections holds the contents of a file's DWARF sections, inflated and, for a relocatable file,
// relocated. Those of a .dwo or .dwp file have their names without ".dwo". Absent ones are nil.
// The bytes must not change while a Data uses them.
type Sections struct {
	Info, Abbrev, Line, LineStr, Str, StrOffsets, Addr, Ranges, RngLists []byte

	// For variables and types, see LoadOptions.Variables.
	Loc, LocLists, Types []byte

	CUIndex   []byte // .debug_cu_index of a .dwp file
	TUIndex   []byte // .debug_tu_index, see LoadOptions.Variables
	BigEndian bool

	// Growth, if not nil, tracks how much of Info is inflated: the rest is still zero.
	Growth *Growth
}

// Options holds the context of a file.
type Options struct {
	Name string // of the file, for messages

	// Alt is the supplementary file that .gnu_debugaltlink or .debug_sup names.
	Alt *Data

	// DWP is the .dwp file beside an executable. DWO opens the .dwo file of a skeleton unit that is
	// not in it; the Data is closed when its unit has been visited. It is called by several
	// goroutines.
	DWP *Data
	DWO func(name, compDir string, id uint64) (*Data, error)

	// Text lists the ranges of executable sections. Functions and lines elsewhere belong to code
	// that the linker dropped. Without it addresses 0 and 1 are treated as dropped code, which they
	// are in all linked files.
	Text []addr.Range

	// Release is called periodically during a Walk, to release pages of mapped sections that have
	// been read.
	Release func()

	// Close is called by Data.Close.
	Close func() error
}

// A Data is the debug information of one file. Its methods may be called by several goroutines.
type Data struct {
	sec  Sections
	opts Options
	dwo  bool // sections of a .dwo or .dwp file

	scanOnce sync.Once
	units    unitList
	scanErr  trouble // to be read when all units are known

	mu        sync.Mutex
	linesLeft int64                    // budget of lines
	splitRead map[string]int64         // bytes of units walked, by file
	tables    map[tableKey]*abbrevs    // of units that others refer to, or that share one
	lines     map[uint64]*lineHeader   // file tables of other units' declarations
	index     map[uint64]*contribution // of a .dwp file, by id
}

// trouble is a reason with its position; reason "" is none.
type trouble struct {
	section string
	off     uint64
	reason  string
}

type tableKey struct {
	off uint64
	enc encoding
}

// New makes a Data of a file's sections. It reads nothing yet.
func New(s Sections, o Options) *Data {
	o.Text = newText(o.Text)
	return newData(s, o, false)
}

func newData(s Sections, o Options, dwo bool) *Data {
	d := &Data{sec: s, opts: o, dwo: dwo}
	d.units.cond.L = &d.units.mu
	return d
}

// NewSplit makes a Data of the sections of a .dwo or .dwp file, for Options.DWP and
// Options.DWO.
func NewSplit(s Sections, o Options) *Data {
	return newData(s, o, true)
}

// Close calls Options.Close, which releases the sections.
func (d *Data) Close() error {
	if d.opts.Close == nil {
		return nil
	}
	return d.opts.Close()
}

// abbrevTable returns the compiled table at off from the cache, which is filled under the budget of
// the scan: only tables of scanned units come here.
func (d *Data) abbrevTable(off uint64, enc encoding) (*abbrevs, string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	key := tableKey{off, enc}
	if t, ok := d.tables[key]; ok {
		return t, t.damage
	}
	t := new(abbrevs)
	t.damage = t.parse(d.sec.Abbrev, off, enc)
	t.specs = nil
	if d.tables == nil {
		d.tables = make(map[tableKey]*abbrevs)
	}
	d.tables[key] = t
	return t, t.damage
}
