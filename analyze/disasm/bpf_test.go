package disasm

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
)

// TestBPF: each form of an instruction. TestLiveLayers of cmd/symbolize compares those that the
// kernel's compiler and verifier make with bpftool's.
func TestBPF(t *testing.T) {
	names := &BPFNames{
		Helper:   func(d int32) string { return map[int32]string{0x41cb0: "bpf_ktime_get_ns"}[d] },
		KFunc:    func(n int32) string { return map[int32]string{0x46dc0: "bpf_rcu_read_lock"}[n] },
		Map:      func(id uint32) string { return map[uint32]string{99: "sums"}[id] },
		Function: func(i int32) string { return map[int32]string{1: "bpf_prog_42527fec5fc14a42_mix_bits"}[i] },
	}
	for _, row := range []struct{ code, want string }{ // of "map[counts]" the symbol is counts
		{"bf16000000000000", "(bf) r6 = r1"},
		{"bc16000000000000", "(bc) w6 = w1"},
		{"bf16080000000000", "(bf) r6 = (s8)r1"},
		{"bc16100000000000", "(bc) w6 = (s16)w1"},
		{"bf16200000000000", "(bf) r6 = (s32)r1"},
		{"bf160100feff0100", "(bf) r6 = addr_space_cast(r1, 1, 65534)"},
		{"bf00ffff00000000", "(bf) r0 = &(void __percpu *)(r0)"},
		{"b7010000ffffffff", "(b7) r1 = -1"},
		{"0702000000fcffff", "(07) r2 += -1024"},
		{"1f21000000000000", "(1f) r1 -= r2"},
		{"2700000088000000", "(27) r0 *= 136"},
		{"3f21000000000000", "(3f) r1 /= r2"},
		{"3f21010000000000", "(3f) r1 s/= r2"},
		{"9401010007000000", "(94) w1 s%= 7"},
		{"9f21000000000000", "(9f) r1 %= r2"},
		{"4701000001000000", "(47) r1 |= 1"},
		{"5700000003000000", "(57) r0 &= 3"},
		{"a721000000000000", "(a7) r1 ^= 0"},
		{"6701000003000000", "(67) r1 <<= 3"},
		{"7c21000000000000", "(7c) w1 >>= w2"},
		{"c701000007000000", "(c7) r1 s>>= 7"},
		{"8701000000000000", "(87) r1 = -r1"},
		{"8401000000000000", "(84) w1 = -w1"},
		{"dc01000020000000", "(dc) r1 = be32 r1"},
		{"d401000040000000", "(d4) r1 = le64 r1"},
		{"d701000010000000", "(d7) r1 = bswap16 r1"},
		{"6112080000000000", "(61) r2 = *(u32 *)(r1 +8)"},
		{"7912f8ff00000000", "(79) r2 = *(u64 *)(r1 -8)"},
		{"9112000000000000", "(91) r2 = *(s8 *)(r1 +0)"},
		{"8912020000000000", "(89) r2 = *(s16 *)(r1 +2)"},
		{"631afcff00000000", "(63) *(u32 *)(r10 -4) = r1"},
		{"720a000005000000", "(72) *(u8 *)(r10 +0) = 5"},
		{"c200000000000000", "(c2) nospec"},
		{"db12000000000000", "(db) lock *(u64 *)(r2 +0) += r1"},
		{"c312040040000000", "(c3) lock *(u32 *)(r2 +4) |= r1"},
		{"db12000051000000", "(db) r1 = atomic64_fetch_and((u64 *)(r2 +0), r1)"},
		{"c3120000a1000000", "(c3) r1 = atomic_fetch_xor((u32 *)(r2 +0), r1)"},
		{"db120000e1000000", "(db) r1 = atomic64_xchg((u64 *)(r2 +0), r1)"},
		{"db120000f1000000", "(db) r0 = atomic64_cmpxchg((u64 *)(r2 +0), r0, r1)"},
		{"db12080000010000", "(db) r2 = load_acquire((u64 *)(r1 +8))"},
		{"cb12080010010000", "(cb) store_release((u16 *)(r2 +8), r1)"},
		{"3000000007000000", "(30) r0 = *(u8 *)skb[7]"},
		{"4010000007000000", "(40) r0 = *(u32 *)skb[r1 + 7]"},
		{"1801000078563412" + "00000000f0debc9a", "(18) r1 = 0x9abcdef012345678"},
		{"1811000009000000" + "0000000000000000", "(18) r1 = map[counts]"},
		{"18110000085b2d00" + "0000000000000000", "(18) r1 = map[id:2972424]"},
		{"1821000009000000" + "0000000010000000", "(18) r1 = map[counts][0]+16"},
		{"1811000063000000" + "0000000000000000", "(18) r1 = map[sums]"},
		{"1861000001000000" + "0000000008000000", "(18) r1 = map[idx:1]+8"},
		{"1842000005000000" + "0000000000000000", "(18) r2 = subprog[+5]"},
		{"85000000b01c0400", "(85) call bpf_ktime_get_ns#269488"},
		{"85000000b11c0400", "(85) call unknown#269489"},
		{"850000000c000000", "(85) call bpf_tail_call#12"},
		{"85102a0001000000", "(85) call pc+42#bpf_prog_42527fec5fc14a42_mix_bits"},
		{"8510fdff02000000", "(85) call pc-3"},
		{"85200000c06d0400", "(85) call bpf_rcu_read_lock#290240"},
		{"8520000001000000", "(85) call kernel function#1"},
		{"8d01000000000000", "(8d) callx r1"},
		{"0500fdff00000000", "(05) goto pc-3"},
		{"0600000000000100", "(06) gotol pc+65536"},
		{"0d01000000000000", "(0d) gotox r1"},
		{"e500020000000000", "(e5) may_goto pc+2"},
		{"9500000000000000", "(95) exit"},
		{"15060a0000000000", "(15) if r6 == 0x0 goto pc+10"},
		{"a6013d00ffffffff", "(a6) if w1 < 0xffffffff goto pc+61"},
		{"2d21feff00000000", "(2d) if r1 > r2 goto pc-2"},
		{"4501010008000000", "(45) if r1 & 0x8 goto pc+1"},
		{"6601010008000000", "(66) if w1 s> 0x8 goto pc+1"},
		{"dd21010000000000", "(dd) if r1 s<= r2 goto pc+1"},
		{"db120000f2000000", "BUG_stx_db"},
		{"e712000000000000", "BUG_alu64_e7"},
		{"0200000000000000", "BUG_st_02"},
		{"0100000000000000", "BUG_ldx_01"},
		{"f501000000000000", "BUG_jmp_f5"},
		{"8e01000000000000", "BUG_jmp32_8e"},
		{"1801000078563412", "(18) r1 = 0x12345678"}, // the second half is cut off
	} {
		code, err := hex.DecodeString(row.code)
		if err != nil {
			t.Fatal(err)
		}
		names.Symbol = func(int) string {
			if strings.Contains(row.want, "map[counts]") {
				return "counts"
			}
			return ""
		}
		list := BPF(code, false, names)
		if len(list) != 1 || list[0].Text != row.want || list[0].Bad != strings.HasPrefix(row.want, "BUG") {
			t.Errorf("%s: %+v, want %s", row.code, list, row.want)
		}
		big := swapBPF(code)
		if other := BPF(big, true, names); fmt.Sprint(other) != fmt.Sprint(list) {
			t.Errorf("%x, big-endian: %+v, want %+v", big, other, list)
		}
	}
}

