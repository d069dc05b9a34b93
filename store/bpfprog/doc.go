// Package bpfprog keeps BPF programs in a store and reads them back. Each function of a program is
// an object with an identity of its own, a table of its lines, and a variant for each load with the
// bytes that ran then. Programs come from captures and from the sources that bcc leaves; the
// indexer adds the programs of object files.
package bpfprog

import (
	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/store"
)

// Machine replaces a machine's name in the identity of programs that are not JITed.
const Machine = "bpf"

// Alias is the contribution that enters an object under another ID.
func Alias(alias, id buildid.ID) *store.Contribution {
	return store.Alias(alias, id, ingest.JIT)
}
