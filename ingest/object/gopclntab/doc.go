// Package gopclntab reads the table of functions that every Go program has for its stack
// traces, of Go 1.2 and later, stripped or not: its functions, the calls inlined into
// them, and the source lines of their addresses. It replaces .symtab and DWARF for the Go
// part of a program, except for columns.
//
// Find locates the table of an ELF file: by the name of its section, else by its magic number in
// the constant data of files that look like Go's. The addresses of the text and of the inline trees
// of Go 1.18 to 1.25 are not in the table but in runtime.moduledata, which is found by its pointers
// to the table.
//
// # The format
//
// The layouts follow from the magic number: Go 1.2 to 1.15, 1.16 and 1.17, 1.18 and
// 1.19, 1.20 and later. Inline trees came in Go 1.9 and changed in 1.12, 1.13 and 1.16
// without a new magic; so the possible layouts are tried on the table's own trees, and
// the first consistent one is used (trees.go). Layouts before Go 1.16 are read because Debian 11 has
// docker, containerd and runc, stripped, of Go 1.15: this table has their only names.
//
// The sources are Go's src/runtime/symtab.go, src/runtime/symtabinl.go,
// src/runtime/funcdata.h, src/internal/abi/symtab.go and
// src/cmd/link/internal/ld/pcln.go of these releases, and
// https://golang.org/s/go12symtab. debug/gosym, which has no inlined calls, is the
// oracle of the tests.
//
// Known limits: text in several sections, as external linking of very large programs
// makes it on arm and ppc64 (runtime.textsectmap), is treated as one section. In
// position-independent programs without section headers nothing is found.
//
// # Hostile input
//
// Each offset is checked against its target's size. Functions may share names and
// tables, which a hostile file could make quadratic: all reading is charged to a budget
// in proportion to the size of the table.
package gopclntab
