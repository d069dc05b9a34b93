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
	files int
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

// text reads a whole file.
func (r *gcovReader) text(version uint32) string {
	r.t.Helper()
	r.want(gcovMagic, version, 0)
	if version >= GCOV3 {
		r.want(gcovSummary)
		for range 5 {
			fmt.Fprintf(&r.out, "%d ", r.u64())
		}
		for range r.u64() {
			fmt.Fprintf(&r.out, "%d:%d:%d ", r.u32(), r.u64(), r.u64())
		}
		r.out.WriteByte('\n')
	}
	names := r.section(gcovNames)
	if version >= GCOV3 {
		names, r.files = r.u32(), int(names)
	}
	for range names {
		n := r.u32()
		r.names = append(r.names, strings.TrimSuffix(string(r.b[:n]), "\x00"))
		if r.b = r.b[n:]; version >= GCOV3 {
			r.want(noFile)
		}
	}
	for range r.section(gcovFunctions) {
		fmt.Fprintf(&r.out, "%d ", r.u64())
		if version >= GCOV3 {
			r.want(0, 0)
		}
		r.function("")
	}
	if n := r.section(gcovModules); n != 0 || r.files != 0 || len(r.b) != 0 {
		r.t.Errorf("%d modules, %d files, %d bytes left", n, r.files, len(r.b))
	}
	return r.out.String()
}

func TestGCOV(t *testing.T) {
	trace := branch(ingest.BranchTrace, false)
	const functions = "5 f\n 1.0: 5\n 2.4: 5\n 9.0: 0\n 65535.0: 0\n 2.2: _g\n  1.0: 5\n  103.0: 5 f:3\n  5.0: h\n   3.0: 5\n"
	for _, tt := range []struct {
		version uint32
		want    string
	}{
		{GCOV2, functions},
		// 25 in five of seven lines: three make up 60 % of them.
		{GCOV3, "25 5 5 7 1 10000:5:1 100000:5:1 200000:5:1 300000:5:2 400000:5:2 500000:5:3 600000:5:3 700000:5:4 " +
			"800000:5:4 900000:5:5 950000:5:5 990000:5:5 999000:5:5 999900:5:5 999990:5:5 999999:5:5 \n" + functions},
	} {
		p, v := testProfile(t, row{trace, 3, []ingest.LocationID{a12, a00, a12}},
			row{trace, 2, []ingest.LocationID{a10, a00, a20}})
		sites := New(p, v, 0).sites(0, Plain)
		sites.unit(testUnit())
		var b bytes.Buffer
		if err := sites.writeGCOV(&b, tt.version); err != nil {
			t.Fatal(err)
		}
		r := &gcovReader{t: t, b: b.Bytes()}
		if got := r.text(tt.version); got != tt.want || r.names[0] != "" {
			t.Errorf("version %d, name 0 is %q: got\n%s\nwant\n%s", tt.version, r.names[0], got, tt.want)
		}
	}
}
