// Package store is the model of the symbol store, without a database: the Manifest of an object
// with its sources, path rows, the variants of JITed functions, their stored forms (codecs), and
// how contributions of files merge, in any order, to the same bytes.
//
// A View serves look-ups: a published generation of a store on disk (package db), an
// Overlay in memory, or several layered. A Sink is written by the indexer. FindOne and
// FindCode return the one object of a build ID, or the reason why there is none. Export and Import
// write and read archives of objects, which move them between stores (export.go has the format).
package store
