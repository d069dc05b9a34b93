package reporter

import (
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"

	"symbolize/ingest/object/bpf"
	"symbolize/ingest/record/sys"
)

// The program that copies others inside the kernel. It runs at the entry of perf_event_bpf_event,
// which bpf(2) calls when a program is complete and before its loader gets the descriptor. If the
// kernel cannot attach there, it runs at the exit of bpf(2), in the loader's context, before the
// loader can use the descriptor. In both cases nobody can unload the program yet. The data is sent
// to a ring in pieces of one size, because the verifier requires constant sizes:
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
	maxPieces = bpf.MaxArray / pieceData // of one array
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

// Layout of the program's stack, from R10.
const (
	stackCtx  = -96  // shared by the callbacks
	stackHead = -256 // data of pieceProgram
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
	headFuncs    = 44 // 0: one function, without an entry
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

// copyProgram returns the program's instructions: find, which puts the address of the loaded
// program into R6, and the instructions that copy it.
func copyProgram(l *sys.BTFLayout, ring int, find asm.Instructions) (asm.Instructions, error) {
	out := append(copyMain(l, ring, find), pieceCallback(ring)...)
	out = append(out, funcCallback(l)...)
	return out, l.Err
}

// copyMain finds the program and sends it.
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

// readHead fills in the head. R6 is the program; it sets R7 to the program's aux.
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

// How the copying program finds the loaded program: its address is put into R6.

// atEntry finds the program in the arguments of perf_event_bpf_event: program, event (1: loaded),
// flags.
func atEntry() asm.Instructions {
	return asm.Instructions{
		asm.LoadMem(asm.R2, asm.R6, 8, asm.DWord),
		asm.JNE.Imm(asm.R2, 1, "done"),
		asm.LoadMem(asm.R6, asm.R6, 0, asm.DWord),
	}
}

// maxFD limits the descriptors that are looked up (sysctl fs.nr_open).
const maxFD = 1 << 30

// atExit finds the program at the exit of a system call, and skips all calls but loads. The result
// is a descriptor: the task's table has its file, which belongs to a BPF program if its release
// function is the one at release.
func atExit(l *sys.BTFLayout, arch string, release uint64) asm.Instructions {
	const cmdProgLoad = 5
	x := systemOf(l, arch)
	tmp := func(base asm.Register, off, size int32) asm.Instructions {
		out := append(asm.Instructions{storeWord(asm.R10, stackCtx+ctxTmp, 0)},
			readTo(asm.R10, stackCtx+ctxTmp, base, off, size)...)
		return append(out, asm.LoadMem(asm.R1, asm.R10, stackCtx+ctxTmp, asm.DWord))
	}
	out := asm.Instructions{
		asm.LoadMem(asm.R7, asm.R6, 8, asm.DWord), // result
		asm.JSLT.Imm(asm.R7, 0, "done"),
		asm.JGT.Imm(asm.R7, maxFD, "done"),
		asm.LoadMem(asm.R9, asm.R6, 0, asm.DWord), // registers
	}
	out = append(out, tmp(asm.R9, l.At("pt_regs", x.Number), x.NumberSize)...)
	out = append(out, asm.JNE.Imm(asm.R1, x.BPF, "done"))
	out = append(out, tmp(asm.R9, l.At("pt_regs", x.First), 4)...)
	out = append(out, asm.JNE.Imm(asm.R1, cmdProgLoad, "done"))
	out = append(out, asm.FnGetCurrentTask.Call(), asm.Mov.Reg(asm.R9, asm.R0))
	for _, step := range [][2]string{{"task_struct", "files"}, {"files_struct", "fdt"},
		{"fdtable", "fd"}} {
		out = append(out, tmp(asm.R9, l.At(step[0], step[1]), 8)...)
		out = append(out, asm.Mov.Reg(asm.R9, asm.R1))
	}
	out = append(out, asm.LSh.Imm(asm.R7, 3), asm.Add.Reg(asm.R9, asm.R7))
	out = append(out, tmp(asm.R9, 0, 8)...)
	out = append(out, asm.Mov.Reg(asm.R9, asm.R1))
	out = append(out, tmp(asm.R9, l.At("file", "f_op"), 8)...)
	out = append(out, asm.Mov.Reg(asm.R8, asm.R1))
	out = append(out, tmp(asm.R8, l.At("file_operations", "release"), 8)...)
	out = append(out, asm.LoadImm(asm.R2, int64(release), asm.DWord),
		asm.JNE.Reg(asm.R1, asm.R2, "done"))
	out = append(out, tmp(asm.R9, l.At("file", "private_data"), 8)...)
	return append(out, asm.Mov.Reg(asm.R6, asm.R1))
}

// How the copier sends data in pieces.

// reserve reserves a piece, in R0 and R8, and jumps to full if the ring is full.
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

// sendHead sends the first piece of a copy; if the ring is full there is no copy.
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

// array is an array to send in pieces: its address in the stack and the number of its items.
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

// sendArray sends an array unless it is absent or empty. label is the label of the next
// instruction.
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

// pieceCallback sends the next piece of the context's array. The last piece ends the loop.
func pieceCallback(ring int) asm.Instructions {
	out := asm.Instructions{
		function(copyPiece, btf.StaticFunc, "i", "ctx"),
		asm.Mov.Reg(asm.R6, asm.R2),
	}
	out = append(out, reserve(ring, "piece_full")...)
	out = append(out, fillPiece()...)
	out = append(out, advance()...)
	out = append(out, submit()...)
	return append(out,
		asm.Mov.Imm(asm.R0, 0),
		asm.JNE.Imm(asm.R9, 0, "piece_done"), // R9 is the remaining length
		asm.Mov.Imm(asm.R0, 1),
		asm.Ja.Label("piece_done"),
		storeWord(asm.R6, ctxLost, 1).WithSymbol("piece_full"),
		asm.Mov.Imm(asm.R0, 1),
		asm.Return().WithSymbol("piece_done"))
}

// fillPiece fills the piece in R8 from the context in R6. It sets R7 to its length.
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

// advance moves the context past the R7 bytes that were read. It sets R9 to the remaining length.
func advance() (out asm.Instructions) {
	for i, x := range []struct {
		at int16
		op asm.ALUOp
	}{{ctxSrc, asm.Add}, {ctxOffset, asm.Add}, {ctxLeft, asm.Sub}} {
		load := asm.LoadMem(asm.R9, asm.R6, x.at, asm.DWord)
		if i == 0 {
			load = load.WithSymbol("piece_read")
		}
		out = append(out, load, x.op.Reg(asm.R9, asm.R7))
		out = append(out, hideValue(asm.R6, x.at, asm.R9)...)
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
	out = append(out, hideValue(asm.R6, ctxIndex, asm.R7)...)
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

// Instructions that the assembler of cilium/ebpf lacks.

// readTo copies size bytes of kernel memory at base+off to dst+at. It clobbers R0 to R5.
func readTo(dst asm.Register, at int32, base asm.Register, off int32, size int32) asm.Instructions {
	return asm.Instructions{
		asm.Mov.Reg(asm.R1, dst), asm.Add.Imm(asm.R1, at),
		asm.Mov.Imm(asm.R2, size),
		asm.Mov.Reg(asm.R3, base), asm.Add.Imm(asm.R3, off),
		asm.FnProbeReadKernel.Call(),
	}
}

// storeWord stores a constant in 8 bytes, which asm.StoreImm cannot do.
func storeWord(dst asm.Register, at int16, value int64) asm.Instruction {
	return asm.Instruction{OpCode: asm.StoreImmOp(asm.DWord), Dst: dst, Offset: at, Constant: value}
}

// hideValue stores a register in two halves, the second at an odd offset, through R1. This hides
// the value from the verifier, which would otherwise check each iteration of a loop separately.
func hideValue(dst asm.Register, at int16, src asm.Register) asm.Instructions {
	halves := asm.Instructions{asm.StoreMem(dst, at, asm.R1, asm.Word), asm.RSh.Imm(asm.R1, 32),
		asm.StoreMem(dst, at+4, asm.R1, asm.Word)}
	if bigEndian {
		halves = asm.Instructions{asm.Mov.Reg(asm.R2, asm.R1), asm.RSh.Imm(asm.R2, 32),
			asm.StoreMem(dst, at, asm.R2, asm.Word), asm.StoreMem(dst, at+4, asm.R1, asm.Word)}
	}
	return append(asm.Instructions{asm.Mov.Reg(asm.R1, src)}, halves...)
}

// loop calls a callback up to n times (a number or a register) with the context at ctx+at.
func loop(callback string, n asm.Instruction, ctx asm.Register, at int32) asm.Instructions {
	return asm.Instructions{
		n,
		asm.Instruction{OpCode: asm.LoadImmOp(asm.DWord), Dst: asm.R2, Src: asm.PseudoFunc,
			Constant: -1}.WithReference(callback),
		asm.Mov.Reg(asm.R3, ctx), asm.Add.Imm(asm.R3, at),
		asm.Mov.Imm(asm.R4, 0),
		asm.FnLoop.Call(),
	}
}

// function marks the start of a function; the verifier needs the types of callbacks.
func function(name string, linkage btf.FuncLinkage, params ...string) asm.Instruction {
	word := &btf.Int{Name: "unsigned long", Size: 8}
	proto := &btf.FuncProto{Return: &btf.Int{Name: "int", Size: 4, Encoding: btf.Signed}}
	for _, p := range params {
		proto.Params = append(proto.Params, btf.FuncParam{Name: p, Type: word})
	}
	first := asm.Mov.Reg(asm.R6, asm.R1).WithSymbol(name)
	return btf.WithFuncMetadata(first, &btf.Func{Name: name, Type: proto, Linkage: linkage})
}

// field is a field of a kernel structure and its destination.
type field struct {
	to, from, size int32
}

func readFields(base asm.Register, fields ...field) (out asm.Instructions) {
	for _, f := range fields {
		out = append(out, readTo(asm.R10, f.to, base, f.from, f.size)...)
	}
	return out
}
