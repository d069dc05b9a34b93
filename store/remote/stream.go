package remote

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"

	"symbolize/store"
)

// partRaw is the name of a piece of the captured input, of store.RawPiece bytes but the last.
const partRaw = store.PartRaw + ".zst"

// maxPartLine bounds the line in front of a part.
const maxPartLine = 64

// cutter cuts a stream into pieces.
type cutter struct {
	piece []byte
	put   func(piece []byte) error // may keep the piece
}

// Write implements io.Writer.
func (c *cutter) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 {
		if c.piece == nil {
			c.piece = make([]byte, 0, min(pieceSize, max(len(b), 64<<10)))
		}
		some := min(len(b), pieceSize-len(c.piece))
		c.piece, b = append(c.piece, b[:some]...), b[some:]
		if len(c.piece) == pieceSize {
			if err := c.flush(); err != nil {
				return 0, err
			}
		}
	}
	return n, nil
}

// flush puts the last piece.
func (c *cutter) flush() error {
	piece := c.piece
	c.piece = nil
	if len(piece) == 0 {
		return nil
	}
	return c.put(piece)
}

// writePart writes one part of a source.
func writePart(w io.Writer, name string, b []byte) error {
	if name == store.PartRaw {
		for len(b) > 0 {
			n := min(len(b), store.RawPiece)
			if err := writePart(w, partRaw, store.Compress(nil, b[:n])); err != nil {
				return err
			}
			b = b[n:]
		}
		return nil
	}
	if _, err := fmt.Fprintf(w, "%s %d\n", name, len(b)); err != nil {
		return err
	}
	_, err := w.Write(b)
	return err
}

// readSource puts the parts of a stream of size bytes together. Errors of the stream itself are
// returned as they are.
func readSource(r io.Reader, size int64, info *store.SourceInfo) (*store.NewSource, error) {
	a := store.NewAssembly(info)
	in := bufio.NewReaderSize(r, 64<<10)
	var raw []byte
	for size > 0 {
		name, n, err := partHead(in, &size)
		if err != nil {
			return nil, err
		}
		b := make([]byte, n) // not more than is left
		if _, err := io.ReadFull(in, b); err != nil {
			return nil, err
		}
		if name != partRaw {
			err = a.Add(name, b)
		} else if raw, err = appendRaw(raw, b, info.RawSize); err == nil && uint64(len(raw)) == info.RawSize {
			err = a.Add(store.PartRaw, raw)
		}
		if err != nil {
			return nil, err
		}
	}
	if uint64(len(raw)) != info.RawSize {
		return nil, damagef("captured input of %d bytes, not %d", len(raw), info.RawSize)
	}
	return a.Source()
}

// partHead reads the line in front of a part and subtracts the sizes of both from left.
func partHead(in *bufio.Reader, left *int64) (name string, size int64, err error) {
	line, err := in.ReadSlice('\n')
	if err != nil && err != bufio.ErrBufferFull && err != io.EOF {
		return "", 0, err
	}
	*left -= int64(len(line))
	name, digits, ok := strings.Cut(strings.TrimSuffix(string(line), "\n"), " ")
	size, bad := strconv.ParseInt(digits, 10, 64)
	if !ok || err != nil || bad != nil || len(line) > maxPartLine || size < 0 || size > *left {
		return "", 0, damagef("part %.40q, %d bytes left", line, *left)
	}
	*left -= size
	return name, size, nil
}

// appendRaw unpacks a piece of a captured input of total bytes.
func appendRaw(raw, frame []byte, total uint64) ([]byte, error) {
	left := total - uint64(len(raw))
	if total > store.MaxSource || left == 0 {
		return nil, damagef("captured input of more than %d bytes", total)
	}
	b, err := store.Decompress(frame, min(left, store.RawPiece))
	if err != nil {
		return nil, damagef("captured input: %v", err)
	}
	return append(raw, b...), nil
}
