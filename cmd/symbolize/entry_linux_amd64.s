#include "textflag.h"

// entry is where the kernel starts the program that `make build` makes (-ldflags=-E=entry). With a
// small address space (ulimit -v) Go's runtime cannot reserve its tables and ends with pages of
// messages before any code in Go runs: then entry prints one line in their place.
TEXT entry(SB), NOSPLIT|NOFRAME|TOPFRAME, $0
	SUBQ $16, SP   // struct rlimit
	MOVQ $97, AX   // getrlimit
	MOVQ $9, DI    // RLIMIT_AS
	MOVQ SP, SI
	SYSCALL
	MOVQ 0(SP), BX // the soft limit, bytes
	ADDQ $16, SP
	TESTQ AX, AX
	JNE  run
	MOVQ $1536000000, CX
	CMPQ BX, CX
	JCC  run
	MOVQ $1, AX    // write
	MOVQ $2, DI
	LEAQ tooSmall<>(SB), SI
	MOVQ $107, DX
	SYSCALL
	MOVQ $231, AX  // exit_group
	MOVQ $1, DI
	SYSCALL

run:
	JMP _rt0_amd64_linux(SB)

DATA tooSmall<>+0(SB)/8, $"symboliz"
DATA tooSmall<>+8(SB)/8, $"e: error"
DATA tooSmall<>+16(SB)/8, $": the ad"
DATA tooSmall<>+24(SB)/8, $"dress sp"
DATA tooSmall<>+32(SB)/8, $"ace is l"
DATA tooSmall<>+40(SB)/8, $"imited ("
DATA tooSmall<>+48(SB)/8, $"ulimit -"
DATA tooSmall<>+56(SB)/8, $"v) to le"
DATA tooSmall<>+64(SB)/8, $"ss than "
DATA tooSmall<>+72(SB)/8, $"the 1.5 "
DATA tooSmall<>+80(SB)/8, $"GB that "
DATA tooSmall<>+88(SB)/8, $"Go's run"
DATA tooSmall<>+96(SB)/8, $"time nee"
DATA tooSmall<>+104(SB)/3, $"ds\n"
GLOBL tooSmall<>(SB), RODATA, $107
