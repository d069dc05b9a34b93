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
		{New([]byte("\xab\xcd\xef")),
			[]string{"/usr/lib/debug/.build-id/ab/cdef.debug",
				"/opt/debug/.build-id/ab/cdef.debug"}},
		{New([]byte("\xab")), nil},
		{ID{}, nil},
		{Padded([]byte("\xab\xcd\xef\x00")), nil},
		{content, nil},
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
		{"itself", base, rec, 3000, true, true},
		{"generation unknown", with(func(p *FileProof) { p.Gen = 0 }), rec, 3000, true, true},
		{"generation", with(func(p *FileProof) { p.Gen = 6 }), rec, 3000, false, false},
		{"inode", with(func(p *FileProof) { p.Inode = 78 }), rec, 3000, false, false},
		{"device", with(func(p *FileProof) { p.Dev++ }), rec, 3000, false, false},
		{"size", with(func(p *FileProof) { p.Size++ }), rec, 3000, false, true},
		{"written after the capture", with(func(p *FileProof) { p.MtimeNs = 3001 }), rec, 3000,
			false, false},
		{"renamed after the capture", with(func(p *FileProof) { p.CtimeNs = 3001 }), rec, 3000,
			false, false},
		{"end unknown", base, rec, 0, true, false},
		{"record without inode", base, RecordedFile{Major: 254, Minor: 3}, 3000, true, false},
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
	}{{8, 1, 0x801}, {0, 0x33, 0x33}, {259, 0x12345, 0x12310345}, {0x12345, 1, 0x1200000034501}} {
		if got := Device(tt.major, tt.minor); got != tt.want {
			t.Errorf("%d:%d: got %#x, want %#x", tt.major, tt.minor, got, tt.want)
		}
	}
}
