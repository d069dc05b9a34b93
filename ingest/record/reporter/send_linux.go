package reporter

import (
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"

	"symbolize/ingest/record/sys"
)

// The copier sends the data in pieces.

// reserve asks for a piece, in R0 and R8, and jumps if there is no room.
func reserve(ring int, full string) asm.Instructions {
	return asm.Instructions{
		asm.LoadMapPtr(asm.R1, ring),
		asm.Mov.Imm(asm.R2, pieceSize),
		asm.Mov.Imm(asm.R3, 0),
		asm.FnRingbufReserve.Call(),
		asm.JEq.Imm(asm.R0, 0, full),
		asm.Mov.Reg(asm.R8, asm.R0),
	}
}

func submit() asm.Instructions {
	return asm.Instructions{
		asm.Mov.Reg(asm.R1, asm.R8), asm.Mov.Imm(asm.R2, 0), asm.FnRingbufSubmit.Call(),
	}
}

// sendHead sends the piece that a copy begins with; without room there is no copy.
func sendHead(ring int) asm.Instructions {
	out := append(reserve(ring, "done"),
		asm.StoreImm(asm.R8, 0, pieceProgram, asm.Word),
		asm.LoadMem(asm.R1, asm.R10, stackCtx+ctxID, asm.Word),
		asm.StoreMem(asm.R8, 4, asm.R1, asm.Word),
		asm.StoreImm(asm.R8, 8, 0, asm.Word),
		asm.StoreImm(asm.R8, 12, headSize, asm.Word),
		storeWord(asm.R8, 16, 0),
		storeWord(asm.R8, 24, headSize))
	for at := int16(0); at < headSize; at += 8 {
		out = append(out, asm.LoadMem(asm.R1, asm.R10, stackHead+at, asm.DWord),
			asm.StoreMem(asm.R8, pieceHead+at, asm.R1, asm.DWord))
	}
	return append(out, submit()...)
}

// sendEnd sends the last piece, which marks the program as complete.
func sendEnd(ring int) asm.Instructions {
	out := append(asm.Instructions{
		asm.LoadMem(asm.R1, asm.R10, stackCtx+ctxLost, asm.DWord), asm.JNE.Imm(asm.R1, 0, "done"),
	}, reserve(ring, "done")...)
	out = append(out,
		asm.StoreImm(asm.R8, 0, pieceEnd, asm.Word),
		asm.LoadMem(asm.R1, asm.R10, stackCtx+ctxID, asm.Word),
		asm.StoreMem(asm.R8, 4, asm.R1, asm.Word),
		asm.StoreImm(asm.R8, 12, 0, asm.Word))
	return append(out, submit()...)
}

// array is something that is sent in pieces: its address in the stack, and the number
// of items there.
type array struct {
	kind     int64
	src      int16
	count    int16
	itemSize int32
}

// sendArrays sends the code of all functions and the arrays of the program.
func sendArrays(l *sys.BTFLayout) asm.Instructions {
	out := asm.Instructions{
		asm.StoreImm(asm.R10, stackCtx+ctxKind, pieceImage, asm.Word),
		asm.LoadMem(asm.R9, asm.R10, stackHead+headFuncs, asm.Word),
		asm.JNE.Imm(asm.R9, 0, "functions"),
		asm.LoadMem(asm.R1, asm.R10, stackHead+headFunc, asm.DWord),
		asm.StoreMem(asm.R10, stackCtx+ctxStart, asm.R1, asm.DWord),
		asm.LoadMem(asm.R1, asm.R10, stackHead+headTag, asm.DWord),
		asm.StoreMem(asm.R10, stackCtx+ctxTag, asm.R1, asm.DWord),
	}
	out = append(out, sendArray(array{pieceImage, stackHead + headFunc, stackHead + headJITed, 1},
		"after_image")...)
	out = append(out, asm.Ja.Label("arrays"))
	calls := loop(copyFunc, asm.Mov.Reg(asm.R1, asm.R9), asm.R10, stackCtx)
	calls[0] = calls[0].WithSymbol("functions")
	out = append(out, calls...)
	out = append(out, storeWord(asm.R10, stackCtx+ctxIndex, 0).WithSymbol("arrays"))
	for _, a := range []struct {
		member string
		array
	}{
		{"func_info", array{pieceFuncInfo, stackCtx + ctxTmp, stackHead + headInfos, 8}},
		{"linfo", array{pieceLineInfo, stackCtx + ctxTmp, stackHead + headLines, 16}},
		{"jited_linfo", array{pieceJITedLines, stackCtx + ctxTmp, stackHead + headLines, 8}},
	} {
		out = append(out, readFields(asm.R7,
			field{stackCtx + ctxTmp, l.At("bpf_prog_aux", a.member), 8})...)
		out = append(out, sendArray(a.array, "after_"+a.member)...)
	}
	types := array{pieceBTF, stackHead + headBTFData, stackHead + headBTFSize, 1}
	return append(out, sendArray(types, "after_btf")...)
}

