package report

import (
	"bytes"
	"encoding/binary"
	"errors"
	"runtime"
	"testing"
)

// brokenAfter accepts some bytes and fails then.
type brokenAfter int

var errBroken = errors.New("broken")

func (w *brokenAfter) Write(b []byte) (int, error) {
	if *w -= brokenAfter(len(b)); *w < 0 {
		return 0, errBroken
	}
	return len(b), nil
}

// TestPrint: lines keep their order however many pieces they make, and the first error of a writer
// is returned.
func TestPrint(t *testing.T) {
	f := &folder{first: numberedTexts{texts: []string{"a", "b"}},
		texts: numberedTexts{texts: []string{"f", "", "long name"}}}
	round := runtime.GOMAXPROCS(0) * pieceLines
	for _, n := range []int{0, 1, pieceLines, pieceLines + 1, round, round + 1, 5*round - 1} {
		var want []byte
		lines := make([]foldLine, n)
		for i := range lines {
			key := binary.BigEndian.AppendUint32(nil, uint32(i%2))
			for k := range i % 5 {
				key = binary.BigEndian.AppendUint32(key, uint32(k%3))
			}
			lines[i] = foldLine{key, uint64(i)}
			want = f.appendLine(want, &lines[i])
		}
		var got bytes.Buffer
		if err := f.print(&got, lines); err != nil || !bytes.Equal(got.Bytes(), want) {
			t.Errorf("%d lines: %v, %d bytes, want %d", n, err, got.Len(), len(want))
		}
		for _, most := range []int{0, len(want) / 2, len(want) - 1} {
			w := brokenAfter(most)
			if err := f.print(&w, lines); n > 0 && !errors.Is(err, errBroken) {
				t.Errorf("%d lines: a writer that fails after %d bytes: %v", n, most, err)
			}
		}
	}
}
