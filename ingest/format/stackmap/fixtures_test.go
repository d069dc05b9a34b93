package stackmap

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// fixture unpacks a file of fixtures/stacks.
func fixture(t testing.TB, name string) []byte {
	t.Helper()
	f, err := os.Open(filepath.Join("../../../fixtures/stacks", name+".gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func input(name string, data []byte) *Input {
	return &Input{Name: name, R: bytes.NewReader(data), Size: int64(len(data))}
}

// recordedKey is the key of the count maps of fixtures/stackrun.
const recordedKey = "user_stack_id:0,kernel_stack_id:4,tgid:8,pid:12,comm:16"

func mustFields(t testing.TB, text string) []Field {
	t.Helper()
	fields, err := ParseFields(text)
	if err != nil {
		t.Fatal(err)
	}
	return fields
}

// mustRead reads a whole input.
func mustRead(t testing.TB, name string, data []byte, opts *Options) *Set {
	t.Helper()
	set, err := Read(input(name, data), opts)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// frameText is a frame as text.
func (s *Set) frameText(f Frame) string {
	switch f.Status {
	case Valid:
		return fmt.Sprintf("%s+%#x", s.IDs[f.Ref].Hex(), f.Offset)
	case Named:
		return fmt.Sprintf("%s+%#x", s.Symbols[f.Ref].Name, f.Offset)
	}
	return fmt.Sprintf("%#x", f.Offset)
}

func (s *Set) partText(p Part) string {
	if p.Cause != Present {
		return "(" + p.Cause.String() + ")"
	}
	var out []string
	for _, f := range s.Stack(p.Stack) {
		out = append(out, s.frameText(f))
	}
	return strings.Join(out, " ")
}

// text lists the samples of a Set, equal ones counted together, in lines that are
// sorted. with are the labels that are shown.
func (s *Set) text(with Labels) string {
	counts := make(map[string]uint64)
	for i := range s.Samples {
		sm := &s.Samples[i]
		line := s.partText(sm.Kernel) + " | " + s.partText(sm.User)
		if with.PID {
			line += fmt.Sprintf(" | pid %d", sm.PID)
		}
		if with.TID {
			line += fmt.Sprintf(" | tid %d", sm.TID)
		}
		if with.Comm {
			line += " | " + sm.Comm
		}
		counts[line] += sm.Count
	}
	var lines []string
	for line, n := range counts {
		lines = append(lines, fmt.Sprintf("%d × %s", n, line))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
