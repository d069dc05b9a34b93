// Package itanium demangles the C++ names of the Itanium ABI that compilers emit most: nested and
// local names, templates with packs, operators, closures, pointers to functions and members, and
// the names of vtables, type information and thunks.
//
// It exists for speed. The general demangler (github.com/ianlancetaylor/demangle) makes a tree of
// pointers and copies it several times, which was three quarters of the time of a look-up in a large
// C++ program; here nodes are numbers in slices that are used again, and only the result is
// allocated. The price is that some of the language is missing: expressions, decltype, constraints,
// modules, conversion operators that depend on templates, and places where the general demangler
// departs from the ABI. For all these Append returns false, and the caller asks the general one.
// What Append accepts it spells byte for byte as that one does: a fuzz target holds the two together.
//
// The grammar is that of https://itanium-cxx-abi.github.io/cxx-abi/abi.html#mangling, whose terms
// name the functions here.
package itanium
