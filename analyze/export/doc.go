// Package export writes resolved Profiles for other tools: folded stacks, perf script's layout,
// and JSON.
//
// Folded stacks are folded on numbers, never on strings: a name is demangled once and touched again
// only when it is printed. Nothing here knows the store.
package export
