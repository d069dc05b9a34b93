// Package unwindtab is the format of unwind tables: a builder and a reader.
//
// A table maps the addresses of one object (addr.Addr) to rules, which lead from a frame to its
// caller's (cfi.Rule). It is a list of rows, each the address where a rule begins to hold, up to
// the next row; and a dictionary of rules, since an object has a hundred times more rows than
// rules. Expressions of DWARF are kept as bytes, so that nothing is unrepresentable.
//
// # Layout
//
// The outer form and its conventions are shared with store/symtab: numbers are LEB128 unless a
// width is given, unknown tags are skipped, unknown flags and newer versions are refused, and
// lengths and checksums of the stored values are the store's. A table is one header and blocks:
// chunks hold rows, and the one string block holds the dictionary. A small table has its blocks in
// its header.
//
//	header  = magic "UNWTAB" | version u8 | flags u8 | { tag | length | payload }
//
// Tags of a header, one of each but the last:
//
//	1 summary     ELF machine | functions | rows | bytes of code with a rule
//	2 chunks      per chunk: start | rows | raw size | stored
//	3 dictionary  raw size | stored
//	4 inline      the stored bytes of all chunks, then of the dictionary
//
// start is the distance of the chunk's first row from the first row of the chunk before, from 0 for
// the first chunk. A chunk is cut at 16,384 rows: chunks of 1,024 need 22 to 31 % more, one chunk
// for all 6 to 12 % less. stored is size·2 + 1 for a zstd frame, size·2 for plain bytes.
//
// # Chunks
//
//	chunk   = rules | lengths
//	rules     per row: number of its rule
//	lengths   per row but the last of the chunk: bytes to the next row, at least 1; in the order
//	          of the rows' rules, and of rows with one rule in the order of their addresses
//
// Rules are numbered by how many rows they have, so that most numbers need one byte. Code of one
// rule has much the same length each time (a push, a body, an epilogue): with the lengths sorted by
// rule chunks take 6 % (libc 2.36), 6 % (cc1plus 12) and 13 % (libLLVM 14) less than in the order
// of addresses. The last row of a table has the rule "no rule".
//
// # Dictionary
//
//	dictionary  = number of rules | number of expressions | { rule } | { expression }
//	rule        = kind + 4 if it is of a signal frame u8 | if kind is 2: CFA | RA | saved …
//	CFA, …      = how u8 | operand
//	operand       how 2, 3: offset; how 4: register u8, offset; how 5, 6: number of an expression
//	expression  = length | bytes
//
// kind is a cfi.Kind, how a cfi.How; offsets are signed, in zigzag. The saved registers of a
// machine are listed by cfi.ArchOf, in its order.
package unwindtab
