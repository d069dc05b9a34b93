package texts

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"strconv"
	"unicode/utf8"
)

// NewJSONEncoder returns an encoder of text fit for a terminal. encoding/json does not escape DEL,
// C1 controls, which some terminals obey, and format characters: they are escaped here. Readers of
// JSON see no difference.
func NewJSONEncoder(w io.Writer) *json.Encoder {
	enc := json.NewEncoder(&jsonWriter{w: w})
	enc.SetEscapeHTML(false)
	return enc
}

// WriteJSON writes an object as indented JSON with a final newline. Its first key, schema, has the
// name and the version of its form, "top/1": docs/json.md has the keys of each. The version changes
// if a key goes or changes its meaning.
func WriteJSON(w io.Writer, schema string, object any) error {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(object); err != nil {
		return err
	}
	rest, ok := bytes.CutPrefix(text.Bytes(), []byte("{"))
	if !ok {
		return fmt.Errorf("the JSON of %s is not an object", schema)
	}
	head := "{\n  \"schema\": " + strconv.Quote(schema)
	if rest[0] == '}' {
		head += "\n"
	} else {
		head += ","
	}
	if _, err := io.WriteString(w, head); err != nil {
		return err
	}
	_, err := (&jsonWriter{w: w}).Write(rest)
	return err
}

// WriteJSONList writes an object as WriteJSON does, with a list of the values, which are written one
// at a time. It ends at the first error.
func WriteJSONList[T any](w io.Writer, schema, key string, values iter.Seq2[T, error]) error {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent("    ", "  ")
	head := fmt.Sprintf("{\n  \"schema\": %q,\n  %q: [", schema, key)
	begin, end := head+"\n    ", head+"]\n}\n"
	out := jsonWriter{w: w}
	for v, err := range values {
		text.WriteString(begin)
		if err == nil {
			err = enc.Encode(v)
		}
		if err != nil {
			return err
		}
		text.Truncate(text.Len() - 1) // the newline after a value
		if _, err := out.Write(text.Bytes()); err != nil {
			return err
		}
		text.Reset()
		begin, end = ",\n    ", "\n  ]\n}\n"
	}
	_, err := io.WriteString(w, end)
	return err
}

// AppendJSONString appends s as a JSON string as NewJSONEncoder writes it.
func AppendJSONString(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			b, _ := json.Marshal(s) // no error: any string can be encoded
			return appendJSONText(dst, b)
		}
	}
	return append(append(append(dst, '"'), s...), '"')
}

// jsonWriter escapes JSON text. Encoders write whole values at a time.
type jsonWriter struct {
	w   io.Writer
	buf []byte
}

func (j *jsonWriter) Write(b []byte) (int, error) {
	j.buf = appendJSONText(j.buf[:0], b)
	if _, err := j.w.Write(j.buf); err != nil {
		return 0, err
	}
	return len(b), nil
}

// appendJSONText copies JSON text. Characters to escape occur only in strings.
func appendJSONText(dst, text []byte) []byte {
	from := 0
	for i := 0; i < len(text); {
		if c := text[i]; c >= ' ' && c <= '~' || c == '\n' {
			i++
			continue
		}
		r, n := utf8.DecodeRune(text[i:])
		if fitRune(r) || r == utf8.RuneError || r < ' ' {
			i += n
			continue
		}
		dst = append(dst, text[from:i]...)
		dst = appendEscaped(dst, r)
		i += n
		from = i
	}
	return append(dst, text[from:]...)
}

// appendEscaped appends an escaped character, as a surrogate pair if it has more than 16 bits.
func appendEscaped(dst []byte, r rune) []byte {
	const hex = "0123456789abcdef"
	units := []rune{r}
	if r >= 0x10000 {
		units = []rune{0xd800 + (r-0x10000)>>10, 0xdc00 + (r-0x10000)&0x3ff}
	}
	for _, u := range units {
		dst = append(dst, '\\', 'u', hex[u>>12&15], hex[u>>8&15], hex[u>>4&15], hex[u&15])
	}
	return dst
}
