package ingest

import (
	"encoding/json"
	"io"
	"unicode/utf8"
)

// NewJSONEncoder returns an encoder whose text is fit for a terminal. encoding/json escapes
// the controls of ASCII but for DEL, and passes those above it, which some terminals obey,
// and format characters: they are escaped here. A reader of JSON sees no difference.
func NewJSONEncoder(w io.Writer) *json.Encoder {
	enc := json.NewEncoder(&jsonWriter{w: w})
	enc.SetEscapeHTML(false)
	return enc
}

// WriteJSON writes v as indented JSON with a final newline.
func WriteJSON(w io.Writer, v any) error {
	enc := NewJSONEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// AppendJSONString appends s as a JSON string with the text of NewJSONEncoder.
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

// appendJSONText copies JSON text. Characters to be escaped are in its strings alone.
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

// appendEscaped appends a character as JSON escapes it, one above 16 bits as a pair of
// surrogates.
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
