// Package report prints resolved Profiles: folded stacks, perf script's layout, JSON, the coverage
// summary and the missing objects; names are in the short forms of its Demangler.
//
// Reports fold on numbers, never on strings: a name is demangled once and touched again only when
// it is printed. Nothing here knows the store.
package report
