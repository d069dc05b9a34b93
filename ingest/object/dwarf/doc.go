// Package dwarf reads DWARF 2 to 5 for one purpose: the functions of an object, the calls inlined
// into them, and the source lines of their addresses. It does not depend on symbol tables or
// stores, and never reads types or variables.
//
// A Data is made from the sections of one file; Walk visits its units in order, decoded by
// several goroutines into reused buffers. The contents of a Unit are valid until the visit
// returns, and byte slices (names, paths) alias the sections.
//
// # Why not debug/dwarf
//
// The standard package costs 220 ns and four allocations per entry, supports neither split nor
// supplementary files, looks lines up only in sorted tables, and allocates 4 GiB for an 18 KB
// hostile file. Here an abbreviation is compiled once into a few steps ("skip 11 bytes, read a
// reference"), so that entries of no interest, nine tenths of a C++ file, cost one addition or
// one jump by DW_AT_sibling. The standard package is the oracle of the tests.
//
// Every unit is read, so no look-up of the unit of an address is needed: .debug_aranges, which
// has that, lacks units and has wrong ones in real files, and is not read, nor are the ranges of
// a unit's root entry. Functions have their own ranges, and lines those of their sequences, also
// in units without any range (-gstrict-dwarf -gdwarf-2) and in those without a function
// (assembly). The root's low_pc serves only as the base of range lists. Nor is .debug_types read,
// whose units hold no code.
//
// # Names
//
// A function has its linkage name, from which its scopes are known. gcc writes none for static
// functions, for those in unnamed namespaces, instances of templates with local types, and lambdas:
// of their inlined calls no symbol tells the scopes either. Their names get those of the entries
// around their declarations, as `app::score`; see scopes.go.
//
// # Split and supplementary files
//
// Skeleton units are completed from their .dwo file (Options.DWO) or from a package
// (Options.DWP), in DWARF 5 as in the GNU form of DWARF 4. References into the supplementary file
// that dwz makes (.gnu_debugaltlink) go to Options.Alt. Addresses are those of the sections:
// relocatable files must have been relocated (LoadOptions.Patch), any other file must not be,
// even if it has .rela.debug_ sections: a linker with --emit-relocs has applied them.
//
// # Hostile input
//
// Every count and length is checked against the remaining bytes and against the limits in
// limits.go before anything is allocated. Data that several entries may share (strings, range
// lists, line tables, abbreviations) is read under a budget in proportion to the size of the unit
// or section that refers to it, so that no small file costs quadratic time. A damaged unit loses
// the entries after the damage in that unit only, and reports it in Unit.Problems.
//
// References: DWARF Debugging Information Format versions 2 to 5;
// https://gcc.gnu.org/wiki/DebugFission and DebugFissionDWP for the GNU forms of version 4;
// binutils' and LLVM's linkers for the addresses of dropped code.
package dwarf
