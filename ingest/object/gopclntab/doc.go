// Package gopclntab reads the table that every Go program carries for its stack
// traces, of Go 1.2 and later, stripped or not: which functions it has, which calls
// were inlined into them, and which lines their addresses belong to. It is what
// .symtab and DWARF would tell of the Go part of a program, but for columns.
//
// Find locates the table of an ELF file: by the name of its section, else by its
// magic number in the constant data of files that look like Go's. What the table does
// not hold itself (where the code starts, and where the inline trees of Go 1.18 to
// 1.25 lie) is in runtime.moduledata, which is found by its pointers to the table.
//
// # The format
//
// The layouts follow from the magic number: Go 1.2 to 1.15, 1.16 and 1.17, 1.18 and
// 1.19, 1.20 and later. Inline trees came in Go 1.9 and changed in 1.12, 1.13 and 1.16
// without a new magic; so the layouts that a table may have are tried on its own
// trees, and the one is taken by which they make sense (trees.go).
//
// The sources are Go's src/runtime/symtab.go, src/runtime/symtabinl.go,
// src/runtime/funcdata.h, src/internal/abi/symtab.go and
// src/cmd/link/internal/ld/pcln.go of these releases, and
// https://golang.org/s/go12symtab. debug/gosym, which knows no inlined calls, is the
// oracle of the tests.
//
// Known limits: text in several sections, as external linking of very large programs
// makes it on arm and ppc64 (runtime.textsectmap), is taken as one piece. In
// position-independent programs without section headers nothing is found.
//
// # Hostile input
//
// Each offset is checked against what it points into. Functions may share names and
// tables, which a hostile file could make quadratic: all reading is paid from a budget
// in proportion to the size of the table.
package gopclntab
