package stackmap

import (
	"bytes"
	"compress/gzip"
	"io"

	"symbolize/ingest/bundle"
)

// sniffBytes is how much of a file tells its form: a script may print much before its
// first stack.
const sniffBytes = 64 << 10

// Sniff tells the form of stacks by the first bytes of a file; NoForm for others. A
// bare concatenation of values tells nothing.
func Sniff(in *Input) Form {
	head := in.head(sniffBytes)
	if bundle.IsDump(head) {
		return Raw
	}
	if len(head) > 2 && head[0] == 0x1f && head[1] == 0x8b {
		head = gunzipHead(head)
		if isSysting(head) {
			return Systing
		}
		return NoForm
	}
	text := bytes.TrimLeft(head, " \t\r\n")
	switch {
	case isBpftool(text):
		return Bpftool
	case isSysting(text):
		return Systing
	case isGadget(text):
		return Gadget
	case isBpftrace(text):
		return Bpftrace
	}
	return NoForm
}

// gunzipHead unpacks the beginning of a gzipped file, as far as it goes.
func gunzipHead(packed []byte) []byte {
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil
	}
	head := make([]byte, 512)
	n, _ := io.ReadFull(z, head)
	return head[:n]
}

// isBpftool recognises `bpftool map dump`: "key: 03 00", "key:" and a line of bytes, or
// [{"key":["0x0a", spaced or not.
func isBpftool(text []byte) bool {
	if rest, ok := bytes.CutPrefix(text, []byte("key:")); ok {
		rest = bytes.TrimLeft(rest, " \n")
		if len(rest) < 2 {
			return false
		}
		_, ok := hexDigit(rest[0])
		_, ok2 := hexDigit(rest[1])
		return ok && ok2
	}
	if len(text) == 0 || text[0] != '[' && text[0] != '{' {
		return false
	}
	squeezed := squeeze(text, len(`[{"key":`))
	return string(squeezed) == `[{"key":` || bytes.HasPrefix(squeezed, []byte(`{"key":`))
}

// squeeze returns the first n bytes that are no blanks.
func squeeze(text []byte, n int) []byte {
	var out []byte
	for _, c := range text {
		if len(out) == n {
			break
		}
		if !isSpace(c) {
			out = append(out, c)
		}
	}
	return out
}
