package dwarf

// Limits against hostile files. Real files stay far below; the comments have the maximum seen in
// libc, ceph-osd and vmlinux.
const (
	maxUnits       = 1 << 18 // units of one section, types not counted; seen: 2,352
	maxDepth       = 1 << 12 // nesting of entries; seen: 60
	maxScopes      = 256     // entries around a function whose name is qualified
	maxOriginChain = 32      // abstract origins and specifications in a row; seen: 4
	maxAbbrevs     = 1 << 18 // abbreviations of one table; seen: 1,100
	maxAbbrevAttrs = 1 << 10 // attributes of one abbreviation; seen: 30
	maxFiles       = 1 << 18 // files or directories of one line table; seen: 2,100
	maxEntryForms  = 16      // forms of a file entry in DWARF 5; seen: 3
	maxString      = 1 << 18 // bytes of one name; seen: 12 K
	maxProblems    = 8       // problems kept per unit; more are only counted
	maxDWPUnits    = 1 << 20 // units of a .dwp file
	maxDWPColumns  = 16      // section kinds of a .dwp file; defined: 8
)

// Budgets: the bytes that one unit may read from sections that it shares with others, as floor +
// factor × size of the unit in bytes.
const (
	rangeBudgetFloor   = 16 << 10
	rangeBudgetFactor  = 32
	stringBudgetFloor  = 512 << 10
	stringBudgetFactor = 64
	scopeBudgetFloor   = 16 << 10 // entries passed on the way to declarations, also of other units
	scopeBudgetFactor  = 256
	scopeCost          = 64 // of reading an entry around a declaration
)

// splitBudgetFactor bounds the bytes of one .dwo or .dwp file that skeletons may walk, as a
// multiple of its .debug_info: each of its units completes one skeleton in real files.
const splitBudgetFactor = 8

// sharedBudgetFactor and sharedBudgetFloor bound the bytes that all units together may read from
// .debug_abbrev, .debug_line, and the sections of range lists: tables and lists do not overlap in
// real files, so that a factor of 1 would suffice for them.
const (
	sharedBudgetFactor = 4
	sharedBudgetFloor  = 64 << 10
)

// Bounds on sections that are read from a file. maxInflated is the maximum inflated size of a
// section (seen: 381 MB) and maxInflateRatio its maximum growth factor (seen: 14); small ones may
// always grow to inflateFloor. Sections over heapSection bytes are mapped, or inflated into an
// unnamed file, so that the heap never holds them.
const (
	maxInflated     = 8 << 30
	maxInflateRatio = 128
	inflateFloor    = 16 << 20
	heapSection     = 1 << 20
)

// releaseEvery is the number of bytes of .debug_info between releases of the mapped sections'
// pages.
const releaseEvery = 32 << 20
