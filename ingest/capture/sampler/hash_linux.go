package sampler

import "github.com/cilium/ebpf/asm"

// hash computes the hash of the R8 bytes at scratchFrames, of which there are at most
// limit: R3 and R4 are its halves. It uses R0 to R5 and R9.
//
//	for (i = 0; i < R8; i += 8) mix(*p++); mix(R8)
func (a *assembler) hash(limit int32) {
	again, done := a.label("word"), a.label("hashed")
	a.add(asm.LoadImm(asm.R3, int64(hashSeed), asm.DWord), asm.Mov.Imm(asm.R4, 0),
		loadFactor(), asm.Mov.Imm(asm.R0, 0))
	a.add(pointer(asm.R1, regScratch, scratchFrames)...)
	a.here(again)
	a.add(asm.JGE.Reg(asm.R0, asm.R8, done), asm.LoadMem(asm.R2, asm.R1, 0, asm.DWord))
	a.mix()
	a.add(asm.Add.Imm(asm.R1, 8), asm.Add.Imm(asm.R0, 8), asm.JLT.Imm(asm.R0, limit, again))
	a.here(done)
	a.add(asm.Mov.Reg(asm.R2, asm.R8))
	a.mix()
}

func loadFactor() asm.Instruction {
	factor := uint64(hashFactor)
	return asm.LoadImm(asm.R9, int64(factor), asm.DWord)
}

// mix takes the word in R2 into R3 and R4.
func (a *assembler) mix() {
	a.add(
		asm.Xor.Reg(asm.R3, asm.R2), asm.Mul.Reg(asm.R3, asm.R9),
		asm.Mov.Reg(asm.R5, asm.R3), asm.RSh.Imm(asm.R5, foldFirst), asm.Xor.Reg(asm.R3, asm.R5),
		asm.Add.Reg(asm.R4, asm.R2), asm.Mul.Reg(asm.R4, asm.R9),
		asm.Mov.Reg(asm.R5, asm.R4), asm.RSh.Imm(asm.R5, foldSecond), asm.Xor.Reg(asm.R4, asm.R5),
	)
}
