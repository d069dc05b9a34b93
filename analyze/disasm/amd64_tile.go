package disasm

import (
	"fmt"
	"strings"
)

// tileOps are the matrix instructions (AMX) by mandatory prefix (pp of VEX: none, 66, f3, f2) and
// opcode. 49 is others, by its ModRM byte.
var tileOps = map[[2]byte]string{
	{3, 0x4b}: "tileloadd", {1, 0x4b}: "tileloaddt1", {2, 0x4b}: "tilestored",
	{2, 0x5c}: "tdpbf16ps", {3, 0x5c}: "tdpfp16ps", {3, 0x5e}: "tdpbssd", {2, 0x5e}: "tdpbsud",
	{1, 0x5e}: "tdpbusd", {0, 0x5e}: "tdpbuud",
}

// tile decodes the matrix instructions: VEX.128.W0, map 0f 38.
func (d amd64) tile(code []byte) (Inst, bool) {
	const vexLW = 0x84
	if len(code) < 5 || code[0] != 0xc4 || code[1]&0x1f != 2 || code[2]&vexLW != 0 {
		return Inst{}, false
	}
	pp, op, modrm := code[2]&3, code[3], code[4]
	isMem := modrm>>6 != 3
	name := tileOps[[2]byte{pp, op}]
	if op == 0x49 {
		return d.tileConfig(pp, code)
	}
	switch {
	case name == "":
		return Inst{}, false
	case op == 0x4b && isMem && modrm&7 == 4:
		return d.tileMemory(name, d.tmm(modrm>>3&7), pp == 2, code)
	case op == 0x4b || isMem:
		return Inst{}, false
	}
	list := []string{d.tmm(^code[2] >> 3 & 7), d.tmm(modrm & 7), d.tmm(modrm >> 3 & 7)}
	if d.syntax == Intel {
		list[0], list[2] = list[2], list[0]
	}
	return Inst{Len: 5, Text: join(name, strings.Join(list, ","))}, true
}

// tileConfig decodes opcode 49: the configuration of all tiles, and clearing them.
func (d amd64) tileConfig(pp byte, code []byte) (Inst, bool) {
	modrm := code[4]
	switch isMem := modrm>>6 != 3; {
	case pp == 0 && modrm == 0xc0:
		return Inst{Len: 5, Text: "tilerelease"}, true
	case pp == 3 && modrm&0xc7 == 0xc0:
		return Inst{Len: 5, Text: join("tilezero", d.tmm(modrm>>3&7))}, true
	case pp == 0 && isMem && modrm>>3&7 == 0:
		return d.tileMemory("ldtilecfg", "", false, code)
	case pp == 1 && isMem && modrm>>3&7 == 0:
		return d.tileMemory("sttilecfg", "", false, code)
	}
	return Inst{}, false
}

// tileMemory decodes an instruction between a tile and memory; without a tile it has one operand.
func (d amd64) tileMemory(name, tile string, store bool, code []byte) (Inst, bool) {
	rex := 0x48 | ^code[1]>>5&7 // VEX has R, X and B inverted
	x, imul, n, ok := asIMUL([]byte{rex}, code[4:])
	if !ok {
		return Inst{}, false
	}
	args := d.extraArgs(rm, &x, imul)
	switch {
	case tile == "":
	case store != (d.syntax == Intel):
		args = tile + "," + args
	default:
		args += "," + tile
	}
	return Inst{Len: 4 + n, Text: join(name, args)}, true
}

// tmm names a tile.
func (d amd64) tmm(n byte) string {
	if d.syntax == Intel {
		return fmt.Sprintf("tmm%d", n)
	}
	return fmt.Sprintf("%%tmm%d", n)
}
