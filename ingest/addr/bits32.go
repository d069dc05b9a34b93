//go:build 386 || arm || mips || mipsle

package addr

// The compiler's message for a system of 32 bits, on which an int cannot hold the sizes and offsets
// of files.
const _ int = "symbolize needs a 64-bit system"
