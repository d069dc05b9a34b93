package otlp

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"symbolize/ingest/decode"
	"symbolize/ingest/files"
	"symbolize/ingest/protobuf"
)

// maxMessage bounds a message, unpacked, in bytes: it is in memory as a whole.
const maxMessage = 512 << 20

// zstdMagic begins a frame of zstd.
var zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}

// Detect reports whether a file with these first bytes has profiles of OpenTelemetry.
func Detect(head []byte) bool {
	if begins(head) {
		return true
	}
	if len(head) < 6 {
		return false
	}
	n, body := binary.BigEndian.Uint32(head), head[4:]
	if n < 2 || n > maxMessage {
		return false
	}
	body = body[:min(uint64(len(body)), uint64(n))]
	return begins(body) || bytes.HasPrefix(body, zstdMagic)
}

// begins reports whether a message can begin with these bytes.
func begins(head []byte) bool {
	if isJSON(head) {
		for _, name := range []string{"resourceProfiles", "resource_profiles", "dictionary"} {
			if bytes.Contains(head, []byte(`"`+name+`"`)) {
				return true
			}
		}
		return false
	}
	if len(head) < 4 || head[0] != 0x0a && head[0] != 0x12 {
		return false
	}
	size, n := binary.Uvarint(head[1:])
	if n <= 0 || size < 2 || size > maxMessage || len(head) < n+3 {
		return false
	}
	inner := head[1+n:]
	tag, wire := inner[0]>>3, inner[0]&7
	if wire != protobuf.Bytes || tag == 0 {
		return false
	}
	if head[0] == 0x0a { // in a pprof file a ValueType, of numbers
		return tag <= 3
	}
	// A dictionary begins with an empty entry, or from its end; in a pprof file it is a Sample.
	return tag <= 7 && (inner[1] == 0 || tag > 3)
}

// isJSON reports whether a message is in JSON.
func isJSON(b []byte) bool { return bytes.HasPrefix(bytes.TrimLeft(b, " \t\r\n"), []byte("{")) }

// part is one message of a file, in protobuf.
type part struct {
	data []byte // valid until the next one is read
	at   int64  // offset in the file
	json bool
}

// file reads the messages of a file.
type file struct {
	name string
	r    io.ReaderAt
	size int64

	most int64 // bytes that its messages may unpack to, see files.MaxUnpacked

	unpacked                    int64 // bytes of messages that were packed
	raw, unpackedBuf, converted []byte
}

// frames unpacks messages.
var frames = sync.OnceValue(files.ZstdOptions{Level: files.ZstdFastest, Limit: maxMessage}.Frames)

// messages visits the messages in their order, until visit returns an error. Damage is an error of a
// message: visit has got what was before it, and gets what is after it, if its length is known.
func (f *file) messages(visit func(p part) error) (damage []error, err error) {
	head := make([]byte, 512)
	n, err := f.r.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	switch head = head[:n]; {
	case isJSON(head):
		return f.jsonValues(visit)
	case begins(head):
		data, err := f.read(0, f.size)
		if err != nil {
			return nil, err
		}
		return nil, visit(part{data: data})
	}
	for at := int64(0); at < f.size; {
		bad := func(format string, args ...any) {
			damage = append(damage, f.damage(at, format, args...))
		}
		var size [4]byte
		if _, err := f.r.ReadAt(size[:], at); err != nil {
			bad("the length of a message is cut off")
			return damage, nil
		}
		length := int64(binary.BigEndian.Uint32(size[:]))
		left := f.size - at - 4
		if length == 0 && left > 0 {
			n, err := f.zeros(at)
			if err != nil {
				return damage, err
			}
			bad("%d zero bytes, where messages were", n)
			at += n
			continue
		}
		if length > left {
			bad("a message of %d bytes is cut off after %d", length, left)
			return damage, nil
		}
		data, err := f.read(at+4, length)
		if err != nil {
			return damage, err
		}
		p := part{data: data, at: at + 4}
		if p.data, p.json, err = f.plain(data); err != nil {
			if errors.Is(err, files.ErrTooLarge) {
				return damage, fmt.Errorf("%s: offset %#x: message of %d bytes: %w", f.name, at, length, err)
			}
			bad("message of %d bytes: %v", length, err)
		} else if err := visit(p); err != nil {
			return damage, err
		}
		at += 4 + length
	}
	return damage, nil
}

// zeros returns the size of the zero lengths from an offset on, at least one: pages that were lost at a
// power cut. An incomplete length at the end belongs to them.
func (f *file) zeros(at int64) (n int64, err error) {
	b := make([]byte, 64<<10)
	for {
		got, err := f.r.ReadAt(b[:min(int64(len(b)), f.size-at-n)], at+n)
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		same := got - len(bytes.TrimLeft(b[:got], "\x00"))
		if n += int64(same); at+n == f.size || got == 0 {
			return n, nil
		}
		if same < got {
			return max(n&^3, 4), nil
		}
	}
}

// damage returns the error of a part of the file.
func (f *file) damage(at int64, format string, args ...any) error {
	return &decode.Error{Name: f.name, Offset: at, Reason: fmt.Sprintf(format, args...)}
}

// read returns bytes of the file.
func (f *file) read(at, n int64) ([]byte, error) {
	if n > maxMessage {
		return nil, f.damage(at, "a message of %d MiB, over the limit of %d MiB", n>>20, maxMessage>>20)
	}
	if int64(cap(f.raw)) < n {
		f.raw = make([]byte, n)
	}
	f.raw = f.raw[:n]
	if _, err := f.r.ReadAt(f.raw, at); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return f.raw, nil
}

// plain returns a message unpacked and in protobuf.
func (f *file) plain(data []byte) (out []byte, wasJSON bool, err error) {
	if bytes.HasPrefix(data, zstdMagic) {
		limit := min(maxMessage, files.MaxInMemory(int64(len(data)), f.most),
			files.MaxUnpacked(f.size, f.most)-f.unpacked)
		data, err = frames().UnpackBounded(f.unpackedBuf, data, limit)
		if err != nil {
			return nil, false, err
		}
		f.unpackedBuf, f.unpacked = data, f.unpacked+int64(len(data))
	}
	if !isJSON(data) {
		return data, false, nil
	}
	if !json.Valid(data) {
		return nil, true, errors.New("it is not valid JSON")
	}
	f.converted, err = fromJSON(f.converted[:0], data)
	return f.converted, true, err
}

// jsonValues visits the messages of a file in JSON.
func (f *file) jsonValues(visit func(p part) error) (damage []error, err error) {
	limited := &io.LimitedReader{N: 0}
	limited.R = io.NewSectionReader(f.r, 0, f.size)
	in := json.NewDecoder(limited)
	for {
		at := in.InputOffset()
		limited.N = maxMessage // of one value; what the decoder holds of the next is small
		var value json.RawMessage
		err := in.Decode(&value)
		if errors.Is(err, io.EOF) {
			return damage, nil
		}
		if err != nil {
			return append(damage, f.damage(at, "a message in JSON is cut off or damaged: %v", err)), nil
		}
		f.converted, err = fromJSON(f.converted[:0], value)
		if err != nil {
			damage = append(damage, f.damage(at, "message in JSON: %v", err))
			continue
		}
		if err := visit(part{data: f.converted, at: at, json: true}); err != nil {
			return damage, err
		}
	}
}
