// Package filter puts names into text: it finds the places in code that kernels and
// tracing tools print, and rewrites them. All other bytes stay as they are.
//
// # Forms
//
// These are the places that are recognised. OFF and LEN are hexadecimal, ID is a build
// ID in hexadecimal digits, [] are brackets of the text.
//
//	SYM+0xOFF/0xLEN [MOD ID]       kernel stack traces with CONFIG_STACKTRACE_BUILD_ID
//	SYM+0xOFF [MOD ID]             the same, cut by other tools
//	MOD+0xOFF [MOD ID]             an offset in a module that has no symbol there
//	SYM+0xOFF/0xLEN                of the kernel itself, where its build ID is known
//	bpf_prog_TAG_NAME+0xOFF/0xLEN  BPF programs in kernel stack traces
//	bpf_prog_TAG_NAME+0xOFF        the same by perf script, bcc, bpftrace
//	bpf_prog_TAG                   a BPF program without a name
//	ID 0xOFF                       bpftrace's ustack(build_id)
//	ID +OFF, [N]ID +OFF            Inspektor Gadget with --collect-build-id
//	ID+0xOFF                       offsets of BPF stack maps as scripts join them
//	buildid:ID+0xOFF               systing
//	[buildid:ID+0xOFF]             unnamed frames of symbolize itself
//	unknown ([buildid:ID]) <0xOFF> systing
//	[buildid:ID] 0xOFF             and +0xOFF and <0xOFF> behind it
//	(PATH+0xOFF) (BuildId: ID)     LLVM's sanitizers
//	{{{pc:ADDR}}}, {{{bt:N:ADDR}}} LLVM's symbolizer markup, by its module and mmap elements
//
// Of crash reports, where FILE is a name or a path:
//
//	#N pc ADDR FILE (BuildId: ID)     Android's libunwindstack: ELF address, exact
//	#N 0xPC SYM (FILE + 0xOFF)        systemd-coredump: from the start of the module in memory;
//	                                  frame 0 is exact; build IDs by the lines before
//	Module FILE with build-id ID      such a line; "Found module FILE with build-id: ID"
//	FILE(+0xOFF) [0xPC]               glibc's backtrace_symbols: ELF address, return address
//	FILE() [0xPC]                     the same of a file at its own address: PC is the ELF address
//	FILE(+0xOFF)[0xPC], FILE[0xPC]    the same by backtrace_symbols_fd; of the latter a whole line
//	FILE(SYM+0xOFF) [0xPC]            the same, from a symbol
//	ip PC … in FILE[OFF,START+SIZE]   the kernel, of a fatal signal: file offset, exact
//	#N … (FILE+0xOFF)                 sanitizers without build ID: ELF address, exact
//	SYM+0xOFF/0xLEN                   of a kernel whose head line has a release and no build ID:
//	                                  FILE is vmlinux-RELEASE
//	#N 0xPC in ?? () [from FILE]      gdb: exact for frame 0 and behind "<signal handler called>"
//	N: 0xPC - <unknown>               Rust with RUST_BACKTRACE=full: return addresses
//	[signal SIG… pc=0xPC]             Go: exact
//	PC=0xPC m=N sigcode=N             Go, a signal in C code: exact
//	pc=0xPC below "non-Go function"   Go: either
//
// The last five have addresses of a process (process.go). Where lines of /proc/PID/maps, or of
// gdb's `info proc mappings`, stand before them in the text, an address becomes a file and a file
// offset. Mappings that come behind addresses are left out: text is read as it comes, and what
// follows them may be of another process. Without any it is that of the one program in
// Options.Programs that has code there and is linked to fixed addresses. Frames that have a name in
// the text are not touched: Go's +0xOFF is of a line that has its source.
//
// Those without a build ID are looked up only where Options.Files knows exactly one file of
// that name. These stay and are counted, since nothing leads from the address to a place in a
// file: "in FILE[START+SIZE]" of older kernels, an address outside the mappings or of a library
// without them; and Android's frames without a build ID, whose addresses may have been moved back
// or not.
//
// Offsets are file offsets, as BPF stack maps have them; those of the sanitizers and of
// the markup are ELF virtual addresses. An undecorated ID has 32 or 40 digits: shorter
// ones look like addresses, and are taken only where the store knows them.
//
// A place without a name is replaced by its function, NAME+0xOFF; one with a name keeps
// its text. Both are followed by where that is in the source, in parentheses: the calls
// that were inlined there, innermost first, then the line in the function itself:
//
//	parse+0x12 (peek at lex.h:3, parse.c:97)
//
// # Return addresses
//
// A return address is looked up one byte before. These are taken for exact addresses:
// in kernel stack traces those after RIP:, EIP:, "pc :", "epc :", "PC is at", NIP and
// WARNING:; of the other forms the first one of a run of frames, where a run is frames on
// one line or on lines that follow one another, bare addresses of such lines included, or
// the one numbered [0]; all of the sanitizers, which have moved their addresses back
// themselves; {{{pc}}} and frame 0 of {{{bt}}} unless these are marked otherwise; and those that
// no call can precede by the symbols around them (resolve.Exact), as the code that a signal handler
// returns to; and the frame behind such code. Everything else is taken for a return address. The
// first byte of a function behind a frame without a name, which may be such code, is ambiguous.
package filter
