package ingest

import (
	"crypto/sha1"
	"encoding/binary"
	"strings"

	"symbolize/buildid"
)

const (
	bpfProgPrefix = "bpf_prog_"
	bpfTagLen     = 16 // hex digits
)

// splitBPFName takes "bpf_prog_TAG_NAME" apart. Other names have no tag.
func splitBPFName(symbol string) (name, tag string) {
	rest, ok := strings.CutPrefix(symbol, bpfProgPrefix)
	if !ok || len(rest) < bpfTagLen {
		return symbol, ""
	}
	for i := range bpfTagLen {
		if !strings.ContainsRune("0123456789abcdef", rune(rest[i])) {
			return symbol, ""
		}
	}
	tag, rest = rest[:bpfTagLen], rest[bpfTagLen:]
	if rest == "" {
		return "", tag
	}
	if name, ok = strings.CutPrefix(rest, "_"); !ok {
		return symbol, ""
	}
	return name, tag
}

// JITID is the identity of a JITed function of which no line info is known, by
// DESIGN.md section 2: SHA-1 over machine (as uname -m says it), name, tag and
// length, each string preceded by its length. symbol is the name that the
// kernel gives it, "bpf_prog_TAG_NAME". Loads of one program have different
// bytes and addresses and one identity.
func JITID(machine, symbol string, length uint64) buildid.ID {
	name, tag := splitBPFName(symbol)
	var b []byte
	for _, s := range []string{machine, name, tag} {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	b = binary.LittleEndian.AppendUint64(b, length)
	sum := sha1.Sum(b)
	return buildid.Make(buildid.JIT, sum[:])
}
