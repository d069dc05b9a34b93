// Package pprof reads and writes the pprof format, profile.proto
// (https://github.com/google/pprof/blob/main/proto/profile.proto): Profiles of other
// profilers come in, and those that resolve has named go out, laid out as DESIGN.md
// section 6 says. What is written carries the reasons of unresolved locations, so that a
// later resolve tries again.
package pprof
