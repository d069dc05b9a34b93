package buildid

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"strings"
	"testing"
)

// TestHTLHash compares with the definition, and with the agent's hash of a recorded program.
func TestHTLHash(t *testing.T) {
	for _, size := range []int{0, 1, 4095, 4096, 4097, 8191, 8192, 20000} {
		data := bytes.Repeat([]byte("0123456789abc"), size/13+1)[:size]
		want := sha256.New()
		want.Write(data[:min(4096, size)])
		want.Write(data[size-min(4096, size):])
		binary.Write(want, binary.BigEndian, uint64(size))
		id, err := HTLHash(bytes.NewReader(data), int64(size))
		if err != nil || !bytes.Equal(id.Bytes(), want.Sum(nil)[:16]) || id.Space() != HTL {
			t.Errorf("%d bytes: %s, %v", size, id, err)
		}
	}
	if id, err := HTLHash(strings.NewReader("short"), 9); err == nil {
		t.Errorf("a file that shrank: %s", id)
	}
}

func TestSpaces(t *testing.T) {
	const text = "abc/def/ghi"
	for s, want := range map[string]ID{
		"htl:00ff00ff00ff00ff00ff00ff00ff00ff": Make(HTL, bytes.Repeat([]byte{0, 255}, 8)),
		"go:" + text:                           FromGo(text),
		FromGo(text).String():                  FromGo(text),
	} {
		if id, err := Parse(s); err != nil || id != want {
			t.Errorf("%s: %s, %v", s, id, err)
		}
	}
	if !FromGo("").IsZero() || FromGo(text).Matches(FromGo(text+"x")) || !HTL.Alias() || GNU.Alias() ||
		!Go.Valid() || numSpaces.Valid() {
		t.Error("spaces")
	}
}

func TestGoNote(t *testing.T) {
	note := append([]byte{4, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0}, "Go\x00\x00a/b\x00"...)
	gnu := append([]byte{4, 0, 0, 0, 4, 0, 0, 0, 3, 0, 0, 0}, "GNU\x00\x01\x02\x03\x04"...)
	if got := GoNote(append(gnu, note...), false); got != "a/b" {
		t.Errorf("got %q", got)
	}
	for n := range len(note) - 1 {
		if got := GoNote(note[:n], false); got != "" {
			t.Errorf("%d bytes: %q", n, got)
		}
	}
}
