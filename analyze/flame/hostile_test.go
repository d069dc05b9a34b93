package flame_test

import (
	"strings"

	"symbolize/fixtures/profilebuild"
	"symbolize/ingest"
	"symbolize/ingest/addr"
)

// hostileNames try to leave the text that they are part of.
var hostileNames = []string{
	"<script>pwned=1</script>", `"><img src=x onerror=pwned=1>`, "</script><script>pwned=1</script>",
	"]]>", "<!--", `'"&<>`, "a\x1b[31mred", "\u202egnp.exe", "bad\xff\xfeutf8", "\u2028line",
	"{{.Title}}", "${pwned=1}", "nul\x00", strings.Repeat("x<", 5000), ";semi colon 7",
}

// hostile is a profile with hostile names wherever a capture has names.
func hostile() *ingest.Profile {
	b := profilebuild.New(ingest.Event{Name: hostileNames[0], Unit: hostileNames[5]})
	b.Meta = ingest.Meta{Captures: []string{"/tmp/" + hostileNames[2]}, Host: hostileNames[1],
		Command: hostileNames[6]}
	var stack []profilebuild.Place
	for i, n := range hostileNames {
		o := b.Object(ingest.Object{File: ingest.FileRef{Path: "/lib/" + n}})
		p := profilebuild.Place{Object: o, Offset: addr.Offset(i)}
		if i%4 == 3 {
			b.Unresolved(p, ingest.Stripped)
		} else {
			b.Name(p, 0, profilebuild.Frame{Name: n, File: "/src/" + n, Line: 1})
		}
		stack = append(stack, p)
	}
	for _, comm := range hostileNames {
		b.Row(profilebuild.Row{Comm: comm, PID: 1, TID: -1, CPU: -1, Count: 1, Weight: 1,
			Stack: stack})
	}
	return b.Profile()
}
