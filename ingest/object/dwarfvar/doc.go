// Package dwarfvar reads functions with their variables, global variables and types from DWARF
// (DWARF Debugging Information Format, versions 2 to 5).
//
// # Types
//
// Types are BTF: each unit's are converted and added to a btf.Builder, which joins equal ones, so
// that one printer, one layout and one stored form serve programs, kernels and BPF. C is converted
// as pahole does it. What BTF does not have:
//
//   - names of C++, D and Rust are qualified by their scopes, "app::Box<int>"; types within functions
//     by "f()::";
//   - a base class is a member without a name at its offset; virtual bases, which have no fixed offset,
//     and static members are left out;
//   - references are pointers; a pointer to a member is a long, to a function of a class a structure
//     of two words;
//   - the storage __gnu_cxx::__aligned_membuf<T> has a member of type T;
//   - an enumeration of Rust is a structure with a union of its variants and "__discriminant";
//   - a complex number is a structure of "real" and "imag";
//   - qualifiers that BTF lacks are type tags: "atomic", "immutable", "packed", "shared";
//   - other types are arrays of bytes under their name.
//
// A declared type is the definition of its name: of its own unit, else of any unit, since compilers
// describe a C++ class only in the unit that has its virtual table. In C, with single functions read,
// it stays declared: C code has no access to members of such a type.
//
// # Places
//
// A Place has the register, stack slot, address or value that a location expression gives. The stack
// slots of gcc are relative to the CFA, those of clang to a register. Expressions that compute with
// memory contents are Computed: no place is given rather than a doubtful one. Entry values are values
// of the past, no places.
//
// # Limits
//
// Read are .debug_info with .debug_types, location lists of versions 2 to 5, split units (.dwo, .dwp)
// and supplementary files of dwz, as package dwarf finds them. Not read: type units in .dwo and
// relocatable files, which are sections of their own there, imported units for names (namespaces of
// parts that dwz moved are found by the entries themselves), and expressions of DW_OP_call.
// Entries, strings and lists are read under budgets (dwarf.Tree); counts are bounded, see the
// constants max….
package dwarfvar
