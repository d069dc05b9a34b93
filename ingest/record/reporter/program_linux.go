package reporter

import (
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"

	"symbolize/ingest/format/bpf"
	"symbolize/ingest/record/sys"
)

// The program that copies others inside the kernel. It runs at the entry of perf_event_bpf_event,
// which bpf(2) calls when a program is complete and before its loader gets the descriptor; or,
// where the kernel lets nobody attach there, at the exit of bpf(2), in the loader's own context,
// before it can do anything with the descriptor. Nobody can unload the program yet. The data goes
// to a ring in pieces of one size, because the verifier wants sizes that it knows:
//
//	offset  type  field
//	0       u32   kind of piece
//	4       u32   id of the program
//	8       u32   number of the function
//	12      u32   bytes of data
//	16      u64   offset of the data in the array
//	24      u64   size of the array
//	32      u64   address of the function
//	40      u64   its tag
//	64            data
const (
	pieceData = 4096
	pieceHead = 64
	pieceSize = pieceHead + pieceData
	maxPieces = bpf.MaxArray / pieceData // of one thing
)

// Kinds of pieces.
const (
	pieceProgram = iota + 1 // a copiedProgram
	pieceImage
	pieceFuncInfo
	pieceLineInfo
	pieceJITedLines
	pieceBTF
	pieceEnd
)

// Where things lie in the program's stack, from R10.
const (
	stackCtx  = -96  // shared by the callbacks
	stackHead = -256 // the data of pieceProgram
	headSize  = 128

	ctxSrc    = 0
	ctxLeft   = 8
	ctxKind   = 16 // u32 kind, u32 id: as in a piece
	ctxID     = 20
	ctxIndex  = 24
	ctxOffset = 32
	ctxTotal  = 40
	ctxStart  = 48
	ctxTag    = 56
	ctxAux    = 64
	ctxLost   = 72
	ctxTmp    = 80
	ctxSize   = 88
)

// Fields of a copiedProgram, the data of pieceProgram.
const (
	headType     = 0
	headJITed    = 4
	headTag      = 8
	headInsns    = 24 // number of translated instructions
	headID       = 28
	headLoadTime = 32
	headVerified = 40
	headFuncs    = 44 // 0: one, without an entry of its own
	headName     = 48
	headFunc     = 64
	headBTFData  = 72
	headBTFSize  = 80
	headBTFID    = 84
	headInfos    = 88
	headLines    = 92
	headUID      = 96
)

// Names of the callbacks.
const (
	copyPiece = "copy_piece"
	copyFunc  = "copy_func"
)

// copyProgram returns the program's instructions: those that find out which program was loaded, and
// put its address into R6, and those that copy it.
func copyProgram(l *sys.BTFLayout, ring int, find asm.Instructions) (asm.Instructions, error) {
	out := append(copyMain(l, ring, find), pieceCallback(ring)...)
	out = append(out, funcCallback(l)...)
	return out, l.Err
}

// copyMain finds the program and sends all of it.
func copyMain(l *sys.BTFLayout, ring int, find asm.Instructions) asm.Instructions {
	out := append(asm.Instructions{function(copyName, btf.GlobalFunc, "ctx")}, find...)
	for at := int16(0); at < headSize; at += 8 {
		out = append(out, storeWord(asm.R10, stackHead+at, 0))
	}
	for at := int16(0); at < ctxSize; at += 8 {
		out = append(out, storeWord(asm.R10, stackCtx+at, 0))
	}
	out = append(out, readHead(l)...)
	out = append(out, sendHead(ring)...)
	out = append(out, sendArrays(l)...)
	out = append(out, sendEnd(ring)...)
	return append(out, asm.Mov.Imm(asm.R0, 0).WithSymbol("done"), asm.Return())
}

// readHead fills the head. R6 is the program; R7 becomes its aux.
func readHead(l *sys.BTFLayout) asm.Instructions {
	out := readFields(asm.R6,
		field{stackHead + headType, l.At("bpf_prog", "type"), 4},
		field{stackHead + headJITed, l.At("bpf_prog", "jited_len"), 4},
		field{stackHead + headTag, l.At("bpf_prog", "tag"), 8},
		field{stackHead + headInsns, l.At("bpf_prog", "len"), 4},
		field{stackHead + headFunc, l.At("bpf_prog", "bpf_func"), 8},
		field{stackCtx + ctxAux, l.At("bpf_prog", "aux"), 8})
	out = append(out, asm.LoadMem(asm.R7, asm.R10, stackCtx+ctxAux, asm.DWord))
	out = append(out, readFields(asm.R7,
		field{stackHead + headID, l.At("bpf_prog_aux", "id"), 4},
		field{stackHead + headLoadTime, l.At("bpf_prog_aux", "load_time"), 8},
		field{stackHead + headVerified, l.At("bpf_prog_aux", "verified_insns"), 4},
		field{stackHead + headFuncs, l.At("bpf_prog_aux", "func_cnt"), 4},
		field{stackHead + headName, l.At("bpf_prog_aux", "name"), 16},
		field{stackHead + headInfos, l.At("bpf_prog_aux", "func_info_cnt"), 4},
		field{stackHead + headLines, l.At("bpf_prog_aux", "nr_linfo"), 4},
		field{stackCtx + ctxTmp, l.At("bpf_prog_aux", "user"), 8})...)
	out = append(out, asm.LoadMem(asm.R9, asm.R10, stackCtx+ctxTmp, asm.DWord))
	out = append(out, readFields(asm.R9,
		field{stackHead + headUID, l.At("user_struct", "uid"), 4})...)
	out = append(out, readFields(asm.R7,
		field{stackCtx + ctxTmp, l.At("bpf_prog_aux", "btf"), 8})...)
	out = append(out, asm.LoadMem(asm.R9, asm.R10, stackCtx+ctxTmp, asm.DWord),
		asm.JEq.Imm(asm.R9, 0, "no_btf"))
	out = append(out, readFields(asm.R9,
		field{stackHead + headBTFData, l.At("btf", "data"), 8},
		field{stackHead + headBTFSize, l.At("btf", "data_size"), 4},
		field{stackHead + headBTFID, l.At("btf", "id"), 4})...)
	return append(out,
		asm.LoadMem(asm.R1, asm.R10, stackHead+headID, asm.Word).WithSymbol("no_btf"),
		asm.StoreMem(asm.R10, stackCtx+ctxID, asm.R1, asm.Word))
}
