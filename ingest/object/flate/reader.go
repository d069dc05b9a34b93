package flate

import (
	"encoding/binary"
	"errors"
	"io"
	"math/bits"
)

// Errors of a Reader, besides the errors of its source.
var (
	// ErrFormat is returned for invalid input.
	ErrFormat = errors.New("damaged deflate stream")
	// ErrChecksum is returned at the end of a stream if the checksum does not match.
	ErrChecksum = errors.New("deflate stream: wrong checksum")
)

// Sizes of a Reader's buffers. Before each code, the window has space for the longest match and
// the bytes copied past its end.
const (
	inputSize   = 64 << 10
	inputSlack  = 32               // zeros after the end of the input
	inputAhead  = 16               // maximum bytes from pos on that decoding one code examines
	longestDist = maxCodeBits + 13 // bits of a distance
	takenBack   = 8                // maximum bytes before pos that may be read again
	historySize = 32 << 10
	outputSize  = 256 << 10
	outputSlack = 258 + 32
)

// A Reader inflates one stream. It reads ahead of the stream's end.
type Reader struct {
	src io.Reader
	err error // returned by Read after all output

	in   []byte
	pos  int    // next byte that is not in hold
	end  int    // end of the bytes from src; zeros follow
	eof  bool   // src has ended
	hold uint64 // input bits; bits above held are valid or zero, and are read again
	held uint

	win    []byte // history, then output
	rd, wr int    // win[rd:wr] has not been read
	summed int    // win[:summed] is in sum
	good   int    // win[:good] was decoded from input before end

	block  func(*Reader) // continues the current block; nil between blocks
	final  bool
	stored int // bytes left of a stored block
	zlib   bool
	sum    uint32 // Adler-32 of the output so far

	lit     litTable
	dist    distTable
	lengths [maxLitCodes + maxDistCodes]uint8
}

// NewReader returns a Reader of a raw DEFLATE stream.
func NewReader(src io.Reader) *Reader {
	z := &Reader{
		in:  make([]byte, inputSize+inputSlack),
		win: make([]byte, historySize+outputSize+outputSlack),
	}
	z.Reset(src)
	return z
}

// NewZlibReader returns a Reader of a zlib stream. The first Read decodes its header.
func NewZlibReader(src io.Reader) *Reader {
	z := NewReader(src)
	z.zlib, z.block = true, (*Reader).header
	return z
}

// Reset starts another stream of the same kind with the same buffers.
func (z *Reader) Reset(src io.Reader) {
	z.src, z.err, z.pos, z.end, z.eof = src, nil, 0, 0, false
	z.hold, z.held, z.rd, z.wr, z.summed, z.good = 0, 0, 0, 0, 0, 0
	z.final, z.stored, z.sum, z.block = false, 0, 1, nil
	if z.zlib {
		z.block = (*Reader).header
	}
}

// Read inflates into p.
func (z *Reader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	b, err := z.next()
	n := copy(p, b)
	z.rd += n
	return n, err
}

// WriteTo writes the rest of the output to w.
func (z *Reader) WriteTo(w io.Writer) (int64, error) {
	total := int64(0)
	for {
		b, err := z.next()
		if len(b) > 0 {
			n, err := w.Write(b)
			total += int64(n)
			z.rd += n
			if err != nil {
				return total, err
			}
			continue
		}
		if err == io.EOF {
			err = nil
		}
		return total, err
	}
}

// next returns output that has not been read, or the error.
func (z *Reader) next() ([]byte, error) {
	if z.rd == z.wr && z.err == nil {
		z.fill()
	}
	if z.rd < z.wr {
		return z.win[z.rd:z.wr], nil
	}
	return nil, z.err
}

// fill decodes until the window is full or the stream ends.
func (z *Reader) fill() {
	if z.wr > historySize {
		copy(z.win, z.win[z.wr-historySize:z.wr])
		z.wr = historySize
	}
	z.rd, z.summed, z.good = z.wr, z.wr, z.wr
	for z.err == nil && z.wr < len(z.win)-outputSlack {
		switch {
		case z.block != nil:
			z.block(z)
		case z.final:
			z.trailer()
		default:
			z.begin()
		}
	}
	if z.overrun() {
		z.damaged()
	}
	z.addSum()
}

// addSum adds the output to the checksum.
func (z *Reader) addSum() {
	if z.zlib {
		z.sum = adler(z.sum, z.win[z.summed:z.wr])
		z.summed = z.wr
	}
}

// more reads input until inputAhead bytes follow pos; zeros follow the end of the input. It returns
// false and sets the error if reading failed or decoding went beyond the end.
func (z *Reader) more() bool {
	if z.eof {
		if z.overrun() {
			z.damaged()
			return false
		}
		z.good = z.wr
		return true
	}
	from := max(0, z.pos-takenBack)
	rest := copy(z.in, z.in[from:z.end])
	z.pos -= from
	n, err := io.ReadAtLeast(z.src, z.in[rest:inputSize], inputAhead)
	z.end = rest + n
	z.good = z.wr
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		z.eof, err = true, nil
		clear(z.in[z.end : z.end+inputSlack])
	}
	z.err = err
	return err == nil
}

// damaged ends the stream with the matching error. Zeros after the input may have been decoded as
// codes, so their output is discarded; the last invalid code may also come from them.
func (z *Reader) damaged() {
	z.err = ErrFormat
	if z.eof && 8*(z.end-z.pos)+int(z.held) < longestDist {
		z.err, z.wr = io.ErrUnexpectedEOF, min(z.wr, z.good)
	}
}

// overrun reports whether bits after the end of the input were used.
func (z *Reader) overrun() bool { return z.pos-int(z.held/8) > z.end }

// refill makes at least 56 bits available.
func (z *Reader) refill() bool {
	if z.pos > z.end-inputAhead && !z.more() {
		return false
	}
	z.hold |= binary.LittleEndian.Uint64(z.in[z.pos:]) << z.held
	z.pos += int((63 - z.held) >> 3)
	z.held |= 56
	return true
}

// nextBits returns the next n bits; refill must have made them available.
func (z *Reader) nextBits(n uint) uint64 {
	v := z.hold & (1<<n - 1)
	z.hold >>= n
	z.held -= n
	return v
}

// header reads the two bytes before a zlib stream.
func (z *Reader) header() {
	z.block = nil
	if !z.refill() {
		return
	}
	h := uint16(z.nextBits(8))<<8 | uint16(z.nextBits(8))
	const deflate, maxWindow, dictionary = 8, 7, 0x20
	if h>>8&15 != deflate || h>>12 > maxWindow || h%31 != 0 || h&dictionary != 0 {
		z.damaged()
	}
}

// trailer ends the stream.
func (z *Reader) trailer() {
	z.nextBits(z.held % 8)
	z.err = io.EOF
	if z.zlib {
		z.addSum()
		if z.err = nil; !z.refill() {
			return
		}
		if z.err = io.EOF; bits.ReverseBytes32(uint32(z.nextBits(32))) != z.sum {
			z.err = ErrChecksum
		}
	}
	if z.overrun() {
		z.damaged()
	}
}
