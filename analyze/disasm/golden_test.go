package disasm

import (
	"bytes"
	"encoding/hex"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"symbolize/fixtures/golden"
	"symbolize/fixtures/must"
	"symbolize/ingest/addr"
)

// line is an instruction of a listing: bytes and text.
type line struct {
	at   uint64
	code []byte
	text string
}

// readListing reads `objdump -d -w` output: address, bytes, instruction, by tabs.
func readListing(t testing.TB, file string) []line {
	t.Helper()
	data := must.Read(t, file)
	var list []line
	at := uint64(0)
	for text := range strings.Lines(string(data)) {
		parts := strings.SplitN(strings.TrimRight(text, "\n"), "\t", 3)
		if len(parts) < 3 {
			continue
		}
		code, err := hex.DecodeString(strings.ReplaceAll(strings.TrimSpace(parts[1]), " ", ""))
		if err != nil {
			t.Fatalf("%s: %q: %v", file, text, err)
		}
		list = append(list, line{at, code, parts[2]})
		at += uint64(len(code))
	}
	if len(list) < 50 {
		t.Fatalf("%s: only %d instructions", file, len(list))
	}
	return list
}

// TestListings: boundaries and texts equal objdump 2.40 for testdata/amd64.s and llvm-objdump 14
// for testdata/arm64.s, each instruction alone and all in a row.
func TestListings(t *testing.T) {
	for machine, file := range map[string]string{
		"x86_64": "testdata/amd64.objdump", "aarch64": "testdata/arm64.objdump",
	} {
		d, err := New(machine, ATT)
		if err != nil {
			t.Fatal(err)
		}
		list := readListing(t, file)
		var code []byte
		for _, l := range list {
			code = append(code, l.code...)
		}
		n := 0
		for inst := range d.Decode(code, 0) {
			if n == len(list) {
				t.Fatalf("%s: more than %d instructions", file, n)
			}
			w := list[n]
			if uint64(inst.Offset) != w.at || inst.Len != len(w.code) {
				t.Fatalf("%s: %s at %#x, %d bytes; want %s at %#x, % x", file, inst.Text,
					inst.Offset, inst.Len, w.text, w.at, w.code)
			}
			if got, want := canonical(inst.Text), canonical(w.text); got != want {
				t.Errorf("%s: %#x % x is %q, want %q", file, w.at, w.code, got, want)
			}
			n++
		}
		if n != len(list) {
			t.Errorf("%s: %d instructions, want %d", file, n, len(list))
		}
	}
}

var number = regexp.MustCompile(`\b0x[0-9a-f]+\b`)

// canonical removes the differences between LLVM and objdump for arm64 from an instruction:
// case, and whether constants are hexadecimal.
func canonical(s string) string {
	if strings.HasPrefix(s, "<unknown>") || strings.HasPrefix(s, ".inst") {
		return "unknown"
	}
	return number.ReplaceAllStringFunc(strings.ToLower(plain(s)), func(n string) string {
		v, err := strconv.ParseUint(n[2:], 16, 64)
		if err != nil {
			return n
		}
		return strconv.FormatUint(v, 10)
	})
}

// TestIntel: the other syntax, as recorded and read through.
func TestIntel(t *testing.T) {
	d, err := New("x86_64", Intel)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	for _, l := range readListing(t, "testdata/amd64.objdump") {
		for inst := range d.Decode(l.code, addr.PC(l.at)) {
			out.WriteString(hex.EncodeToString(l.code) + "\t" + inst.Text + "\n")
		}
	}
	golden.Compare(t, "amd64.intel", out.Bytes())
}
