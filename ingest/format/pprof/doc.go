// Package pprof reads and writes the pprof format, profile.proto
// (https://github.com/google/pprof/blob/main/proto/profile.proto): Profiles of other profilers are
// the input, and resolved Profiles the output, in the layout of DESIGN.md section 6. The output
// carries the reasons of unresolved locations, so that a later resolve tries again.
package pprof
