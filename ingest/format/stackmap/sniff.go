package stackmap

import (
	"bytes"
	"compress/gzip"
	"io"

	"symbolize/ingest/format/mapdump"
	"symbolize/ingest/format/rawdump"
	"symbolize/ingest/magic"
)

// sniffBytes is how much of a file is used to find its form: a script may print much before its
// first stack.
const sniffBytes = 64 << 10

// Sniff finds the form of stacks by the first bytes of a file; NoForm for others. A
// bare concatenation of values has no mark.
func Sniff(in *Input) Form {
	head := in.head(sniffBytes)
	if rawdump.Is(head) {
		return Raw
	}
	if magic.Of(head) == magic.Gzip {
		head = gunzipHead(head)
		if isSysting(head) {
			return Systing
		}
		return NoForm
	}
	text := bytes.TrimLeft(head, " \t\r\n")
	switch {
	case isSysting(text):
		return Systing
	case isGadget(text):
		return Gadget
	case mapdump.Sniff(text) != mapdump.NoForm:
		return Bpftool
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
