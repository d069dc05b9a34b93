package flate

import (
	"encoding/binary"
	"io"
)

// Types of blocks, RFC 1951 section 3.2.3.
const (
	blockStored = iota
	blockFixed
	blockDynamic
)

// begin reads the header of a block.
func (z *Reader) begin() {
	if !z.refill() {
		return
	}
	z.final = z.nextBits(1) == 1
	switch z.nextBits(2) {
	case blockStored:
		z.nextBits(z.held % 8)
		n, complement := uint16(z.nextBits(16)), uint16(z.nextBits(16))
		if n != ^complement {
			z.damaged()
			return
		}
		z.pos -= int(z.held / 8) // the rest is read by bytes
		z.hold, z.held = 0, 0
		z.stored = int(n)
		z.block = (*Reader).copyStored
	case blockFixed:
		z.fixed()
	case blockDynamic:
		z.dynamic()
	default:
		z.damaged()
	}
}

func (z *Reader) copyStored() {
	for z.stored > 0 {
		room := len(z.win) - outputSlack - z.wr
		if room <= 0 {
			return
		}
		n := min(z.stored, room, z.end-z.pos)
		if n <= 0 {
			if z.eof {
				z.err = io.ErrUnexpectedEOF
				return
			}
			if !z.more() {
				return
			}
			continue
		}
		copy(z.win[z.wr:], z.in[z.pos:z.pos+n])
		z.wr += n
		z.pos += n
		z.stored -= n
	}
	z.block = nil
}

// fixed sets up the codes of RFC 1951 section 3.2.6.
func (z *Reader) fixed() {
	var lengths [288]uint8
	for i := range lengths {
		switch {
		case i < 144:
			lengths[i] = 8
		case i < 256:
			lengths[i] = 9
		case i < 280:
			lengths[i] = 7
		default:
			lengths[i] = 8
		}
	}
	var dist [32]uint8
	for i := range dist {
		dist[i] = 5
	}
	z.tables(lengths[:], dist[:])
}

func (z *Reader) tables(lit, dist []uint8) {
	if !build(z.lit.first[:], z.lit.more[:], litBits, lit, litEntries[:]) ||
		!build(z.dist.first[:], z.dist.more[:], distBits, dist, distEntries[:]) {
		z.damaged()
		return
	}
	z.block = (*Reader).decode
}

// lengthOrder is the order in which the lengths of the code for lengths are written.
var lengthOrder = [numLengths]uint8{
	16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15,
}

// dynamic reads the codes of a block, RFC 1951 section 3.2.7.
func (z *Reader) dynamic() {
	lit, dist, n := 257+int(z.nextBits(5)), 1+int(z.nextBits(5)), 4+int(z.nextBits(4))
	if lit > maxLitCodes || dist > maxDistCodes {
		z.damaged()
		return
	}
	var own [numLengths]uint8
	for _, sym := range lengthOrder[:n] {
		if z.held < 3 && !z.refill() {
			return
		}
		own[sym] = uint8(z.nextBits(3))
	}
	var table [1 << lengthBits]entry
	if !build(table[:], nil, lengthBits, own[:], lengthEntries[:]) {
		z.damaged()
		return
	}
	all := z.lengths[:lit+dist]
	for i := 0; i < len(all); {
		if !z.refill() {
			return
		}
		e := table[z.hold&(1<<lengthBits-1)]
		if e.kind() != entryLiteral {
			z.damaged()
			return
		}
		z.nextBits(e.bits())
		value, times := uint8(e.value()), 1
		switch value {
		case 16:
			if i == 0 {
				z.damaged()
				return
			}
			value, times = all[i-1], 3+int(z.nextBits(2))
		case 17:
			value, times = 0, 3+int(z.nextBits(3))
		case 18:
			value, times = 0, 11+int(z.nextBits(7))
		}
		if times > len(all)-i {
			z.damaged()
			return
		}
		for range times {
			all[i] = value
			i++
		}
	}
	z.tables(all[:lit], all[lit:])
}

// decode continues a block of codes until it ends or the window is full.
func (z *Reader) decode() {
	in, pos, hold, held := z.in, z.pos, z.hold, z.held
	win, wr := z.win, z.wr
	lit, dist := &z.lit, &z.dist
	limit, safe, bad := len(win)-outputSlack, z.end-inputAhead, false
	for wr < limit {
		if pos > safe {
			z.pos, z.hold, z.held, z.wr = pos, hold, held, wr
			if !z.more() {
				return
			}
			pos, safe = z.pos, z.end-inputAhead
		}
		hold |= binary.LittleEndian.Uint64(in[pos:]) << (held & 63)
		pos += int((63 - held) >> 3)
		held |= 56

		// After two literals enough bits are left for any code, but not for a distance
		// after it.
		e := lit.first[hold&(1<<litBits-1)]
		if e.kind() == entryLiteral {
			win[wr] = byte(e.value())
			wr++
			hold >>= e & 63
			held -= e.bits()
			e = lit.first[hold&(1<<litBits-1)]
			if e.kind() == entryLiteral {
				win[wr] = byte(e.value())
				wr++
				hold >>= e & 63
				held -= e.bits()
				e = lit.first[hold&(1<<litBits-1)]
			}
			hold |= binary.LittleEndian.Uint64(in[pos:]) << (held & 63)
			pos += int((63 - held) >> 3)
			held |= 56
		}
		if e.kind() == entryMore {
			i := e.value() + int(hold>>litBits&(1<<(e&63)-1))
			e = lit.more[i&(litMore-1)]
		}
		if e.kind() != entryMatch {
			hold >>= e & 63
			held -= e.bits()
			if e.kind() == entryLiteral {
				win[wr] = byte(e.value())
				wr++
				continue
			}
			z.block, bad = nil, e&entryEnd == 0
			break
		}
		length := e.full(hold)
		hold >>= e & 63
		held -= e.bits()

		d := dist.first[hold&(1<<distBits-1)]
		if d.kind() == entryMore {
			i := d.value() + int(hold>>distBits&(1<<(d&63)-1))
			d = dist.more[i&(distMore-1)]
		}
		from := wr - d.full(hold)
		if d.kind() != entryMatch || from < 0 {
			bad = true
			break
		}
		hold >>= d & 63
		held -= d.bits()
		copyMatch(win, wr, from, length)
		wr += length
	}
	z.pos, z.hold, z.held, z.wr = pos, hold, held, wr
	if bad {
		z.damaged()
	}
}

// copyMatch copies length bytes from position from to wr; it may write up to 15 bytes more. Few
// matches are longer than 16 bytes or as near.
func copyMatch(win []byte, wr, from, length int) {
	if wr-from >= 16 {
		for i := 0; i < length; i += 16 {
			*(*[16]byte)(win[wr+i:]) = *(*[16]byte)(win[from+i:])
		}
		return
	}
	dst := win[wr : wr+length]
	for i := range dst {
		dst[i] = win[from+i]
	}
}
