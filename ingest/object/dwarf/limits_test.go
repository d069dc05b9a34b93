package dwarf

import (
	"bytes"
	"strings"
	"testing"

	"symbolize/fixtures/dwarfbuild"
)

// Each limit is tried with as many as it allows, and with one more.

func TestLimitUnits(t *testing.T) {
	empty := new(dwarfbuild.Buf)
	empty.U32(8).U16(4).U32(0).U8(8, 0) // no root entry
	for _, n := range []int{maxUnits, maxUnits + 1} {
		d := New(Sections{Info: bytes.Repeat(empty.B, n), Abbrev: []byte{0}}, Options{})
		d.scan()
		if got := len(d.units.list); got != maxUnits {
			t.Errorf("%d of %d units", got, n)
		}
		if refused := d.scanErr.reason == "too many units"; refused != (n > maxUnits) {
			t.Errorf("%d units: %q", n, d.scanErr.reason)
		}
	}
}

func TestLimitAbbrevs(t *testing.T) {
	enc := encoding{addrSize: 8, refAddr: 4}
	for _, n := range []int{maxAbbrevs, maxAbbrevs + 1} {
		var many dwarfbuild.Buf
		for i := range n {
			many.ULEB(uint64(i+1), tagSubprogram).U8(0, 0, 0)
		}
		many.U8(0)
		var table abbrevs
		reason := table.parse(many.B, 0, enc)
		if (reason == "too many abbreviations") != (n > maxAbbrevs) || len(table.list) != maxAbbrevs {
			t.Errorf("%d abbreviations: %d, %q", n, len(table.list), reason)
		}
		if _, reason := table.parseOne(many.B, 0, maxAbbrevs+1, enc); reason == "" {
			t.Errorf("number %d was looked for and found", maxAbbrevs+1)
		}
	}
	for _, n := range []int{maxAbbrevAttrs, maxAbbrevAttrs + 1} {
		var wide dwarfbuild.Buf
		wide.ULEB(1, tagSubprogram).U8(0)
		for range n {
			wide.ULEB(atDeclLine, formData1)
		}
		wide.U8(0, 0, 0)
		var table abbrevs
		reason := table.parse(wide.B, 0, enc)
		if (reason == "too many attributes in an abbreviation") != (n > maxAbbrevAttrs) {
			t.Errorf("%d attributes: %q", n, reason)
		}
	}
}

func TestLimitString(t *testing.T) {
	for _, n := range []int{maxString - 1, maxString} {
		sec := append(bytes.Repeat([]byte{'x'}, n), 0)
		if s, ok := cstringAt(sec, 0); ok != (n < maxString) || ok && len(s) != n {
			t.Errorf("string of %d bytes: %d, %v", n, len(s), ok)
		}
		r := buf{b: sec}
		if s := r.cstring(); r.bad != (n >= maxString) || !r.bad && len(s) != n {
			t.Errorf("string of %d bytes in place: %d, %v", n, len(s), r.bad)
		}
	}
}

// fileCount reads a line table of one version with so many files and directories.
func fileCount(version uint16, dirs, files int) string {
	var tables dwarfbuild.Buf
	tables.U8(1, 1)
	if version >= 4 {
		tables.U8(1)
	}
	tables.U8(0, 14, 1)
	if version >= 5 {
		for _, n := range []int{dirs, files} {
			tables.U8(1).ULEB(lnctPath, formString).ULEB(uint64(n))
			tables.B = append(tables.B, bytes.Repeat([]byte("a\x00"), n)...)
		}
	} else {
		tables.B = append(tables.B, bytes.Repeat([]byte("a\x00"), dirs-1)...)
		tables.U8(0)
		tables.B = append(tables.B, bytes.Repeat([]byte("a\x00\x00\x00\x00"), files-1)...)
		tables.U8(0)
	}
	var line dwarfbuild.Buf
	head := 2 + 4
	if version >= 5 {
		head += 2
	}
	line.U32(uint32(head + len(tables.B))).U16(version)
	if version >= 5 {
		line.U8(8, 0)
	}
	line.U32(uint32(len(tables.B)))
	var h lineHeader
	return h.parse(&Sections{Line: append(line.B, tables.B...)}, 0, 8)
}

