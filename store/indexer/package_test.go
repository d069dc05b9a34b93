package indexer

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"symbolize/fixtures/must"
)

// arOf makes an ar file of members, names and contents in turn.
func arOf(members ...string) []byte {
	out := []byte(arMagic)
	for i := 0; i < len(members); i += 2 {
		out = fmt.Appendf(out, "%-16s%-12d%-6d%-6d%-8s%-10d%s%s", members[i], 0, 0, 0, "100644",
			len(members[i+1]), arEnd, members[i+1])
		if len(members[i+1])%2 == 1 {
			out = append(out, '\n')
		}
	}
	return out
}

// debOf makes a package of Debian with the tar of its files, which has that name.
func debOf(name string, data []byte) []byte {
	return arOf("debian-binary", "2.0\n", "control.tar.gz", "odd", name, string(data))
}

// TestPackage indexes the files of packages of Debian, whole and cut at any length.
func TestPackage(t *testing.T) {
	dir := t.TempDir()
	const member = "./usr/bin/mixed"
	plain := tarOf(t, []string{member}, map[string][]byte{member: fixture(t, "bin/mixed")})
	for name, data := range map[string][]byte{"data.tar": plain, "data.tar.gz": must.Gzip(t, plain)} {
		path := filepath.Join(dir, "x.deb")
		must.Write(t, path, debOf(name, data))
		m := newMemory()
		sum := m.index(t, Options{}, path)
		o := m.object(t, mixedID(t))
		if len(sum.Problems) > 0 || sum.Objects != 1 {
			t.Fatalf("%s: %d objects, problems %v", name, sum.Objects, sum.Problems)
		}
		if got := o.Sources[0].Path; got != filepath.Join(path, "usr/bin/mixed") {
			t.Errorf("%s: source from %s", name, got)
		}
	}
	whole := debOf("data.tar", plain)
	for n := len(arMagic); n < len(whole)-2048; n += 1 + n/7 {
		must.Write(t, filepath.Join(dir, "cut.deb"), whole[:n])
		sum := newMemory().index(t, Options{NamesOnly: true}, filepath.Join(dir, "cut.deb"))
		if len(sum.Problems) == 0 {
			t.Errorf("%d bytes: no problem", n)
		}
	}
}

// TestPackageRefused: other packages and libraries have a reason and what to do.
func TestPackageRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a file")
	for _, tt := range []struct {
		name         string
		data         []byte
		reason, hint string
	}{
		{name: "static library", data: arOf("a.o/", "x"), reason: "a static library: its code has other " +
			"addresses in the programs linked with it", hint: "index these programs"},
		{name: "thin library", data: []byte(thinMagic), reason: "a static library: its code has other " +
			"addresses in the programs linked with it", hint: "index these programs"},
		{name: "rpm", data: []byte(rpmMagic + "\x03\x00"), reason: "an RPM package, which is not read",
			hint: "unpack it: rpm2cpio '" + path + "' | (cd DIR && cpio -idm), then index DIR"},
		{name: "lzma", data: debOf("data.tar.lzma", nil), reason: "data.tar.lzma is packed by lzma, which is not read",
			hint: "unpack it: dpkg-deb -x '" + path + "' DIR, then index DIR"},
		{name: "without data", data: arOf("debian-binary", "2.0\n"),
			reason: "Debian package: no data.tar in it: EOF"},
		{name: "many members", data: arOf(append([]string{"debian-binary", "2.0\n"},
			strings.Split(strings.Repeat("x ", 2*maxMembers), " ")[:2*maxMembers]...)...),
			reason: "Debian package: no data.tar in it"},
		{name: "no size", data: bytes.Replace(debOf("data.tar", nil), []byte("4         `"), []byte("-4        `"), 1),
			reason: `Debian package: a member with the header "debian-binary   0           0     0     100644  -4        ` +
				"`\\n\""},
	} {
		must.Write(t, path, tt.data)
		sum := newMemory().index(t, Options{}, path)
		if len(sum.Problems) != 1 || sum.Problems[0].Err.Error() != tt.reason || sum.Problems[0].Hint != tt.hint {
			t.Errorf("%s: %+v", tt.name, sum.Problems)
		}
	}
}

// FuzzPackage: any beginning of a file has a reader or an error, and the reader ends.
func FuzzPackage(f *testing.F) {
	f.Add(debOf("data.tar", []byte("x")))
	f.Add(arOf("a.o/", "x"))
	f.Add([]byte(rpmMagic))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := packageData(bufio.NewReader(bytes.NewReader(data)))
		if (r == nil) == (err == nil) {
			t.Fatal(r, err)
		}
		if err == nil {
			if n, _ := io.Copy(io.Discard, r); n > int64(len(data)) {
				t.Errorf("%d bytes of %d", n, len(data))
			}
		}
	})
}
