package input

import (
	"symbolize/buildid"
	"symbolize/ingest/format/bpf"
)

const bpfProgPrefix = "bpf_prog_"

// JITID is the identity of a JITed function of which no line info is known, by
// DESIGN.md section 2: SHA-1 over machine (as uname -m says it), name, tag and
// length. symbol is the name that the kernel gives it, "bpf_prog_TAG_NAME". It is
// what bpf.Program.Identity is for such a function.
func JITID(machine, symbol string, length uint64) buildid.ID {
	return bpf.SymbolIdentity(machine, symbol, length)
}
