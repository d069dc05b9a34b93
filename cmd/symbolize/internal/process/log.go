package process

import (
	"bytes"
	"io"
)

// WithoutHTTP returns a writer for package log that leaves out the lines of net/http: its client
// prints violations of the protocol by servers; errors of requests are reported elsewhere.
func WithoutHTTP(w io.Writer) io.Writer { return withoutHTTP{w} }

type withoutHTTP struct{ io.Writer }

// Write implements io.Writer, for a line.
func (w withoutHTTP) Write(line []byte) (int, error) {
	for _, words := range []string{" http: ", " http2: ", " Unsolicited response received on idle HTTP "} {
		if bytes.Contains(line, []byte(words)) {
			return len(line), nil
		}
	}
	return w.Writer.Write(line)
}