// sendArray sends an array that is there and not empty. label is that of the next instruction.
func sendArray(a array, label string) asm.Instructions {
	out := asm.Instructions{
		asm.LoadMem(asm.R1, asm.R10, a.src, asm.DWord),
		asm.JEq.Imm(asm.R1, 0, label),
		asm.StoreMem(asm.R10, stackCtx+ctxSrc, asm.R1, asm.DWord),
		asm.LoadMem(asm.R1, asm.R10, a.count, asm.Word),
		asm.JEq.Imm(asm.R1, 0, label),
		asm.Mul.Imm(asm.R1, a.itemSize),
		asm.StoreMem(asm.R10, stackCtx+ctxLeft, asm.R1, asm.DWord),
		asm.StoreMem(asm.R10, stackCtx+ctxTotal, asm.R1, asm.DWord),
		storeWord(asm.R10, stackCtx+ctxOffset, 0),
		asm.StoreImm(asm.R10, stackCtx+ctxKind, a.kind, asm.Word),
	}
	out = append(out, loop(copyPiece, asm.Mov.Imm(asm.R1, maxPieces), asm.R10, stackCtx)...)
	return append(out, asm.Mov.Imm(asm.R0, 0).WithSymbol(label))
}

// pieceCallback sends the next piece of the context's array, and ends the loop with the last.
func pieceCallback(ring int) asm.Instructions {
	out := asm.Instructions{
		function(copyPiece, btf.StaticFunc, "i", "ctx"),
		asm.Mov.Reg(asm.R6, asm.R2),
	}
	out = append(out, reserve(ring, "piece_full")...)
	out = append(out, fillPiece()...)
	out = append(out, stepOn()...)
	out = append(out, submit()...)
	return append(out,
		asm.Mov.Imm(asm.R0, 0),
		asm.JNE.Imm(asm.R9, 0, "piece_done"), // R9 is the rest
		asm.Mov.Imm(asm.R0, 1),
		asm.Ja.Label("piece_done"),
		storeWord(asm.R6, ctxLost, 1).WithSymbol("piece_full"),
		asm.Mov.Imm(asm.R0, 1),
		asm.Return().WithSymbol("piece_done"))
}

