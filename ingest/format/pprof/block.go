package pprof

import (
	"encoding/binary"
	"io"

	"github.com/klauspost/compress/gzip"
)

const (
	// block is the number of encoded bytes per write to gzip.
	block = 256 << 10
	// blocks bounds the blocks between encoder and gzip.
	blocks = 4
)

// blockWriter collects protobuf fields in blocks and has them gzipped, level 1, by a second
// goroutine: encoding and compressing cost about the same.
type blockWriter struct {
	buf  []byte
	full chan []byte
	free chan []byte
	done chan error
}

func newBlockWriter(w io.Writer) *blockWriter {
	b := &blockWriter{
		full: make(chan []byte, blocks),
		free: make(chan []byte, blocks+2),
		done: make(chan error, 1),
	}
	b.buf = make([]byte, 0, block+block/4)
	go b.compress(w)
	return b
}

func (b *blockWriter) compress(w io.Writer) {
	z, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	for block := range b.full {
		if err == nil {
			_, err = z.Write(block)
		}
		b.free <- block[:0]
	}
	if err == nil {
		err = z.Close()
	}
	b.done <- err
}

// flush passes the block to gzip and takes an empty one.
func (b *blockWriter) flush() {
	b.full <- b.buf
	select {
	case b.buf = <-b.free:
	default:
		b.buf = make([]byte, 0, block+block/4)
	}
}

// Close writes the rest and returns the first error of writing.
func (b *blockWriter) Close() error {
	b.full <- b.buf
	close(b.full)
	return <-b.done
}

// message appends a message field, empty ones too: they count in a table.
func (b *blockWriter) message(field int, msg []byte) {
	b.buf = appendBytes(b.buf, field, msg)
	if len(b.buf) >= block {
		b.flush()
	}
}

func (b *blockWriter) text(field int, s string) {
	b.buf = binary.AppendUvarint(append(b.buf, byte(field<<3|2)), uint64(len(s)))
	b.buf = append(b.buf, s...)
	if len(b.buf) >= block {
		b.flush()
	}
}

func (b *blockWriter) field(field int, v uint64) { b.buf = appendField(b.buf, field, v) }

// appendVarint is binary.AppendUvarint with a fast path for short numbers.
func appendVarint(b []byte, v uint64) []byte {
	switch {
	case v < 1<<7:
		return append(b, byte(v))
	case v < 1<<14:
		return append(b, byte(v)|0x80, byte(v>>7))
	case v < 1<<21:
		return append(b, byte(v)|0x80, byte(v>>7)|0x80, byte(v>>14))
	}
	return binary.AppendUvarint(b, v)
}

// appendField appends a varint field; zero is the default and left out.
func appendField(b []byte, field int, v uint64) []byte {
	if v == 0 {
		return b
	}
	return appendVarint(append(b, byte(field<<3)), v)
}

func appendBool(b []byte, field int, v bool) []byte {
	if !v {
		return b
	}
	return append(b, byte(field<<3), 1)
}

// appendBytes appends a length-delimited field.
func appendBytes(b []byte, field int, v []byte) []byte {
	b = appendVarint(append(b, byte(field<<3|2)), uint64(len(v)))
	return append(b, v...)
}
