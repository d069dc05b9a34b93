// Package input turns any capture into a Profile: stacks of (object, offset).
//
// Open recognizes the kind of a file and returns a Capture, which is either folded into a
// Profile (the default) or replayed, sample after sample, in order of time (order.go). Each
// kind has an implementation of source: perfSource, bundleSource (which has a perfSource for
// its side band and a stackSource for its stacks), stackSource and pprofSource. Nothing here
// knows the store: names come later, in analyze/resolve, by a join on Locations.
//
// A perf.data is read twice. The first pass, in ingest/sideband, reads the changes of state of
// processes and kernel. The second pass (worker.go) reads the samples in parallel chunks:
// it splits their chains (split.go), counts equal ones (chains.go, messages.go) and locates
// their addresses (locate.go). fold.go makes one Profile of the tables of all workers, by
// ingest/fold/merge. Stack maps are folded into the same tables by stackfold.go.
package input
