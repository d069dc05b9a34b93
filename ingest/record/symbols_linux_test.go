package record

import (
	"bufio"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// TestSymbolReader keeps the lines of modules and BPF, and lines with the kernel's addresses, for
// reads of any size.
func TestSymbolReader(t *testing.T) {
	const list = "ffffffff81000000 T _stext\nffffffff81000000 T _text\n" +
		"ffffffff81000040 T do_one\nffffffff82000000 T _etext\nffffffffc0000000 t init\t[ext4]\n" +
		"ffffffffc0100000 t bpf_prog_00\t[bpf]\n0000000000000000 A fixed\nno line of it"
	const want = "ffffffff81000000 T _stext\nffffffff81000000 T _text\n" +
		"ffffffff82000000 T _etext\nffffffffc0000000 t init\t[ext4]\n" +
		"ffffffffc0100000 t bpf_prog_00\t[bpf]\n"
	for _, r := range []io.Reader{strings.NewReader(list), iotest.OneByteReader(strings.NewReader(list))} {
		scanned := 0
		x := &symbolReader{lines: bufio.NewReaderSize(r, maxSymbolLine), omit: true,
			scan: func([]byte) { scanned++ }}
		if got, err := io.ReadAll(iotest.OneByteReader(x)); err != nil || string(got) != want ||
			scanned != 8 {
			t.Errorf("%q, %v, %d lines scanned", got, err, scanned)
		}
	}
	failing := &symbolReader{lines: bufio.NewReader(iotest.ErrReader(io.ErrUnexpectedEOF))}
	if _, err := io.ReadAll(failing); err != io.ErrUnexpectedEOF {
		t.Errorf("%v", err)
	}
}
