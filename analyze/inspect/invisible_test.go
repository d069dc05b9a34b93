package inspect

import (
	"bytes"
	"debug/elf"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"symbolize/fixtures/elfbuild"
	"symbolize/fixtures/must"
)

// TestInvisible: each file whose build ID a kernel does not see is listed with the reason and
// the fix.
func TestInvisible(t *testing.T) {
	id := bytes.Repeat([]byte{0xab}, 20)
	outside := elfbuild.Lib(id, 64)
	outside.Segments = slices.DeleteFunc(outside.Segments, func(s elfbuild.Segment) bool {
		return s.Type == elf.PT_NOTE
	})
	goFile := *outside
	goFile.Sections = append(slices.Clone(outside.Sections),
		elfbuild.Section{Name: ".note.go.buildid", Data: []byte{1}})
	beyond := elfbuild.Lib(id, 5000)
	beyond.Sections = append(beyond.Sections[1:], beyond.Sections[0])
	dir := t.TempDir()
	for name, f := range map[string]*elfbuild.File{
		"good.so": elfbuild.Lib(id, 64), "none.so": elfbuild.Lib(nil, 64), "outside.so": outside,
		"go": &goFile, "beyond.so": beyond, "module.ko": elfbuild.Module(id, 64),
		"long.so": elfbuild.Lib(bytes.Repeat(id, 2), 64), "x.debug": outside.DebugOnly(),
	} {
		must.Write(t, filepath.Join(dir, name), f.Bytes())
	}
	for name, text := range map[string]string{"notes.txt": "no object", "cut.so": elf.ELFMAG} {
		must.Write(t, filepath.Join(dir, name), []byte(text))
	}
	x, err := Invisible(t.Context(), []string{dir})
	if err != nil {
		t.Fatal(err)
	}
	hex := fmt.Sprintf("%x", id)
	goFlags := "go build -ldflags='-linkmode=external -B gobuildid'"
	want := []InvisibleID{
		{"beyond.so", hex, "before 6.12", "note beyond the first page", visibilityFix(255, false)},
		{"go", hex, "all", "note outside PT_NOTE", goFlags},
		{"long.so", hex + hex, "all", "build ID of more than 20 bytes", "gcc -Wl,--build-id=sha1"},
		{"none.so", "", "all", "no build ID", "gcc -Wl,--build-id"},
		{"outside.so", hex, "all", "note outside PT_NOTE",
			"gcc -Wl,--build-id, and a linker script that puts .note.gnu.build-id into a PT_NOTE"},
	}
	for i := range x.Files {
		x.Files[i].Path = filepath.Base(x.Files[i].Path)
	}
	if !slices.Equal(x.Files, want) || x.Objects != 6 {
		t.Errorf("of %d objects\n%+v\nwant\n%+v", x.Objects, x.Files, want)
	}
	if len(x.Problems) != 1 || filepath.Base(x.Problems[0].Path) != "cut.so" {
		t.Errorf("problems %+v", x.Problems)
	}
	var out bytes.Buffer
	x, err = Invisible(t.Context(), []string{filepath.Join(dir, "go")})
	if err != nil || x.WriteText(&out) != nil || !bytes.Contains(out.Bytes(), []byte(goFlags)) ||
		!bytes.Contains(out.Bytes(), []byte("1 of 1 object: ")) {
		t.Errorf("%v, as text:\n%s", err, out.Bytes())
	}
}