func TestLimitFiles(t *testing.T) {
	for version := uint16(2); version <= 5; version++ {
		if reason := fileCount(version, maxFiles, maxFiles); reason != "" {
			t.Errorf("version %d, as many as may be: %s", version, reason)
		}
		for _, reason := range []string{fileCount(version, maxFiles+1, 2),
			fileCount(version, 2, maxFiles+1)} {
			if !strings.Contains(reason, "too many") && !strings.Contains(reason, "more files") {
				t.Errorf("version %d, one more: %q", version, reason)
			}
		}
	}
}

func TestLimitEntryForms(t *testing.T) {
	for _, n := range []int{maxEntryForms, maxEntryForms + 1} {
		var b dwarfbuild.Buf
		b.U8(byte(n))
		for range n {
			b.ULEB(lnctPath, formString)
		}
		b.ULEB(0)
		var h lineHeader
		reason := h.table5(&buf{b: b.B}, &Sections{}, h.addDir)
		if (reason != "") != (n > maxEntryForms) {
			t.Errorf("%d forms: %q", n, reason)
		}
	}
}

func TestLimitOrigins(t *testing.T) {
	for _, n := range []int{maxOriginChain - 1, maxOriginChain} {
		u := cu(4)
		last := sub(name("end"))
		u.Root.Add(last)
		for range n - 1 {
			last = sub(attr{Attr: atAbstractOrigin, Form: formRef4, Val: last})
			u.Root.Add(last)
		}
		u.Root.Add(sub(attr{Attr: atAbstractOrigin, Form: formRef4, Val: last}, low(0x1000),
			length(4), udata(atDeclLine, 1)))
		got := dump(t, New(built(one(u).Sections(), false), Options{}))
		if named := strings.HasPrefix(got, "end"); named != (n < maxOriginChain) {
			t.Errorf("%d references: %s", n, got)
		}
	}
}

func TestLimitPackage(t *testing.T) {
	index := func(cols, units, slots uint32) string {
		var b dwarfbuild.Buf
		b.U16(5).U16(0).U32(cols).U32(units).U32(slots)
		room := 12*uint64(slots) + 4*uint64(cols) + 8*uint64(cols)*uint64(units)
		_, bad := parseIndex(append(b.B, make([]byte, room)...), false)
		return bad.reason
	}
	if reason := index(maxDWPColumns, 1, 1); reason != "" {
		t.Errorf("%d columns: %s", maxDWPColumns, reason)
	}
	if index(maxDWPColumns+1, 1, 1) == "" {
		t.Errorf("%d columns are not too many", maxDWPColumns+1)
	}
	if index(1, maxDWPUnits+1, maxDWPUnits+1) == "" {
		t.Errorf("%d units are not too many", maxDWPUnits+1)
	}
}

// TestLimitInflated claims sizes at the limits; nothing is inflated to find out.
func TestLimitInflated(t *testing.T) {
	for _, c := range []struct {
		claim uint64
		size  uint64 // that the section header gives
		bad   bool
	}{
		{claim: inflateFloor, size: 20}, // any section may grow to that
		{claim: inflateFloor + maxInflateRatio, size: 20, bad: true},
		{claim: inflateFloor + maxInflateRatio, size: inflateFloor/maxInflateRatio + 2},
		{claim: maxInflated, size: 1 << 40},
		{claim: maxInflated + 1, size: 1 << 40, bad: true},
	} {
		l := Load(bytes.NewReader(zdebug(c.claim, nil)),
			[]RawSection{{Name: ".zdebug_info", Size: c.size}}, LoadOptions{TempDir: t.TempDir()})
		if len(l.Problems) != 1 {
			t.Fatalf("%d problems", len(l.Problems))
		}
		refused := strings.Contains(l.Problems[0].Error(), "claim to inflate")
		if refused != c.bad {
			t.Errorf("%d bytes that claim to be %d: %v", c.size, c.claim, l.Problems[0])
		}
		l.Close()
	}
}
