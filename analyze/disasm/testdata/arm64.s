f:	bti c
	paciasp
	stp x29, x30, [sp, #-32]!
	mov x29, sp
	mov w8, #1
	movk x9, #0x1234, lsl #16
	adrp x0, f
	add x0, x0, #0x10
	ldr x1, [x0, #8]
	ldr x2, [x0, x1, lsl #3]
	ldrb w3, [x0], #1
	str w3, [x1, #4]!
	ldaxr x4, [x5]
	stlxr w6, x4, [x5]
	cas x1, x2, [x3]
	ldadd x1, x2, [x3]
	swpal w1, w2, [x3]
	cbz x0, f
	tbnz w1, #3, f
	b.ne f
	b f
	bl f
	blr x8
	br x9
	cmp x0, #1
	csel x0, x1, x2, eq
	cset w0, ne
	mul x0, x1, x2
	madd x0, x1, x2, x3
	udiv x0, x1, x2
	lsl x0, x1, #3
	ubfx x0, x1, #3, #5
	sxtw x0, w1
	mrs x0, sp_el0
	msr daifset, #2
	dmb ish
	dsb sy
	isb
	nop
	yield
	hint #34
	svc #0
	brk #0x800
	fadd d0, d1, d2
	fmov x0, d1
	ldr q0, [x1]
	add v0.4s, v1.4s, v2.4s
	ldp x29, x30, [sp], #32
	autiasp
	ret
	retaa
	eret
	dc zva, x0
	prfm pldl1keep, [x0]
	.inst 0x04a0c000
