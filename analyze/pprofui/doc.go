// Package pprofui serves the web pages of github.com/google/pprof over a named Profile. Code and
// source lines come from a annotate.CodeSource, so that pprof's listings need neither binutils nor
// the files at the paths that the profile has.
//
// pprof's driver keeps its options in variables of its package: one Serve at a time.
package pprofui
