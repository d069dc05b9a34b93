// Package calltree aggregates the samples of a named Profile: into a table of flat and
// cumulative values, a tree of callers and callees in either direction, and the callers and
// callees of single nodes. All reports that show functions with their weights are made of it.
//
// A Folder numbers the nodes of a profile by a granularity (By) and applies a Filter to its
// locations; Fold adds up the samples of an event by distinct stacks of nodes. Everything
// folds on numbers: a function is numbered by (object, name in the symbol table), and a name
// is made readable once. Nodes are numbered in the order of the profile's tables, so equal
// profiles give equal results.
//
// The filters are those of pprof and work as they do there, on locations and their inlined
// calls before frames become nodes (github.com/google/pprof, profile/filter.go).
package calltree
