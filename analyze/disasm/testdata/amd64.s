	.text
f:	endbr64
	endbr32
	call f
	call *%rax
	call *0x10(%rip)
	jmp f
	jmp *%rax
	notrack jmp *%rax
	bnd jmp *0x8(%rip)
	je f
	jrcxz f
	loop f
	xbegin f
	ret
	lretl $0x8
	repz ret
	int3
	int1
	hlt
	ud2
	leave
	nop
	xchg %ax,%ax
	.byte 0x66,0x66,0x90
	nopl 0x0(%rax)
	nopl 0x0(%rax,%rax,1)
	cs nopw 0x0(%rax,%rax,1)
	.byte 0x66,0x66,0x2e,0x0f,0x1f,0x84,0,0,0,0,0
	pause
	push %rbp
	push $-1
	push (%rax)
	pop 0x8(%rbx)
	mov %rsp,%rbp
	mov $-1,%rax
	movabs $0x7fffffffffff,%rcx
	movabs 0x1122334455667788,%al
	movl $-1,0x0(%r13)
	movq $0,-0x498(%rbp)
	movb $-1,(%rdi,%r8)
	movw $-2,%ax
	cmp $-0x74,%edi
	and $-0x40,%rax
	mov %fs:0x28,%rax
	mov %fs:-8,%r14
	mov %fs:0,%rax
	mov %gs:0x1f780(%rip),%rax
	incl %gs:0x10(%rax)
	lea 0x0(,%rcx,8),%rdx
	lea 0x1234(%rip),%rdi
	lea (%rsi,%rdi,4),%eax
	addr32 mov (%eax),%eax
	movslq %esi,%rdi
	cltq
	cqto
	cltd
	cwtl
	cbtw
	movzbl (%rdi,%rdx),%eax
	movsbq 0x0(%r13),%rax
	lock subl $1,0x18(%r12)
	lock cmpxchg %rbx,(%rdi)
	lock xadd %rax,0x8(%rdi)
	xchg %rax,(%rdi)
	rep stos %al,%es:(%rdi)
	rep movsq %ds:(%rsi),%es:(%rdi)
	repz cmpsb %es:(%rdi),%ds:(%rsi)
	repnz scas %es:(%rdi),%al
	shl %eax
	shl $0x3,%rdx
	shr %cl,%r9
	shlx %ecx,%r10d,%ecx
	sarx %eax,(%r8),%eax
	shrxq %rsi,0x8(%rax),%rax
	rorx $0x5,%rdi,%rcx
	bzhi %rdx,%rcx,%rcx
	imul $-3,%rax,%rdx
	div %rsi
	neg %rdx
	bswap %rax
	movdqa -0x10(%rdi,%rdx),%xmm0
	palignr $0xf,-0x10(%rdi,%rdx),%xmm0
	pclmulqdq $0x11,%xmm1,%xmm2
	cvtsi2sd %rax,%xmm0
	ucomisd %xmm1,%xmm0
	fld %st(0)
	fstp %st(0)
	fadd %st(0),%st
	fldt 0x10(%rsp)
	vzeroupper
	vzeroall
	vmovdqu 0x20(%rsi,%rcx),%ymm3
	vmovdqa 0x429df(%rip),%ymm12
	vpcmpeqb 0xfc0(%rax),%zmm16,%k0
	vpcmpltub %xmm30,%xmm28,%k6
	vpaddb %xmm1,%xmm31,%xmm1{%k6}
	vpminud 0x1c0(%rax),%zmm19,%zmm20
	vmovdqu64 (%rax),%zmm1{%k1}{z}
	vpclmulhqhqdq %zmm0,%zmm1,%zmm5
	syscall
	sysretq
	iretq
	swapgs
	cpuid
	rdtscp
	rdpid %rax
	clac
	stac
	adcx %rsi,%rbx
	adcx (%rdi),%eax
	adox 0x8(%r9,%r10,4),%r12
	cldemote 0x40(%rax)
	clwb (%rsi)
	clflushopt 0x0(%rip)
	xgetbv
	xsetbv
	xend
	xtest
	serialize
	rdpkru
	wrpkru
	rdsspq %rax
	rdsspd %ecx
	incsspq %r11
	rstorssp (%rdi)
	saveprevssp
	setssbsy
	clrssbsy (%rax)
	wrssq %rax,(%rdi)
	wrussq %rax,(%rdi)
	ptwriteq %rax
	umonitor %rax
	umwait %ecx
	tpause %ecx
	movdiri %rax,(%rdi)
	movdir64b (%rsi),%rdi
	enqcmd (%rsi),%rdi
	enqcmds (%rsi),%rdi
	invpcid (%rdi),%rax
	invept (%rdi),%rax
	invvpid (%rdi),%rax
	xsavec64 (%rdi)
	xsaves (%rdi)
	xrstors64 (%rdi)
	vmcall
	vmread %rsi,(%rbx)
	vmwrite 0x6a(%rdi),%rbx
	ldtilecfg (%rax)
	sttilecfg 0x40(%rsp)
	tilerelease
	tilezero %tmm3
	tileloadd (%rax,%rbx,1),%tmm1
	tileloaddt1 0x10(%r8,%r9,2),%tmm2
	tilestored %tmm5,(%rax,%rbx,1)
	tdpbssd %tmm1,%tmm2,%tmm3
	tdpbf16ps %tmm4,%tmm5,%tmm6
