package bpfprog

import (
	"errors"
	"fmt"
	"io"

	"symbolize/ingest/files"
)

// Bounds: how much of a source is looked at, how often its name may look like the
// definition, and how long parameters are, bytes. No program has that much.
const (
	maxBCCSource  = 1 << 20
	maxMentions   = 1000
	maxParameters = 16 << 10
)

// errSource is wrapped by errors of sources that cannot be read.
var errSource = errors.New("source of a BPF program")

// definedAt returns the line of a C file in which the definition of a function names it; 0 if there
// is no definition.
func definedAt(path, name string) (uint32, error) {
	f, err := files.OpenNoLink(path)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errSource, err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxBCCSource))
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errSource, err)
	}
	s := cScanner{b: b, line: 1}
	for mentions := 0; mentions < maxMentions && s.next(); {
		if s.token != name {
			continue
		}
		mentions++
		if line := s.line; s.isDefinition() {
			return line, nil
		}
	}
	return 0, nil
}

// cScanner splits C into identifiers and single characters, without comments, strings and
// preprocessor lines.
type cScanner struct {
	b     []byte
	at    int
	line  uint32 // of token
	token string
}

// next goes to the next token.
func (s *cScanner) next() bool {
	for s.at < len(s.b) {
		c := s.b[s.at]
		switch {
		case c == '\n':
			s.line++
			s.at++
		case c == ' ' || c == '\t' || c == '\r':
			s.at++
		case c == '/' && s.at+1 < len(s.b) && s.b[s.at+1] == '*':
			s.skip("*/", 2, false)
		case c == '/' && s.at+1 < len(s.b) && s.b[s.at+1] == '/', c == '#':
			s.skip("\n", 1, true)
		case c == '"' || c == '\'':
			s.skip(string(c), 1, true)
		default:
			s.take()
			return true
		}
	}
	return false
}

// skip goes after the next end, which a backslash can hide. The line break that ends a
// comment is counted by next.
func (s *cScanner) skip(end string, opening int, escapes bool) {
	s.at += opening
	for s.at < len(s.b) {
		switch rest := s.b[s.at:]; {
		case escapes && rest[0] == '\\' && len(rest) > 1:
			if rest[1] == '\n' {
				s.line++
			}
			s.at += 2
		case len(rest) >= len(end) && string(rest[:len(end)]) == end:
			if end != "\n" {
				s.at += len(end)
			}
			return
		case rest[0] == '\n':
			s.line++
			s.at++
		default:
			s.at++
		}
	}
}

// take consumes the current token.
func (s *cScanner) take() {
	start := s.at
	for s.at < len(s.b) && isIdentifier(s.b[s.at]) {
		s.at++
	}
	s.at = max(s.at, start+1)
	s.token = string(s.b[start:s.at])
}

func isIdentifier(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' ||
		c >= 0x80
}

// isDefinition reports whether parameters and a body follow, from the token on.
func (s *cScanner) isDefinition() bool {
	back := *s
	depth := 0
	for first := true; s.at-back.at < maxParameters && s.next(); first = false {
		switch {
		case s.token == "(":
			depth++
		case first:
			*s = back
			return false
		case s.token == ")":
			depth--
		case depth == 0:
			if s.token == "{" {
				return true
			}
			if !isIdentifier(s.token[0]) { // of an attribute
				*s = back
				return false
			}
		}
	}
	*s = back
	return false
}
