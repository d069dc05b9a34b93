package files

import (
	"bytes"
	"errors"
	"testing"
)

// TestUnpackBounded: content is unpacked up to a limit, into memory that is used again; the memory for
// more is not taken.
func TestUnpackBounded(t *testing.T) {
	z := ZstdOptions{Level: ZstdFastest}.Frames()
	var stream bytes.Buffer // frames of a stream have no size
	w := ZstdOptions{Level: ZstdFastest}.Writer(&stream)
	content := bytes.Repeat([]byte("content "), 100_000)
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	frame := z.Pack(nil, content)
	for _, c := range []struct {
		packed []byte
		limit  int64
		want   []byte
		err    error
	}{
		{frame, int64(len(content)), content, nil},
		{frame, int64(len(content)) - 1, nil, ErrTooLarge},
		{frame, 0, nil, ErrTooLarge},
		{frame, -1, nil, ErrTooLarge},
		{stream.Bytes(), 1 << 30, content, nil},
		{stream.Bytes(), 1 << 10, nil, ErrTooLarge},
		{append(frame[:len(frame):len(frame)], stream.Bytes()...), 1 << 30, append(content[:len(content):len(content)],
			content...), nil},
	} {
		for _, dst := range [][]byte{nil, make([]byte, 10, 4<<20)} {
			got, err := z.UnpackBounded(dst, c.packed, c.limit)
			if !errors.Is(err, c.err) || !bytes.Equal(got, c.want) {
				t.Errorf("%d bytes, at most %d: %d bytes, %v", len(c.packed), c.limit, len(got), err)
			}
			if err == nil && dst != nil && &got[0] != &dst[0] {
				t.Error("other memory")
			}
		}
	}
	if _, err := z.UnpackBounded(nil, frame[:20], 1<<20); err == nil || errors.Is(err, ErrTooLarge) {
		t.Errorf("cut off: %v", err)
	}
}
