// Package symtab is the symbol table format: a builder, an encoder, a reader
// and the join.
//
// A table maps the addresses of one object (addr.Addr) to functions. It is a set
// of disjoint, half-open ranges in ascending order, each of one function. A
// function usually has one range; one with another function inside it has
// several, all with the start of the function as their Start. Overlaps and
// aliases are decided when a table is built (Builder), never when it is read.
//
// # Layout
//
// All numbers are LEB128 (unsigned, 7 bits a byte, low bits first) unless a width
// is given. A table is one header and any number of blocks, which the store keeps
// as values of their own: chunks hold ranges, string blocks hold names. A small
// table has no blocks: they stand in its header. Lengths and checksums of the
// values are the store's; nothing here relies on damaged input being found out
// before.
//
//	header  = magic "SYMTAB" | version u8 | flags u8 | { tagged }
//	tagged  = tag | length | payload of that many bytes
//
// A reader skips tags that it does not know, in headers and in chunks alike: that
// is how inline trees, lines and files come in without a new version. What may
// not be skipped has a bit in flags; a reader refuses flags that it does not
// know, and versions above its own.
//
// Tags of a header, at most one of each:
//
//	1 summary  first address | ranges | functions | strings
//	2 chunks   per chunk:  gap | span | ranges | functions | strings | raw size | stored
//	3 strings  per block:  strings | raw size | stored
//	4 inline   the stored bytes of all chunks, then of all string blocks
//
// gap is the distance of a chunk's first address from the end of the chunk before
// it (from the table's first address for chunk 0, where it is 0), span the
// distance from its first address to its end. functions and strings count those
// that the chunk is the first to use: their sums number a chunk's functions and
// strings without reading the others. stored is size·2 + 1 for a zstd frame
// without checksum, size·2 for plain bytes, in which case size = raw size.
//
// # Chunks
//
// A chunk decodes with the header and nothing else. Cut at about 64 KiB raw
// (Options.ChunkSize), it is a row of tagged blocks. Tag 1, the ranges, is in
// columns, which zstd takes better than rows:
//
//	ranges = length of gaps | length of sizes | length of kinds |
//	         gaps | sizes | kinds | extras
//	gaps     per range: start − end of the range before (chunk start for the first)
//	sizes    per range: length of the range, at least 1
//	kinds    per range: bits 1 unsized, 2 old name, 4 part; others are refused
//	extras   per range with bit 2: next new string − string number, at least 1
//	         per range with bit 4: start of range − start of function |
//	                               size of function |
//	                               next new function − function number
//
// Without bit 4 a range is a new function, whole: start and size are the range's.
// With it the third number is 0 for a new function of which the range is only a
// part, else it says which one goes on here. Without bit 2 the name is a new
// string. "Unsized" says that the symbol had no size and that the range ends where
// the next symbol or the section does.
//
// # Strings
//
// Strings are numbered in the order of their first use, which is address order:
// neighbours share prefixes, and a batch reads string blocks as it reads chunks,
// in order. Each name stands once per table. A string block is cut at about 64 KiB
// raw and holds its strings one after another, each ended by a NUL.
//
// Front-coding (a byte for the prefix shared with the name before) was measured on
// the 454,325 functions of a /usr/lib: 4.63 MB for all tables instead of 4.80 MB.
// Plain strings need no unpacking of their own and give hostile input nothing to
// grow with, so they stay plain. zstd's levels gave 5.27, 5.03, 4.80 and 4.61 MB in
// 0.5, 0.5, 0.8 and 2.2 s; the third is used.
package symtab
