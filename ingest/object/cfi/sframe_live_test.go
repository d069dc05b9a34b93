package cfi

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"symbolize/fixtures/must"
	"symbolize/ingest/addr"
	ingestelf "symbolize/ingest/object/elf"
)

// TestLiveAssembler compares the rules of sections that the GNU assembler writes with those of
// .eh_frame, which it writes from the same directives: as they are, and rewritten to the later
// versions.
func TestLiveAssembler(t *testing.T) {
	if os.Getenv("SYMBOLIZE_LIVE") == "" {
		t.Skip("SKIPPED: SYMBOLIZE_LIVE is not set")
	}
	file := filepath.Join(t.TempDir(), "lib.so")
	source, err := filepath.Abs("../../../fixtures/src/unwind/recursion.c")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gcc", "-O2", "-fPIC", "-shared", "-Wa,--gsframe", "-o", file, source).CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: no assembler that writes .sframe: %v: %s", err, out)
	}
	data := must.Read(t, file)
	f, err := ingestelf.Open(file, bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	s, err := FindSFrame(f)
	if err != nil || s == nil {
		t.Fatal(s, err)
	}
	eh, err := FindEHFrame(f)
	if err != nil || eh == nil {
		t.Fatal(eh, err)
	}
	want := NewBuilder(ArchOf(elf.EM_X86_64))
	if _, err := eh.Rules(want); err != nil {
		t.Fatal(err)
	}
	sections := []*SFrame{s}
	if s.version == 1 {
		for version := byte(2); version <= 3; version++ {
			later := &SFrame{Data: rewrite(s, version), Addr: s.Addr, Name: fmt.Sprintf("version %d", version)}
			if err := later.header(); err != nil {
				t.Fatal(err)
			}
			sections = append(sections, later)
		}
	}
	for _, s := range sections {
		b := NewBuilder(ArchOf(elf.EM_X86_64))
		if lost, err := s.Rules(b); lost > 0 || err != nil {
			t.Errorf("version %d: lost %d, %v", s.version, lost, err)
		}
		same, none := 0, 0
		theirs, ours := ruleAt(want), ruleAt(b)
		for _, a := range theirs.starts {
			switch got := ours.at(a); {
			case got == theirs.at(a):
				same++
			case got == "none": // functions with a realigned stack, in versions 1 and 2
				none++
			case strings.Contains(theirs.at(a), "["): // of the PLT, by an expression
			default:
				t.Errorf("version %d: %#x: %s, .eh_frame has %s", s.version, a, got, theirs.at(a))
			}
		}
		t.Logf("version %d: %d rows as in .eh_frame, %d without", s.version, same, none)
		if same < 10 || none > same/2 {
			t.Errorf("version %d: %d rows, %d without", s.version, same, none)
		}
	}
}

// ruleTexts are rules by where they begin.
type ruleTexts struct {
	starts []addr.Addr
	texts  []string
}

func ruleAt(b *Builder) (r ruleTexts) {
	for _, line := range lines(b) {
		var a addr.Addr
		n, _ := fmt.Sscanf(line, "%x", &a)
		if n == 1 {
			r.starts = append(r.starts, a)
			r.texts = append(r.texts, line[len(fmt.Sprintf("%x ", uint64(a))):])
		}
	}
	return r
}

func (r ruleTexts) at(a addr.Addr) string {
	i, ok := slices.BinarySearch(r.starts, a)
	if !ok {
		i--
	}
	if i < 0 {
		return "none"
	}
	return r.texts[i]
}

// rewrite makes a section of a later version of one of version 1.
func rewrite(s *SFrame, version byte) []byte {
	le := binary.LittleEndian
	var index, rows []byte
	for i := range s.numbers {
		old := s.funcs[i*s.entry:][:s.entry]
		from, to := le.Uint32(old[8:]), uint32(len(s.rows))
		for k := range s.numbers {
			if next := le.Uint32(s.funcs[k*s.entry+8:]); next > from {
				to = min(to, next)
			}
		}
		block := byte(0)
		if old[16]&infoBlock != 0 {
			block = 16
		}
		if version == 2 {
			index = append(append(index, old...), block, 0, 0)
			continue
		}
		start := int64(int32(le.Uint32(old))) - int64(sframeHeader+16*i)
		index = append(le.AppendUint64(index, uint64(start)), old[4:8]...)
		index = le.AppendUint32(index, uint32(len(rows)))
		rows = append(le.AppendUint16(rows, uint16(le.Uint32(old[12:]))), old[16], 0, block)
		rows = append(rows, s.rows[from:to]...)
	}
	if version == 2 {
		rows = s.rows
	}
	b := slices.Clone(s.Data[:sframeHeader])
	b[2], b[7] = version, 0
	le.PutUint32(b[16:], uint32(len(rows)))
	le.PutUint32(b[20:], 0)
	le.PutUint32(b[24:], uint32(len(index)))
	return append(append(b, index...), rows...)
}
