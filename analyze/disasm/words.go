package disasm

import (
	"fmt"
	"iter"
	"sync"

	"symbolize/ingest/addr"
)

// wordLen is the length of all instructions of the machines that words decodes.
const wordLen = 4

// words decodes code by a function that decodes the instruction at its start, of wordLen bytes.
type words func(code []byte, pc addr.PC) Inst

// Decode implements Decoder.
func (one words) Decode(code []byte, pc addr.PC) iter.Seq[Inst] {
	return decodeAll(code, pc, func(code []byte, pc addr.PC) Inst {
		if len(code) < wordLen {
			return badBytes(code[:1])
		}
		return one(code, pc)
	})
}

// formatsMutex guards Decode of arm64asm and loong64asm, which note in global tables which formats
// they have met.
var formatsMutex sync.Mutex

// badWord is a word that no instruction has.
func badWord(directive string, word uint32) Inst {
	return Inst{Len: wordLen, Text: fmt.Sprintf("%s0x%08x", padOp(directive), word), Bad: true}
}
