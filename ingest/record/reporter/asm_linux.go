package reporter

import (
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
)

// Instructions that the assembler of cilium/ebpf lacks.

// readTo copies size bytes of the kernel at base+off to dst+at. It changes R0 to R5.
func readTo(dst asm.Register, at int32, base asm.Register, off int32, size int32) asm.Instructions {
	return asm.Instructions{
		asm.Mov.Reg(asm.R1, dst), asm.Add.Imm(asm.R1, at),
		asm.Mov.Imm(asm.R2, size),
		asm.Mov.Reg(asm.R3, base), asm.Add.Imm(asm.R3, off),
		asm.FnProbeReadKernel.Call(),
	}
}

// storeWord stores a constant in 8 bytes, which asm.StoreImm does not do.
func storeWord(dst asm.Register, at int16, value int64) asm.Instruction {
	return asm.Instruction{OpCode: asm.StoreImmOp(asm.DWord), Dst: dst, Offset: at, Constant: value}
}

// forget stores a register in two halves, the second at the odd place, by way of R1:
// then the verifier knows nothing of the value. It would else look at each round of a
// loop apart, because each has another.
func forget(dst asm.Register, at int16, src asm.Register) asm.Instructions {
	halves := asm.Instructions{asm.StoreMem(dst, at, asm.R1, asm.Word), asm.RSh.Imm(asm.R1, 32),
		asm.StoreMem(dst, at+4, asm.R1, asm.Word)}
	if bigEndian {
		halves = asm.Instructions{asm.Mov.Reg(asm.R2, asm.R1), asm.RSh.Imm(asm.R2, 32),
			asm.StoreMem(dst, at, asm.R2, asm.Word), asm.StoreMem(dst, at+4, asm.R1, asm.Word)}
	}
	return append(asm.Instructions{asm.Mov.Reg(asm.R1, src)}, halves...)
}

// loop calls a callback up to n times, a number or a register, with the context at
// ctx+at.
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

// function marks the beginning of a function; the verifier wants the types of those
// that are called back.
func function(name string, linkage btf.FuncLinkage, params ...string) asm.Instruction {
	word := &btf.Int{Name: "unsigned long", Size: 8}
	proto := &btf.FuncProto{Return: &btf.Int{Name: "int", Size: 4, Encoding: btf.Signed}}
	for _, p := range params {
		proto.Params = append(proto.Params, btf.FuncParam{Name: p, Type: word})
	}
	first := asm.Mov.Reg(asm.R6, asm.R1).WithSymbol(name)
	return btf.WithFuncMetadata(first, &btf.Func{Name: name, Type: proto, Linkage: linkage})
}

// field is a field of a structure of the kernel and where it goes.
type field struct {
	to, from, size int32
}

func readFields(base asm.Register, fields ...field) (out asm.Instructions) {
	for _, f := range fields {
		out = append(out, readTo(asm.R10, f.to, base, f.from, f.size)...)
	}
	return out
}
