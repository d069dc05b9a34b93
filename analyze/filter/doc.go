// Package filter adds names to text: it finds the places in code that kernels and tracing tools
// print, and rewrites them. All other bytes stay as they are.
//
// # Forms
//
// OFF and LEN are hexadecimal, ID is a build ID in hexadecimal digits, [] are brackets of the text.
//
//	SYM+0xOFF/0xLEN [MOD ID]       kernel stack traces with CONFIG_STACKTRACE_BUILD_ID
//	SYM+0xOFF [MOD ID]             the same, cut by other tools
//	MOD+0xOFF [MOD ID]             an offset in a module without a symbol there
//	SYM+0xOFF/0xLEN                of the kernel itself, if its build ID is known
//	bpf_prog_TAG_NAME+0xOFF/0xLEN  BPF programs in kernel stack traces
//	bpf_prog_TAG_NAME+0xOFF        the same by perf script, bcc, bpftrace
//	bpf_prog_TAG                   a BPF program without a name
//	ID 0xOFF                       bpftrace's ustack(build_id)
//	ID +OFF, [N]ID +OFF            Inspektor Gadget with --collect-build-id
//	ID+0xOFF                       offsets of BPF stack maps as scripts join them
//	buildid:ID+0xOFF               systing
//	[buildid:ID+0xOFF]             unnamed frames of symbolize itself
//	unknown ([buildid:ID]) <0xOFF> systing
//	[buildid:ID] 0xOFF             also +0xOFF and <0xOFF>
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
//	N  FILE + 0xOFF                   Breakpad's minidump_stackwalk, a whole line: from the start of
//	                                  the module in memory; frame 0 is exact
//	THREAD|N|FILE||||0xOFF            its -m; build IDs by the lines "Module|…" before
//	C  [FILE+0xOFF], V  [FILE+0xOFF]  the JVM: from the start of the module in memory
//	PC [unknown] (FILE+0xOFF)         perf script with dsoff: file offset
//	#N 0xPC in ?? () [from FILE]      gdb: exact for frame 0 and after "<signal handler called>"
//	PC [unknown] (FILE)               perf script: the first is exact
//	N: 0xPC - <unknown>               Rust with RUST_BACKTRACE=full: return addresses
//	[signal SIG… pc=0xPC]             Go: exact
//	PC=0xPC m=N sigcode=N             Go, a signal in C code: exact
//	pc=0xPC below "non-Go function"   Go: either
//
// The last six have addresses of a process (process.go). Lines of /proc/PID/maps, or of gdb's
// `info proc mappings`, that precede them map an address to a file and a file offset. Mappings
// after the addresses are not used: text is read in order, and the next addresses may be of
// another process. Without mappings an address belongs to the program in Options.Programs that is
// linked to fixed addresses, if exactly one has code there. Frames with a name in the text stay:
// Go prints their source.
//
// Places without a build ID are looked up if Options.Files knows exactly one file of that name.
// These are counted and stay, because their address has no known place in a file: "in
// FILE[START+SIZE]" of older kernels, addresses outside the mappings, addresses of libraries
// without mappings, and Android's frames without a build ID, with addresses that may be moved back
// already.
//
// Offsets are file offsets, as in BPF stack maps; sanitizers and the markup have ELF virtual
// addresses. A bare ID has 32 or 40 digits: shorter ones look like addresses, and are used only if
// the store has them.
//
// A place without a name is replaced by its function, NAME+0xOFF; a place with a name keeps its
// text. The source follows in parentheses: inlined calls, innermost first, then the line in the
// function:
//
//	parse+0x12 (peek at lex.h:3, parse.c:97)
//
// # Return addresses
//
// A return address is looked up one byte before. Exact addresses are:
//
//   - in kernel stack traces, addresses after RIP:, EIP:, "pc :", "epc :", "PC is at", NIP, WARNING:;
//   - in other forms, the first address of a run of frames, or the one numbered [0]. A run is frames
//     on one line or on successive lines, bare addresses included;
//   - all addresses of the sanitizers, which move return addresses back themselves;
//   - {{{pc}}} and frame 0 of {{{bt}}} unless marked otherwise;
//   - addresses that no call can precede by the symbols around them (resolve.Exact), such as code that
//     a signal handler returns to, and the frame after such code.
//
// All others are return addresses. The first byte of a function after a frame without a name, which
// may be a signal's trampoline, is ambiguous.
package filter
