// Package lookup answers for addresses of one object: function, file and line with all inlined
// calls, printed as llvm-symbolizer, addr2line or llvm-symbolizer's JSON print them.
//
// An Object is opened from a file (OpenFile) or from the store (OpenID). A Looker answers
// batches of addresses of one Object; Files answers lines that name the file themselves.
// Addresses of a batch are sorted, so that each chunk of a symbol table is read once, names are
// demangled once, and answers are printed on all cores in the order of the queries.
package lookup
