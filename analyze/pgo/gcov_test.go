package pgo

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"symbolize/ingest"
)

// gcovReader reads a file as gcc does (auto-profile.cc).
type gcovReader struct {
	t     *testing.T
	b     []byte
	names []string
	out   strings.Builder
}

func (r *gcovReader) u32() uint32 {
	r.t.Helper()
	if len(r.b) < 4 {
		r.t.Fatal("the file ends early")
	}
	v := binary.LittleEndian.Uint32(r.b)
	r.b = r.b[4:]
	return v
}

func (r *gcovReader) u64() uint64 { return uint64(r.u32()) | uint64(r.u32())<<32 }

func (r *gcovReader) want(words ...uint32) {
	r.t.Helper()
	for _, w := range words {
		if got := r.u32(); got != w {
			r.t.Fatalf("%#x, want %#x", got, w)
		}
	}
}

// section begins a section; the length of names is checked by their end.
func (r *gcovReader) section(tag uint32) uint32 {
	r.t.Helper()
	r.want(tag)
	r.u32()
	return r.u32()
}

func (r *gcovReader) function(indent string) {
	name, lines, calls := r.names[r.u32()], r.u32(), r.u32()
	fmt.Fprintf(&r.out, "%s\n", name)
	for range lines {
		at, targets := r.u32(), r.u32()
		fmt.Fprintf(&r.out, "%s %d.%d: %d", indent, at>>16, at&0xffff, r.u64())
		for range targets {
			r.want(indirectCalls)
			target := r.names[r.u64()]
			fmt.Fprintf(&r.out, " %s:%d", target, r.u64())
		}
		r.out.WriteByte('\n')
	}
	for range calls {
		at := r.u32()
		fmt.Fprintf(&r.out, "%s %d.%d: ", indent, at>>16, at&0xffff)
		r.function(indent + " ")
	}
}

func TestGCOV(t *testing.T) {
	trace := branch(ingest.BranchTrace, false)
	p, v := testProfile(t, row{trace, 3, []ingest.LocationID{a12, a00, a12}},
		row{trace, 2, []ingest.LocationID{a10, a00, a20}})
	sites := New(p, v, 0).sites(0, Plain)
	sites.unit(testUnit())
	var b bytes.Buffer
	if err := sites.writeGCOV(&b); err != nil {
		t.Fatal(err)
	}
	r := &gcovReader{t: t, b: b.Bytes()}
	r.want(gcovMagic, GCOVVersion, 0)
	for range r.section(gcovNames) {
		n := r.u32()
		r.names = append(r.names, strings.TrimSuffix(string(r.b[:n]), "\x00"))
		r.b = r.b[n:]
	}
	for range r.section(gcovFunctions) {
		fmt.Fprintf(&r.out, "%d ", r.u64())
		r.function("")
	}
	if n := r.section(gcovModules); n != 0 || len(r.b) != 0 {
		t.Errorf("%d modules, %d bytes left", n, len(r.b))
	}
	want := "5 f\n 1.0: 5\n 2.4: 5\n 9.0: 0\n 65535.0: 0\n 2.2: _g\n  1.0: 5\n  103.0: 5 f:3\n  5.0: h\n   3.0: 5\n"
	if got := r.out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