// swapBPF converts instructions to the other byte order.
func swapBPF(code []byte) []byte {
	var out []byte
	for ; len(code) > 0; code = code[8:] {
		b := code[:8]
		out = append(out, b[0], b[1]>>4|b[1]<<4, b[3], b[2], b[7], b[6], b[5], b[4])
	}
	return out
}

// TestBPFWhole: instructions are numbered in units of 8 bytes, and a rest is left out.
func TestBPFWhole(t *testing.T) {
	code, err := hex.DecodeString("bf16000000000000" + "1801000078563412" + "0000000000000000" +
		"9500000000000000" + "95000000")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, in := range BPF(code, false, nil) {
		got = append(got, fmt.Sprint(in.Index, "+", in.Size, " ", in.Text))
	}
	const want = "0+1 (bf) r6 = r1, 1+2 (18) r1 = 0x12345678, 3+1 (95) exit"
	if text := strings.Join(got, ", "); text != want {
		t.Errorf("got %s, want %s", text, want)
	}
}

// FuzzBPF disassembles any bytes: all whole instructions have a text.
func FuzzBPF(f *testing.F) {
	f.Add([]byte{0x85, 0x10, 0xff, 0xff, 1, 2, 3, 4}, true)
	f.Add([]byte{0x18, 0x61, 0, 0, 0, 0, 0, 0, 1}, false)
	f.Fuzz(func(t *testing.T, code []byte, big bool) {
		next := 0
		for _, in := range BPF(code, big, nil) {
			if in.Index != next || in.Size < 1 || in.Size > 2 || in.Text == "" {
				t.Fatalf("instruction %d: %+v", next, in)
			}
			next += in.Size
		}
		if next != len(code)/8 {
			t.Fatalf("%d instructions in %d bytes", next, len(code))
		}
	})
}
