// Package disasm turns machine code into text: golang.org/x/arch behind one interface, for amd64,
// arm64 and loong64, as objdump and so `perf annotate` print it.
//
// A Decoder never stops early. Unknown code becomes ".byte 0x.." (on arm64 ".inst 0x…", on loong64
// ".word 0x…"), one unit at a time, so that the lengths of all instructions sum up to the length of
// the code.
package disasm

import (
	"debug/elf"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"symbolize/ingest/addr"
	"symbolize/ingest/machine"
)

// ErrMachine is returned for a machine without a disassembler.
var ErrMachine = errors.New("no disassembler for this machine")

// Syntax is the notation of amd64 instructions; the other machines have only one.
type Syntax uint8

// The syntaxes.
const (
	ATT   Syntax = iota // as objdump and perf print: source first, %rax, $1
	Intel               // destination first, rax, 1
)

// Syntaxes are the words for the syntaxes, in their order.
var Syntaxes = []string{ATT: "att", Intel: "intel"}

// ParseSyntax returns the syntax of a word.
func ParseSyntax(word string) (Syntax, error) {
	if i := slices.Index(Syntaxes, word); i >= 0 {
		return Syntax(i), nil
	}
	return 0, fmt.Errorf("syntax %q is not one of %s", word, strings.Join(Syntaxes, ", "))
}

// Inst is one instruction.
type Inst struct {
	Offset int    // in the code given to Decode, bytes
	Len    int    // bytes
	Text   string // a target in it is hexadecimal without 0x, as objdump prints it

	// Target is the target of a direct call or jump; valid if HasTarget.
	Target    addr.PC
	HasTarget bool
	// Data is the address that a PC-relative operand refers to; valid if HasData.
	Data    addr.PC
	HasData bool

	Call bool // direct or indirect
	Jump bool // direct or indirect, conditional or not
	Bad  bool // not decoded: Text is ".byte 0x..", ".inst 0x…" or ".word 0x…"

	targetLen int // of the target at the end of Text
}

// WithTarget returns Text with another text for the target, if it has one.
func (i *Inst) WithTarget(s string) string {
	if !i.HasTarget {
		return i.Text
	}
	return i.Text[:len(i.Text)-i.targetLen] + s
}

// setTarget completes the text of a direct call or jump.
func (i *Inst) setTarget(op string, pc addr.PC) {
	target := strconv.FormatUint(uint64(pc), 16)
	i.Target, i.HasTarget = pc, true
	i.targetLen = len(target)
	i.Text = op + target
}

// Decoder disassembles the code of one machine. It keeps no state between calls and is safe for
// concurrent use.
type Decoder interface {
	// Decode visits the instructions of code, which runs at pc, in order.
	Decode(code []byte, pc addr.PC) iter.Seq[Inst]
}

// Machines are the machines of New, named as by uname -m.
var Machines = []string{"x86_64", "aarch64", "loongarch64"}

// New returns the Decoder of a machine, named as uname -m does: one of Machines. The error wraps
// ErrMachine for others.
func New(name string, syntax Syntax) (Decoder, error) {
	if a, _ := machine.Named(name); a != nil {
		switch a.ELF {
		case elf.EM_X86_64:
			return amd64{syntax}, nil
		case elf.EM_AARCH64:
			return words(arm64), nil
		case elf.EM_LOONGARCH:
			return words(loong64), nil
		}
	}
	return nil, fmt.Errorf("%w: %q", ErrMachine, name)
}

// decodeAll splits code into instructions by one, which returns the first of the rest, at least one
// byte of it.
func decodeAll(code []byte, pc addr.PC, one func(code []byte, pc addr.PC) Inst) iter.Seq[Inst] {
	return func(yield func(Inst) bool) {
		for at := 0; at < len(code); {
			inst := one(code[at:], pc+addr.PC(at))
			inst.Offset = at
			at += inst.Len
			if !yield(inst) {
				return
			}
		}
	}
}

// badBytes is code that is no instruction, or an unknown one of that length.
func badBytes(code []byte) Inst {
	text := padOp(".byte")
	for i, b := range code {
		if i > 0 {
			text += ","
		}
		text += fmt.Sprintf("0x%02x", b)
	}
	return Inst{Len: len(code), Text: text, Bad: true}
}

// opColumn is the width that objdump gives to a mnemonic.
const opColumn = 6

// join puts mnemonic and operands together as objdump does.
func join(op, args string) string {
	if args == "" {
		return op
	}
	return padOp(op) + args
}

// padOp is a mnemonic with the space up to its operands. The column does not count prefixes before
// it.
func padOp(op string) string {
	n := len(op) - 1 - strings.LastIndexByte(op, ' ')
	if n >= opColumn {
		return op + " "
	}
	return op + "       "[:opColumn+1-n]
}
