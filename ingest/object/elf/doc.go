// Package elf decodes the parts of an ELF file that symbolization needs: the program headers and
// sections, the build ID, function symbols, PLT stubs, the links to debug files, and the layout
// of a kernel module's sections.
//
// It differs from debug/elf in three ways. Opening a file costs a few small reads and memory for
// its section headers only; contents are read on demand, each up to a named bound. Every length
// is checked against the file before anything is allocated from it, and an error has its position
// (decode.Error). Symbols are visited, never collected: their names share one copy of the string
// table.
//
// It decodes no DWARF and nothing that only linkers and loaders use.
//
// Sources: System V gABI, the processor supplements, include/uapi/linux/elf.h, and the kernel's
// kernel/module/main.c for modules.
package elf
