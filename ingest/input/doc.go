// Package input turns any capture into a Profile: stacks of (object, offset).
//
// Open recognizes the kind of a file (perf.data, bundle, stack map, pprof) and gives a
// Capture, which is either folded into a Profile (the default) or replayed, sample after
// sample, in order of time (order.go). Nothing here knows the store: names come later, in
// analyze/resolve, by a join on Locations.
//
// A perf.data is read twice. The first pass, in ingest/sideband, reads what changes the state
// of processes and kernel. The second pass (worker.go) reads the samples in parallel chunks:
// it splits their chains (split.go), counts equal ones (chains.go, messages.go) and locates
// their addresses (locate.go). fold.go makes one Profile of the tables of all workers, by
// ingest/fold/merge. Stack maps come to the same tables by stackmaps.go and stackfold.go.
package input
