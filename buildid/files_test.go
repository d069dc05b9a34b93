package buildid

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

func TestDebugPaths(t *testing.T) {
	roots := []string{"/usr/lib/debug", "/opt/debug/"}
	content, err := FromContent(strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		id   ID
		want []string
	}{
		{id: New([]byte("\xab\xcd\xef")),
			want: []string{"/usr/lib/debug/.build-id/ab/cdef.debug",
				"/opt/debug/.build-id/ab/cdef.debug"}},
		{id: New([]byte("\xab"))},
		{id: ID{}},
		{id: Padded([]byte("\xab\xcd\xef\x00"))},
		{id: content},
	}
	for _, tt := range tests {
		if got := DebugPaths(tt.id, roots); !slices.Equal(got, tt.want) {
			t.Errorf("%v: got %q, want %q", tt.id, got, tt.want)
		}
	}
}

func TestFromContent(t *testing.T) {
	id, err := FromContent(iotest.OneByteReader(strings.NewReader("abc")))
	if err != nil {
		t.Fatal(err)
	}
	// The test vector of FIPS 180-1, appendix A.
	if want := "content:a9993e364706816aba3e25717850c26c9cd0d89d"; id.String() != want {
		t.Errorf("got %v, want %s", id, want)
	}
	broken := iotest.ErrReader(io.ErrClosedPipe)
	if id, err := FromContent(broken); !errors.Is(err, io.ErrClosedPipe) || !id.IsZero() {
		t.Errorf("got %v, %v", id, err)
	}
}

func TestFileProof(t *testing.T) {
	base := FileProof{Dev: Device(254, 3), Inode: 77, Gen: 5, Size: 100, MtimeNs: 1000,
		CtimeNs: 2000}
	with := func(change func(*FileProof)) FileProof { p := base; change(&p); return p }
	rec := RecordedFile{Major: 254, Minor: 3, Inode: 77, Gen: 5}
	tests := []struct {
		name   string
		proof  FileProof
		rec    RecordedFile
		end    int64
		same   bool
		proves bool
	}{
		{name: "itself", proof: base, rec: rec, end: 3000, same: true, proves: true},
		{name: "generation unknown", proof: with(func(p *FileProof) { p.Gen = 0 }), rec: rec,
			end: 3000, same: true, proves: true},
		{name: "generation", proof: with(func(p *FileProof) { p.Gen = 6 }), rec: rec, end: 3000},
		{name: "inode", proof: with(func(p *FileProof) { p.Inode = 78 }), rec: rec, end: 3000},
		{name: "device", proof: with(func(p *FileProof) { p.Dev++ }), rec: rec, end: 3000},
		{name: "size", proof: with(func(p *FileProof) { p.Size++ }), rec: rec, end: 3000,
			proves: true},
		{name: "written after the capture", proof: with(func(p *FileProof) { p.MtimeNs = 3001 }),
			rec: rec, end: 3000},
		{name: "renamed after the capture", proof: with(func(p *FileProof) { p.CtimeNs = 3001 }),
			rec: rec, end: 3000},
		{name: "end unknown", proof: base, rec: rec, end: 0, same: true},
		{name: "record without inode", proof: base, rec: RecordedFile{Major: 254, Minor: 3},
			end: 3000, same: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := base.Same(tt.proof); got != tt.same {
				t.Errorf("Same is %v", got)
			}
			if got := tt.proof.Proves(tt.rec, tt.end); got != tt.proves {
				t.Errorf("Proves is %v", got)
			}
		})
	}
	if (FileProof{}).Same(FileProof{}) {
		t.Error("nothing is the same file as nothing")
	}
}

func TestDevice(t *testing.T) {
	for _, tt := range []struct {
		major, minor uint32
		want         uint64
	}{{major: 8, minor: 1, want: 0x801}, {major: 0, minor: 0x33, want: 0x33}, {major: 259,
		minor: 0x12345, want: 0x12310345}, {major: 0x12345, minor: 1, want: 0x1200000034501}} {
		if got := Device(tt.major, tt.minor); got != tt.want {
			t.Errorf("%d:%d: got %#x, want %#x", tt.major, tt.minor, got, tt.want)
		}
	}
}

// TestOfDir: a directory is a build ID if it is long enough to be one.
func TestOfDir(t *testing.T) {
	const long = "00112233445566778899aabbccddeeff00112233"
	for path, want := range map[string]string{
		"/c/[kernel.kallsyms]/" + long + "/kallsyms": long,
		"/c/0011223344556677/debuginfo":              "0011223344556677",
		"/c/ab/kallsyms":                             "",
		"/c/kernel/kallsyms":                         "",
		"kallsyms":                                   "",
	} {
		if got := OfDir(path).Hex(); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

func TestAltPaths(t *testing.T) {
	id := New([]byte{0xab, 0xcd, 0xef})
	for _, tt := range []struct {
		debug, link string
		want        []string
	}{
		{debug: "/t/usr/lib/debug/.build-id/11/22.debug", link: "/usr/lib/debug/.dwz/x/c.debug", want: []string{
			"/usr/lib/debug/.dwz/x/c.debug", "/r/.build-id/ab/cdef.debug", "/t/usr/lib/debug/.build-id/ab/cdef.debug",
			"/r/.dwz/x/c.debug", "/t/usr/lib/debug/.dwz/x/c.debug",
			"/t/usr/lib/debug/.build-id/11/usr/lib/debug/.dwz/x/c.debug", "/t/usr/lib/debug/.build-id/usr/lib/debug/.dwz/x/c.debug",
			"/t/usr/lib/debug/usr/lib/debug/.dwz/x/c.debug", "/t/usr/lib/usr/lib/debug/.dwz/x/c.debug",
			"/t/usr/usr/lib/debug/.dwz/x/c.debug", "/t/usr/lib/debug/.dwz/x/c.debug",
			"/t/usr/lib/debug/.build-id/11/c.debug"}},
		{debug: "/a/b", link: "../c", want: []string{"/c", "/r/.build-id/ab/cdef.debug", "/a/c"}},
		{debug: "/cache/1122/debuginfo", link: "c", want: []string{"/cache/1122/c", "/r/.build-id/ab/cdef.debug",
			"/cache/1122/c", "/cache/abcdef/debuginfo"}},
	} {
		if got := AltPaths(tt.debug, tt.link, id, []string{"/r"}); !slices.Equal(got, tt.want) {
			t.Errorf("%s, %s:\n%q, want\n%q", tt.debug, tt.link, got, tt.want)
		}
	}
}
