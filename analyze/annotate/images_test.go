package annotate

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"symbolize/analyze/disasm"
	"symbolize/fixtures/golden"
	"symbolize/fixtures/profilebuild"
	"symbolize/ingest"
	"symbolize/ingest/addr"
)

// hostCode is code by the object's path: images of one program.
type hostCode map[string]*Code

func (c hostCode) Code(o *ingest.Object, _ *HotFunction) (*Code, error) {
	if code := c[o.File.Path]; code != nil {
		return code, nil
	}
	return nil, errors.New("no image")
}

// onHosts has samples of one function in three images and of another program with its name: on host a
// a nop each byte, on b two bytes a line, c without BPF instructions, d of other lines.
func onHosts() (*ingest.Profile, hostCode) {
	image := func(host, program string, each int, noBPF error) *Code {
		return &Code{Machine: "x86_64", PC: 0x1000, Bytes: []byte(strings.Repeat("\x90", 3*each)),
			Origin: "image on " + host, Program: program,
			Lines: func(offsets []int) []CodeLine {
				list := make([]CodeLine, len(offsets))
				for i, at := range offsets {
					list[i] = CodeLine{File: "x.c", Line: uint32(1 + at/each), Source: "line;"}
				}
				return list
			},
			BPF: func() (*BPFCode, error) {
				code := &BPFCode{}
				for i := range 3 {
					code.Instructions = append(code.Instructions, disasm.BPFInst{Index: i, Size: 1, Text: "(95) exit"})
					code.Runs = append(code.Runs, BPFRun{Index: i, Offset: uint32(each * i),
						CodeLine: CodeLine{File: "x.c", Line: uint32(1 + i), Source: "line;"}})
				}
				return code, noBPF
			}}
	}
	code := hostCode{"a": image("a", "p", 1, nil), "b": image("b", "p", 2, nil),
		"c": image("c", "p", 1, errors.New("left out")), "d": image("d", "q", 1, nil)}
	b := profilebuild.New(profilebuild.Clock())
	objects := make(map[string]profilebuild.Object)
	for host := range code {
		objects[host] = b.Object(ingest.Object{Kind: ingest.JIT, File: ingest.FileRef{Path: host}})
	}
	for _, s := range []struct {
		host   string
		offset uint64
		count  uint64
	}{{"a", 0, 1}, {"a", 2, 4}, {"b", 0, 10}, {"b", 1, 20}, {"b", 4, 40}, {"b", 99, 7}, {"c", 1, 3}, {"d", 0, 50}} {
		place := profilebuild.Place{Object: objects[s.host], Offset: addr.Offset(s.offset)}
		b.Name(place, s.offset, profilebuild.Frame{Name: "bpf_prog_0102030405060708_f"})
		b.Row(profilebuild.Row{PID: -1, TID: -1, CPU: -1, Count: s.count, Weight: s.count * 1000,
			Stack: []profilebuild.Place{place}})
	}
	return b.Profile(), code
}

// TestImages: samples of all images of a program add up by line and by run; instructions have those
// of one image; another program of the same name is a function of its own.
func TestImages(t *testing.T) {
	p, code := onHosts()
	a := New(p, code, Options{})
	if len(a.Functions) != 2 || a.Functions[0].Samples != 85 || a.Functions[1].Samples != 50 {
		t.Fatalf("%d functions: %+v", len(a.Functions), a.Functions)
	}
	f := &a.Functions[0]
	lines, runs := make(map[uint32]uint64), make(map[uint32]uint64)
	for _, l := range f.Lines {
		lines[l.Line] = l.Samples
	}
	for _, r := range f.BPF.Runs {
		runs[r.Line] = r.Samples
	}
	if got := fmt.Sprint(lines, runs, f.BPF.Without, f.Outside); got != "map[1:31 2:3 3:44] map[1:31 2:0 3:44] 3 7" {
		t.Errorf("lines, runs, without, outside: %s", got)
	}
	var shown uint64
	for i := range f.Instructions {
		shown += f.Instructions[i].Samples
	}
	if shown != 70 || f.Origin != "image on b" || a.Functions[1].Images != nil {
		t.Errorf("%d samples at instructions of %s", shown, f.Origin)
	}
	golden.Text(t, "images.txt", func(w io.Writer) error {
		return a.WriteText(w, TextStyle{Layers: Source | BPFInstructions | MachineCode})
	})
	for n, want := range map[int]string{0: "image on b", 1: "image on b", 2: "image on a", 3: "image on c", 4: "image on b"} {
		f := &New(p, code, Options{Image: n, Limit: 1}).Functions[0]
		if f.Origin != want || f.Samples != 85 || len(f.Images) != 3 || f.Images[0].Origin != "image on b" {
			t.Errorf("image %d: %s, %d samples, images %+v", n, f.Origin, f.Samples, f.Images)
		}
	}
}

// TestImagesHeaviest: the sum of images decides which function is the heaviest.
func TestImagesHeaviest(t *testing.T) {
	p, code := onHosts()
	for _, host := range []string{"a", "b", "c"} {
		code[host].Program = ""
	}
	a := New(p, code, Options{Count: true})
	if len(a.Functions) != 4 || a.Functions[0].Origin != "image on b" || a.Functions[0].Images != nil {
		t.Errorf("%d functions, %s first", len(a.Functions), a.Functions[0].Origin)
	}
	delete(code, "b")
	for host := range code {
		code[host].Program = host
	}
	if a = New(p, code, Options{}); len(a.Functions) != 3 || len(a.Missing) != 1 || a.Missing[0].Samples != 77 {
		t.Errorf("%d functions, without code %+v", len(a.Functions), a.Missing)
	}
}
