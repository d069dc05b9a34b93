// Package input turns any capture into a Profile: stacks of (object, offset).
//
// Open sniffs what a file is (perf.data, bundle, stack map, pprof) and gives a Capture,
// which is either folded at once into a Profile (the default) or replayed, sample after
// sample, in order of time (order.go). Nothing here knows the store: names come later, in
// analyze/resolve, by a join on Locations.
//
// A perf.data is read twice. The first pass (sideband.go) takes what changes the state of
// processes and kernel, and numbers what was mapped (rawobject.go); bundles of the same boot
// lend what it lacks (borrow.go), and BPF programs are tied to their symbols (tie.go).
// The second pass (worker.go) takes the samples in parallel chunks: it splits their chains
// (split.go), counts equal ones (chains.go, exchange.go) and places their addresses
// (locate.go). What the workers hold becomes one Profile in fold.go, by ingest/fold/merge. Stack maps
// come to the same tables by stackmaps.go and stackfold.go.
package input
