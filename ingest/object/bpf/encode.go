package bpf

import "symbolize/ingest/decode"

// RawProgram is a program in the format of the bpf system call.
type RawProgram struct {
	Info      []byte            // struct bpf_prog_info as the kernel filled it
	Arrays    [NumArrays][]byte // by the Array constants; nil: absent, or hidden
	BigEndian bool              // byte order of the host
}

// InfoLen is the size of struct bpf_prog_info since Linux 5.16, as perf records it: shorter ones of
// older recorders are extended with zeros, the rest of longer ones is ignored. The others are the
// offsets of some of its fields.
const (
	InfoLen   = 232
	InfoIDAt  = 4
	InfoTagAt = 8
	InfoBTFAt = 128
)

// InsnSize is the size of a BPF instruction, bytes; ld_imm64 has two.
const InsnSize = 8

// MaxArray bounds an array of a program in bytes, far above the verifier's limits.
const MaxArray = 256 << 20

// AppendProgram appends an entry of the feature BPF_PROG_INFO. The pointers in Info are replaced by
// offsets, of absent arrays by 0; Info itself is not changed.
func AppendProgram(dst []byte, p *RawProgram) []byte {
	order := decode.OrderOf(p.BigEndian)
	dataLen, mask := 0, uint64(0)
	for i, a := range p.Arrays {
		if len(a) > 0 {
			mask |= 1 << i
			dataLen += roundUp8(len(a))
		}
	}
	dst = order.AppendUint32(dst, uint32(len(p.Info)))
	dst = order.AppendUint32(dst, uint32(dataLen))
	dst = order.AppendUint64(dst, mask)
	info := len(dst)
	dst = append(dst, p.Info...)
	at := 0
	for i, a := range p.Arrays {
		offset := 0
		if len(a) > 0 {
			offset = at
		}
		if field := Arrays[i].Pointer; field+8 <= len(p.Info) {
			order.PutUint64(dst[info+field:], uint64(offset))
		}
		dst = append(dst, a...)
		for range roundUp8(len(a)) - len(a) {
			dst = append(dst, 0)
		}
		at += roundUp8(len(a))
	}
	return dst
}

func roundUp8(n int) int { return (n + 7) &^ 7 }

// AppendBTF appends an entry of the feature BPF_BTF, in the byte order that the blob's magic shows.
func AppendBTF(dst []byte, id uint32, blob []byte) []byte {
	const magicHigh, magicLow = 0xeb, 0x9f
	order := decode.OrderOf(len(blob) > 1 && blob[0] == magicHigh && blob[1] == magicLow)
	dst = order.AppendUint32(dst, id)
	dst = order.AppendUint32(dst, uint32(len(blob)))
	return append(dst, blob...)
}
