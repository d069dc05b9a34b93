// Package elf decodes what symbolization wants of an ELF file, and no more: the
// program headers and sections, the build ID, function symbols, PLT stubs, the
// links to debug files, and where the kernel puts the sections of a module.
//
// It differs from debug/elf in three ways. Opening a file costs a few small reads
// and memory for its section headers only; contents are read when they are asked
// for, each up to a named bound. Every length is checked against the file before
// anything is allocated from it, and an error says where (decode.Error). Symbols
// are visited, never collected: their names share one copy of the string table.
//
// It gives no DWARF, and nothing of what only a linker or loader needs.
//
// Sources: System V gABI, the processor supplements, include/uapi/linux/elf.h,
// and the kernel's kernel/module/main.c for modules.
package elf
