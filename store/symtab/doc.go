// Package symtab implements the symbol table format: a builder, an encoder, a reader, and the join
// of tables with addresses.
//
// A table maps the addresses of one object (addr.Addr) to functions. It is a set of disjoint,
// half-open ranges in ascending order. Each range belongs to one function. A function usually has
// one range. A function with another function inside it has several; the Start of all of them is
// the start of the function. Overlaps and aliases are resolved when a table is built (Builder),
// never when it is read.
//
// # Layout
//
// All numbers are LEB128 (unsigned, 7 bits a byte, low bits first) unless a width is stated. A
// table has one header and any number of blocks. Chunks are blocks with ranges, string blocks have
// strings. The store keeps each block as a separate value; the blocks of a small table are in its
// header. The store also keeps a length and a checksum of each value, but this package does not
// rely on the store to detect damage.
//
//	header  = magic "SYMTAB" | version u8 | flags u8 | { tagged }
//	tagged  = tag | length | payload of that many bytes
//
// A reader skips unknown tags in headers and in chunks, so the format can be extended without a new
// version. A part that readers must not skip has a bit in flags. A reader refuses unknown flags,
// and versions newer than its own.
//
// A header has each of these tags at most once. Tags 5 to 7 are all present or all absent: tables
// with debug information have them.
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
// Version 1 has no tag 8, version 2 has it (Builder.Demangle). Each block of names then has a block
// of demangled names, with the same number of strings. A string is empty if the name is printed
// unchanged, or if its demangled form does not fit. The identification names the demangling program
// and the form of the names. A reader with another identification demangles the names itself. The
// digest does not include demangled names, because they are derived.
//
// gap is the distance from the end of the preceding chunk to the chunk's first address; it is 0 for
// chunk 0. span is the distance from the chunk's first address to its end. functions and strings
// count only the functions and strings that no preceding chunk uses. Their sums over the preceding
// chunks are the numbers of the chunk's first new function and string, so that a reader need not
// read those chunks. stored is n·2 + 1 for a zstd frame of n bytes without checksum, and n·2 for n
// plain bytes; then n is the raw size.
//
// # Chunks
//
// A reader needs only the header to decode a chunk. A chunk has about 64 KiB raw
// (Options.ChunkSize); it is a sequence of tagged payloads. Tag 1 has the ranges, in columns, which
// zstd compresses better than rows:
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
// Without bit 4 the range is a whole new function, with the start and size of the range. With bit 4
// the third number is 0 if the range is the first part of a new function; otherwise it identifies
// the function that the range continues. Without bits 2 and 8 the name is the next new string. With
// bit 8 the range has no name: its lines are known, but not its function. "Unsized" marks a symbol
// without a size: its range ends at the next symbol or at the end of the section.
//
// # Debug information
//
// Tag 2 of a chunk has the frames of the addresses in its ranges: for each range, a tree of inlined
// calls and a sequence of segments. A segment is a run of addresses with the same innermost call,
// file, line and column. The segments of a range cover it. Overlaps are resolved when a table is
// built. If several calls cover an address, the deepest call is visible, and the last one of
// equally deep calls. The parts of a call outside the enclosing call are dropped. A call is left
// out if no segment has it as its innermost call or as one of the callers. So a look-up finds one
// segment and follows the parents of its call; ranges of calls are not stored.
//
// A function that has several address ranges in the debug information becomes one function of the
// table per address range, as in symbol tables (foo, foo.cold).
//
// The payload is in columns: first the lengths of all columns except the last, then the columns. A
// "delta" is signed and zigzag-encoded (0, −1, 1, −2 as 0, 1, 2, 3).
//
//	files        per file that the chunk uses: delta to the preceding number (0 at first)
//	sub names    per subprogram that it uses: delta of its name's number, likewise
//	sub files      where it is declared: 1 + place in files, 0 for nowhere
//	sub lines      the line it starts on, 0 if unknown
//	range subs   per range: 1 + place of its function among the subprograms, 0 for none
//	range calls    inlined calls
//	range segs     segments, at least 1
//	ups          per call, in pre-order: depth of the preceding call + 1 − depth
//	call subs      1 + place among the subprograms, 0 for none
//	call files     file of the call site, see below
//	call lines     delta
//	call columns   0 if unknown; the column is empty if all are 0
//	lengths      per segment but the last of a range, which ends with the range: bytes
//	seg calls      delta of the innermost call's number in the range (−1 at first and
//	               for the function itself)
//	seg files      see below
//	seg lines      0 for line 0, else 1 + delta
//	seg columns    0 if unknown; the column is empty if all are 0
//
// The "scope" of a segment is its innermost call, or the function if it has none; the scope of a
// call is the call or function that encloses it. A call's line is relative to the line of the
// preceding call in the same scope. A segment's line is relative to the line of the preceding
// segment in the same scope that has a line. The first lines of a scope are relative to the line on
// which the scope's subprogram starts. For a call, file 0 is the file that declares the scope's
// subprogram. For a segment, file 0 is the file of the preceding segment in the scope that has a
// file, at first also the declaring file. File 1 is no file; other values are 2 + index in files.
// Nothing is relative across ranges, so a reader skips ranges outside the query by counting bytes,
// eight at a time.
//
// The debug information of ceph-osd 16.2 (1.23 million visible inlined calls, 1.62 million
// segments) needs 7.1 MB with all names. vmlinux 6.1 needs 3.4 MB, libc 2.36 0.22 MB. Half of each
// size is for names, and for the lengths and lines of segments.
//
// # Strings
//
// Strings are numbered in the order of their first use, which is address order. Neighbouring
// strings then often share prefixes, and a batch reads string blocks in order, as it reads chunks.
// Each name is stored once per table. Names of functions that are only inlined are numbered after
// all other names; files are numbered separately. A string block has about 64 KiB raw
// (Options.StringSize) and contains its strings one after another, each terminated by a NUL.
//
// Front-coding (a byte for the length of the prefix shared with the preceding name) was measured on
// the 454,325 functions of a /usr/lib: all tables need 4.63 MB instead of 4.80 MB. Plain strings
// need no second decoding step, and hostile input cannot make them grow, so strings are plain.
//
// The four zstd levels gave 5.27, 5.03, 4.80 and 4.61 MB in 0.5, 0.5, 0.8 and 2.2 s. This package
// uses the first. For the index of a whole /usr/lib with Go programs, the second level needs a
// tenth less processor time than the third, and 2.7 % more space. The first needs 7 % less
// processor time than the second, and 3.3 % more space (ceph-osd: 7 % less time, 5 % more space;
// vmlinux: 12 % and 5 %).
package symtab
