package stackmap

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// isBpftraceJSON reports whether text begins as `bpftrace -f json` does, and has a stack.
func isBpftraceJSON(text []byte) bool {
	rest, ok := bytes.CutPrefix(text, []byte("{"))
	if !ok || !bytes.HasPrefix(bytes.TrimLeft(rest, " "), []byte(`"type":`)) {
		return false
	}
	var plain bytes.Buffer
	x := jsonTrace{in: bufio.NewReader(bytes.NewReader(text)), line: func(line []byte) {
		plain.Write(append(line, '\n'))
	}}
	x.read()
	return isBpftrace(plain.Bytes())
}

// readBpftraceJSON reads the output of `bpftrace -f json`.
func readBpftraceJSON(set *Set, in *Input) error {
	t := traceReader{set: set}
	set.Counted = true
	x := jsonTrace{in: bufio.NewReaderSize(in.reader(), 64<<10), line: t.line}
	x.read()
	t.printed()
	if x.damaged > 0 {
		set.warn(fmt.Errorf("%s: %d lines are damaged, the first at %w", in.Name, x.damaged, x.first))
	}
	if x.err != nil {
		return fmt.Errorf("%s: offset %#x: %w", in.Name, x.at, x.err)
	}
	return nil
}

// jsonTrace makes the lines of bpftrace's text of its JSON.
type jsonTrace struct {
	in      *bufio.Reader
	line    func([]byte)
	at      int64  // bytes of in that were read
	left    int    // bytes of the current token
	ended   bool   // the line was
	printed []byte // by printf, without newline
	damaged int
	first   error // of damaged lines
	err     error // of in
}

// errLongToken is the error of a key or text of more than maxLine bytes.
var errLongToken = fmt.Errorf("a text of more than %d bytes", maxLine)

// read reads all lines, each an object.
func (x *jsonTrace) read() {
	for x.err == nil {
		start := x.at
		if _, err := x.in.Peek(1); err != nil {
			x.note(err)
			break
		}
		x.ended = false
		err := x.object(json.NewDecoder(x))
		if x.err == nil && err != nil {
			if x.damaged++; x.first == nil {
				x.first = fmt.Errorf("offset %#x: %w", start, err)
			}
		}
		for x.left = maxLine; x.err == nil && !x.ended; x.left = maxLine {
			var rest [4 << 10]byte
			if _, err := x.Read(rest[:]); err != nil {
				break
			}
		}
	}
	x.flush()
}

// note keeps an error of in that is not its end.
func (x *jsonTrace) note(err error) {
	if !errors.Is(err, io.EOF) {
		x.err = err
	}
}

// Read implements io.Reader: the bytes up to the end of the line.
func (x *jsonTrace) Read(b []byte) (int, error) {
	switch {
	case x.ended:
		return 0, io.EOF
	case x.left <= 0:
		return 0, errLongToken
	}
	if _, err := x.in.Peek(1); err != nil {
		x.note(err)
		x.ended = true
		return 0, err
	}
	have, _ := x.in.Peek(x.in.Buffered())
	if i := bytes.IndexByte(have, '\n'); i >= 0 {
		have = have[:i+1]
	}
	n := copy(b[:min(len(b), x.left)], have)
	x.ended = n == len(have) && have[n-1] == '\n'
	x.left -= n
	x.at += int64(n)
	_, err := x.in.Discard(n)
	return n, err
}

// token returns the next token of a line.
func (x *jsonTrace) token(dec *json.Decoder) (json.Token, error) {
	x.left = maxLine
	token, err := dec.Token()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return token, err
}

// text returns the next token, a string.
func (x *jsonTrace) text(dec *json.Decoder) (string, error) {
	token, err := x.token(dec)
	s, ok := token.(string)
	if err == nil && !ok {
		err = fmt.Errorf("%v where a text should be", token)
	}
	return s, err
}

// value returns the next value as it is, without quotes.
func (x *jsonTrace) value(dec *json.Decoder) (string, error) {
	x.left = maxLine
	var raw json.RawMessage
	err := dec.Decode(&raw)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return strings.Trim(string(raw), `"`), err // large numbers are texts
}

// object reads a line: {"type": TYPE, "data": DATA}. Maps have DATA {NAME: VALUE} or, with a key,
// {NAME: {KEY: VALUE, …}}; printf has a text. Others have no stacks.
func (x *jsonTrace) object(dec *json.Decoder) error {
	if token, err := x.token(dec); err != nil || token != json.Delim('{') {
		return cmpError(err, token)
	}
	kind := ""
	for {
		token, err := x.token(dec)
		name, ok := token.(string)
		switch {
		case err != nil || token == json.Delim('}'):
			return err
		case ok && name == "type":
			kind, err = x.text(dec)
		case ok && name == "data" && kind == "printf":
			err = x.printf(dec)
		case ok && name == "data" && (kind == "map" || kind == "hist" || kind == "stats"):
			err = x.maps(dec)
		default:
			_, err = x.value(dec)
		}
		if err != nil {
			return err
		}
	}
}

func cmpError(err error, token json.Token) error {
	if err == nil {
		err = fmt.Errorf("%v where an object should be", token)
	}
	return err
}

// printf adds the text that a script printed.
func (x *jsonTrace) printf(dec *json.Decoder) error {
	text, err := x.text(dec)
	if err != nil {
		return err
	}
	x.printed = append(x.printed, text...)
	for {
		line, rest, ok := bytes.Cut(x.printed, []byte("\n"))
		if !ok {
			break
		}
		x.line(line)
		x.printed = rest
	}
	if len(x.printed) > maxLine {
		x.flush()
	}
	return nil
}

// flush ends a line of printed text.
func (x *jsonTrace) flush() {
	if len(x.printed) > 0 {
		x.line(x.printed)
	}
	x.printed = nil
}

// maps makes the lines of maps: "@name[KEY]: VALUE", and "@name: VALUE" of those without a key.
func (x *jsonTrace) maps(dec *json.Decoder) error {
	x.flush()
	if token, err := x.token(dec); err != nil || token != json.Delim('{') {
		return cmpError(err, token)
	}
	for {
		token, err := x.token(dec)
		name, ok := token.(string)
		if err != nil || !ok { // the end of the object
			return err
		}
		token, err = x.token(dec)
		switch {
		case err != nil:
			return err
		case token == json.Delim('{'):
			err = x.entries(dec, name)
		case token == json.Delim('['): // a histogram
			for dec.More() && err == nil {
				_, err = x.value(dec)
			}
			if err == nil {
				_, err = x.token(dec)
			}
		default:
			x.lines(fmt.Sprintf("%s: %v", name, token))
		}
		if err != nil {
			return err
		}
	}
}

// entries makes the lines of a map with keys, up to its end.
func (x *jsonTrace) entries(dec *json.Decoder, name string) error {
	for {
		token, err := x.token(dec)
		key, ok := token.(string)
		if err != nil || !ok {
			return err
		}
		value, err := x.value(dec)
		if err != nil {
			return err
		}
		x.lines(fmt.Sprintf("%s[%s]: %s", name, key, strings.ReplaceAll(value, "\n", " ")))
	}
}

func (x *jsonTrace) lines(text string) {
	for line := range strings.SplitSeq(text, "\n") {
		x.line([]byte(line))
	}
}
