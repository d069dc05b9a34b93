// Package indexer reads objects from files and writes their symbol tables to a
// store.Sink. It is the only place where object decoders meet the table format.
//
// Index walks paths. A directory is one task: its entries are stat'ed and compared with the path
// rows of the last run; an unchanged file costs that stat and no more. Of a new file the first
// bytes are read, and an object by its content becomes a task of its own. When the last object of a
// directory is in the sink, the directory's rows are written: a row records that everything it
// covers is stored. Nothing is written, and the sink is not even opened, while nothing has changed.
//
// Every file contributes on its own: a runtime file its layout, its .symtab, or otherwise .dynsym
// united with .gnu_debugdata, and its PLT; a debug file its .symtab; each of them its debug
// information, as a table of functions, inlined calls and lines. Without that a Go program gives
// the table of its stack traces, and without .symtab a program gives functions without names by
// .eh_frame. Contributions to one object are joined by the sink in any order, so the order of
// files, of workers and of runs changes no byte of a store's content.
//
// Debug information is read from mapped sections, or from files without a name where it is
// compressed, unit by unit on all cores; only the parts of the table stay in memory. It may be in
// further files: .dwo and .dwp files (split DWARF), and the one that dwz moves shared parts to.
// Where one of these is missing or damaged the table is made of the rest, with partialProducer, and
// the file's row remembers the places: when the file has come, the next run reads both, and the
// whole table wins. Addresses are relative to the object: for a kernel relative to _text, for a
// module by the loader's layout.
package indexer