// fillPiece fills the piece in R8 from the context in R6; R7 becomes its length.
func fillPiece() (out asm.Instructions) {
	for at := int16(0); at < ctxAux-ctxOffset; at += 8 { // offset, total, start, tag
		out = append(out, asm.LoadMem(asm.R1, asm.R6, ctxOffset+at, asm.DWord),
			asm.StoreMem(asm.R8, 16+at, asm.R1, asm.DWord))
	}
	return append(out,
		asm.LoadMem(asm.R1, asm.R6, ctxKind, asm.Word), asm.StoreMem(asm.R8, 0, asm.R1, asm.Word),
		asm.LoadMem(asm.R1, asm.R6, ctxID, asm.Word), asm.StoreMem(asm.R8, 4, asm.R1, asm.Word),
		asm.LoadMem(asm.R1, asm.R6, ctxIndex, asm.DWord), asm.StoreMem(asm.R8, 8, asm.R1, asm.Word),
		asm.LoadMem(asm.R7, asm.R6, ctxLeft, asm.DWord),
		asm.JLE.Imm(asm.R7, pieceData, "piece_last"),
		asm.Mov.Imm(asm.R7, pieceData),
		asm.StoreMem(asm.R8, 12, asm.R7, asm.Word).WithSymbol("piece_last"),
		asm.Mov.Reg(asm.R1, asm.R8), asm.Add.Imm(asm.R1, pieceHead),
		asm.Mov.Reg(asm.R2, asm.R7),
		asm.LoadMem(asm.R3, asm.R6, ctxSrc, asm.DWord),
		asm.FnProbeReadKernel.Call(),
		asm.JEq.Imm(asm.R0, 0, "piece_read"),
		storeWord(asm.R6, ctxLost, 1),
	)
}

// stepOn moves the context behind the R7 bytes that were read; R9 becomes the rest.
func stepOn() (out asm.Instructions) {
	for i, x := range []struct {
		at int16
		op asm.ALUOp
	}{{ctxSrc, asm.Add}, {ctxOffset, asm.Add}, {ctxLeft, asm.Sub}} {
		load := asm.LoadMem(asm.R9, asm.R6, x.at, asm.DWord)
		if i == 0 {
			load = load.WithSymbol("piece_read")
		}
		out = append(out, load, x.op.Reg(asm.R9, asm.R7))
		out = append(out, forget(asm.R6, x.at, asm.R9)...)
	}
	return out
}

// funcCallback sends the code of function i.
func funcCallback(l *sys.BTFLayout) asm.Instructions {
	out := asm.Instructions{
		function(copyFunc, btf.StaticFunc, "i", "ctx"),
		asm.Mov.Reg(asm.R7, asm.R6),
		asm.Mov.Reg(asm.R6, asm.R2),
	}
	out = append(out, forget(asm.R6, ctxIndex, asm.R7)...)
	out = append(out, asm.LoadMem(asm.R8, asm.R6, ctxAux, asm.DWord))
	out = append(out, readTo(asm.R6, ctxTmp, asm.R8, l.At("bpf_prog_aux", "func"), 8)...)
	out = append(out,
		asm.LoadMem(asm.R8, asm.R6, ctxTmp, asm.DWord),
		asm.LSh.Imm(asm.R7, 3), asm.Add.Reg(asm.R8, asm.R7))
	out = append(out, readTo(asm.R6, ctxTmp, asm.R8, 0, 8)...)
	out = append(out, asm.LoadMem(asm.R8, asm.R6, ctxTmp, asm.DWord),
		storeWord(asm.R6, ctxLeft, 0), storeWord(asm.R6, ctxOffset, 0))
	out = append(out, readTo(asm.R6, ctxLeft, asm.R8, l.At("bpf_prog", "jited_len"), 4)...)
	out = append(out, readTo(asm.R6, ctxStart, asm.R8, l.At("bpf_prog", "bpf_func"), 8)...)
	out = append(out, readTo(asm.R6, ctxTag, asm.R8, l.At("bpf_prog", "tag"), 8)...)
	out = append(out,
		asm.LoadMem(asm.R1, asm.R6, ctxStart, asm.DWord),
		asm.StoreMem(asm.R6, ctxSrc, asm.R1, asm.DWord),
		asm.LoadMem(asm.R1, asm.R6, ctxLeft, asm.DWord),
		asm.StoreMem(asm.R6, ctxTotal, asm.R1, asm.DWord))
	out = append(out, loop(copyPiece, asm.Mov.Imm(asm.R1, maxPieces), asm.R6, 0)...)
	return append(out, asm.Mov.Imm(asm.R0, 0), asm.Return())
}
