// Package symtab is the symbol table format: a builder, an encoder, a reader and the join.
//
// A table maps the addresses of one object (addr.Addr) to functions. It is a set of disjoint,
// half-open ranges in ascending order, each of one function. A function usually has one range; one
// with another function inside it has several, all with the start of the function as their Start.
// Overlaps and aliases are decided when a table is built (Builder), never when it is read.
//
// # Layout
//
// All numbers are LEB128 (unsigned, 7 bits a byte, low bits first) unless a width is stated. A table
// is one header and any number of blocks, which the store keeps as values of their own: chunks hold
// ranges, string blocks hold names. A small table has no blocks: they are in its header. Lengths
// and checksums of the values are the store's; this package does not rely on the detection of
// damage before.
//
//	header  = magic "SYMTAB" | version u8 | flags u8 | { tagged }
//	tagged  = tag | length | payload of that many bytes
//
// A reader skips unknown tags, in headers and in chunks alike: so the format grows without a new
// version. A part that may not be skipped has a bit in flags; a reader refuses unknown flags, and
// versions above its own.
//
// Tags of a header, at most one of each; 5 to 7 come together, in tables with debug
// information:
//
//	1 summary  first address | ranges | functions | strings
//	2 chunks   per chunk:  gap | span | ranges | functions | strings | raw size | stored
//	3 strings  per block:  strings | raw size | stored
//	4 inline   the stored bytes of all chunks, then of all string blocks
//	5 extra    as 3: names of functions that are only inlined
//	6 files    as 3: paths of source files
//	7 debug    inlined calls | segments | bytes of code with a file and a line
//	8 shown    length of an identification | it | as 3: the names of 3 and 5 demangled
//
// The string blocks of 3, 5, 6, and 8 are kept in that order, as one list.
//
// Version 1 has no tag 8, version 2 has it (Options.Demangler): a block for each block of names
// with as many strings, each the name as it is printed, or empty for a name that is printed as it
// is. The identification names the demangling program and the form; a reader with another one
// demangles the names itself. Demangled names are derived, and so not in the digest.
//
// gap is the distance of a chunk's first address from the end of the chunk before it (from the
// table's first address for chunk 0, where it is 0), span the distance from its first address to
// its end. functions and strings count the functions and strings that the chunk is the first to
// use: their sums number a chunk's functions and strings without reading the others. stored is
// size·2 + 1 for a zstd frame without checksum, size·2 for plain bytes, in which case size = raw
// size.
//
// # Chunks
//
// A chunk decodes with the header and nothing else. Cut at about 64 KiB raw (Options.ChunkSize), it
// is a row of tagged blocks. Tag 1, the ranges, is in columns, which zstd compresses better than
// rows:
//
//	ranges = length of gaps | length of sizes | length of kinds |
//	         gaps | sizes | kinds | extras
//	gaps     per range: start − end of the range before (chunk start for the first)
//	sizes    per range: length of the range, at least 1
//	kinds    per range: bits 1 unsized, 2 old name, 4 part, 8 nameless; others are
//	         refused
//	extras   per range with bit 2: next new string − string number, at least 1
//	         per range with bit 4: start of range − start of function |
//	                               size of function |
//	                               next new function − function number
//
// Without bit 4 a range is a new function, whole: start and size are the range's. With it the third
// number is 0 for a new function of which the range is only a part, otherwise it identifies the
// function that continues here. Without bit 2 the name is a new string, unless bit 8 is set, for
// none: such a range has lines, but no known function. "Unsized" marks a symbol without a size: its
// range ends where the next symbol or the section does.
//
// # Debug information
//
// Tag 2 of a chunk has the frames of the addresses of its ranges: for each range, a tree
// of inlined calls and a row of segments. Overlaps are resolved when a table is built:
// of the calls that cover an address the deepest is visible, of equally deep ones the
// last, and the parts of a call outside the enclosing one are dropped. A segment is a
// run of addresses with the same innermost call, file, line, and column; segments fill
// their range. Calls that no segment shows, as itself or as the caller of another, are
// left out. So a look-up finds one segment and follows parents, without ranges of
// calls.
//
// A function that has several ranges is one function of the table for each: that is how symbols
// have it, too (foo, foo.cold).
//
// The block is in columns: the lengths of all columns except the last; then the columns. A "delta"
// is signed, in zigzag (0, −1, 1, −2 as 0, 1, 2, 3).
//
//	files        per file that the chunk uses: delta to the number before (0 at first)
//	sub names    per subprogram that it uses: delta of the number of its name, likewise
//	sub files      where it is declared: 1 + place in files, 0 for nowhere
//	sub lines      the line it starts on, 0 if unknown
//	range subs   per range: 1 + place of its function among the subprograms, 0 for none
//	range calls    inlined calls
//	range segs     segments, at least 1
//	ups          per call, in pre-order: depth of the one before + 1 − depth
//	call subs      1 + place among the subprograms, 0 for none
//	call files     file of the call site, see below
//	call lines     delta
//	call columns   0 if unknown; the column is empty if all are 0
//	lengths      per segment: bytes; the last one of a range fills it and has none
//	seg calls      delta of the innermost call's number in the range (−1 at first and
//	               for the function itself)
//	seg files      see below
//	seg lines      0 for line 0, else 1 + delta
//	seg columns    0 if unknown; the column is empty if all are 0
//
// Lines are relative within one call or function, the "scope", of one range: at first to the line
// that its subprogram starts on. A call's line is relative to the line of the call before in the
// same scope, a segment's to the line of the segment before with the same scope (line 0 is
// skipped). Files: 0 is the file of the segment before in the scope, at first, and for calls, the
// file that declares its subprogram; 1 is no file; others are 2 + index in files. Nothing is
// relative across ranges, so that ranges outside the query are skipped by counting bytes, eight at
// a time.
//
// For ceph-osd 16.2 (1.23 million visible inlined calls, 1.62 million segments) this
// needs 7.1 MB with all names, for vmlinux 6.1 3.4 MB, for libc 2.36 0.22 MB. Half of it
// are the lengths and lines of segments, and names.
//
// # Strings
//
// Strings are numbered in the order of their first use, which is address order: neighbours share
// prefixes, and a batch reads string blocks as it reads chunks, in order. Each name is stored once
// per table; names of functions that are only inlined are numbered after all others, files on their
// own. A string block is cut at about 64 KiB raw and holds its strings one after another, each
// ended by a NUL.
//
// Front-coding (a byte for the prefix shared with the name before) was measured on the 454,325
// functions of a /usr/lib: 4.63 MB for all tables instead of 4.80 MB. Plain strings need no
// unpacking of their own and hostile input cannot make them grow, so they stay plain. zstd's
// levels gave 5.27, 5.03, 4.80 and 4.61 MB in 0.5, 0.5, 0.8 and 2.2 s. The first is used: in the
// index of a whole /usr/lib, Go programs included, the second needs a tenth less of processor time
// than the third, for 2.7 % of size, and the first 7 % less than the second, for 3.3 % (ceph-osd 7
// % for 5 %, vmlinux 12 % for 5 %).
package symtab
