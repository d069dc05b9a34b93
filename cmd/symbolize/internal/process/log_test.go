package process

import (
	"bytes"
	"log"
	"testing"
)

// TestWithoutHTTP: lines of net/http are left out, others are not.
func TestWithoutHTTP(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		kept       bool
	}{
		{name: "client", text: `Unsolicited response received on idle HTTP channel starting with "x"`},
		{name: "server", text: "http: panic serving 127.0.0.1:1"},
		{name: "database", text: "while opening http.vlog: no such file", kept: true},
	} {
		var b bytes.Buffer
		log.New(WithoutHTTP(&b), "", log.LstdFlags).Print(tt.text)
		if kept := b.Len() > 0; kept != tt.kept {
			t.Errorf("%s: %q", tt.name, b.String())
		}
	}
}
