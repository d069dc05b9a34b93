package files

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"
)

func TestBlockList(t *testing.T) {
	for _, size := range []int{0, 1, firstBlock - 1, firstBlock, firstBlock + 1, listBlock,
		listBlock + 1, 3*listBlock - 1, 3 * listBlock} {
		data := make([]byte, size)
		for i := range data {
			data[i] = byte(i ^ i>>8 ^ i>>16)
		}
		var l blockList
		n, err := l.ReadFrom(iotest.DataErrReader(bytes.NewReader(data)))
		if err != nil || n != int64(size) || l.size != n {
			t.Fatalf("%d bytes: %d, %v", size, n, err)
		}
		got, err := io.ReadAll(io.NewSectionReader(&l, 0, l.size))
		if err != nil || !bytes.Equal(got, data) {
			t.Errorf("%d bytes: others come back, %v", size, err)
		}
		b := make([]byte, 10)
		if n, err := l.ReadAt(b, int64(size)-3); size > 3 && (n != 3 || !errors.Is(err, io.EOF)) {
			t.Errorf("%d bytes: the end gives %d, %v", size, n, err)
		}
		held := 0
		for _, b := range l.blocks {
			held += cap(b)
		}
		if held > 4*size+firstBlock || size >= listBlock && held > size+listBlock {
			t.Errorf("%d bytes take %d", size, held)
		}
	}
}

// TestBlockListErrors reads from failing and truncated readers.
func TestBlockListErrors(t *testing.T) {
	for _, want := range []error{io.ErrUnexpectedEOF, errors.New("damage")} {
		l := blockList{}
		r := io.MultiReader(bytes.NewReader(make([]byte, 100)), iotest.ErrReader(want))
		if n, err := l.ReadFrom(r); n != 100 || !errors.Is(err, want) {
			t.Errorf("%d, %v, want %v", n, err, want)
		}
	}
	stop := errors.New("stop")
	l := blockList{stop: func() error { return stop }}
	if _, err := l.ReadFrom(bytes.NewReader([]byte("x"))); !errors.Is(err, stop) {
		t.Error(err)
	}
}
