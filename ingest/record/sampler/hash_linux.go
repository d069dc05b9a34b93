package sampler

import "github.com/cilium/ebpf/asm"

// hash computes the hash of the R8 bytes at scratchFrames, at most limit: R3 and R4 are its
// halves. It is another one in every Part. With far it notes at scratchFar whether a word is
// an address outside of Options.Steady. It uses R0 to R5 and R9.
//
//	for (left = R8; left >= 8; left -= 8) mix(*p++); mix(R8)
func (a *assembler) hash(limit int32, far bool) {
	again, done := a.label("word"), a.label("hashed")
	a.startHash()
	a.add(asm.LoadMem(asm.R4, regScratch, scratchKey+keyPart, asm.Word))
	a.overFrames(limit, done)
	a.here(again)
	a.add(asm.JLT.Imm(asm.R0, 8, done), asm.LoadMem(asm.R2, asm.R1, 0, asm.DWord))
	if far {
		steady := a.label("steady")
		a.add(asm.LoadImm(asm.R5, int64(-a.steady.Start), asm.DWord), asm.Add.Reg(asm.R5, asm.R2),
			asm.JLT.Imm(asm.R5, int32(a.steady.size()), steady),
			asm.StoreImm(regScratch, scratchFar, 1, asm.Word))
		a.here(steady)
	}
	a.mix()
	a.add(asm.Add.Imm(asm.R1, 8), asm.Sub.Imm(asm.R0, 8), asm.Ja.Label(again))
	a.here(done)
	a.add(asm.Mov.Reg(asm.R2, asm.R8))
	a.mix()
}

// overFrames begins a loop over the R8 bytes at scratchFrames: R1 points at the next word, R0
// is the number of bytes left. The number comes out of memory, so that the verifier of the
// kernel does not see in R8 how often the loop was run: else it would check all that follows
// anew for every length.
func (a *assembler) overFrames(limit int32, none string) {
	a.add(asm.StoreMem(regScratch, scratchRecord+recordLength, asm.R8, asm.Word),
		asm.LoadMem(asm.R0, regScratch, scratchRecord+recordLength, asm.Word),
		asm.JGT.Imm(asm.R0, limit, none))
	a.add(pointer(asm.R1, regScratch, scratchFrames)...)
}

// startHash prepares R3, R4 and R9 for mix.
func (a *assembler) startHash() {
	factor := uint64(hashFactor)
	a.add(asm.LoadImm(asm.R3, int64(hashSeed), asm.DWord), asm.Mov.Imm(asm.R4, 0),
		asm.LoadImm(asm.R9, int64(factor), asm.DWord))
}

// timeFar writes the time into the key if the kernel's stack is far.
func (a *assembler) timeFar() {
	near := a.label("near")
	a.add(asm.LoadMem(asm.R1, regScratch, scratchFar, asm.DWord), asm.JEq.Imm(asm.R1, 0, near),
		asm.FnKtimeGetNs.Call(), asm.StoreMem(regScratch, scratchKey+keyTime, asm.R0, asm.DWord))
	a.here(near)
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
