package lookup

import (
	"encoding/json"
	"testing"
)

func TestLayouts(t *testing.T) {
	inlined := Answer{Valid: true, Address: 0xb76, Module: `dir/"x"`, Frames: []Frame{
		{Function: "leaf", File: "/src/leaf.h", Line: 2, Column: 9, StartFile: "/src/leaf.h",
			StartLine: 1},
		{Function: "work\té", File: "/src/work.cc", Line: 12, StartAddress: 0xb00, HasStart: true},
	}}
	symbol := Answer{Valid: true, Address: 1, Module: "m",
		Frames: []Frame{{Function: "_start"}}}
	lines := Answer{Valid: true, Address: 2, Module: "m",
		Frames: []Frame{{File: "a.S", Line: 3}}}
	nothing := Answer{Valid: true, Address: 0xffffffffffffffff, Module: "m"}
	rubbish := Answer{Input: `zz "top"`, Module: "m"}
	for _, tt := range []struct {
		name   string
		answer *Answer
		style  Layout
		llvm   string
		gnu    string
	}{
		{name: "inlined", answer: &inlined, style: Layout{},
			llvm: "leaf\n/src/leaf.h:2:9\nwork\té\n/src/work.cc:12:0\n\n",
			gnu:  "leaf\n/src/leaf.h:2\nwork\té\n/src/work.cc:12\n"},
		{name: "inlined, addresses", answer: &inlined, style: Layout{Addresses: true},
			llvm: "0xb76\nleaf\n/src/leaf.h:2:9\nwork\té\n/src/work.cc:12:0\n\n",
			gnu:  "0x0000000000000b76\nleaf\n/src/leaf.h:2\nwork\té\n/src/work.cc:12\n"},
		{name: "inlined, pretty", answer: &inlined, style: Layout{Addresses: true, Pretty: true},
			llvm: "0xb76: leaf at /src/leaf.h:2:9\n (inlined by) work\té at /src/work.cc:12:0\n\n",
			gnu:  "0x0000000000000b76: leaf at /src/leaf.h:2\n (inlined by) work\té at /src/work.cc:12\n"},
		{name: "inlined, no names", answer: &inlined, style: Layout{Nameless: true},
			llvm: "/src/leaf.h:2:9\n/src/work.cc:12:0\n\n",
			gnu:  "/src/leaf.h:2\n/src/work.cc:12\n"},
		{name: "inlined, no names, pretty", answer: &inlined,
			style: Layout{Nameless: true, Pretty: true},
			llvm:  "/src/leaf.h:2:9\n/src/work.cc:12:0\n\n",
			gnu:   "/src/leaf.h:2\n (inlined by) /src/work.cc:12\n"},
		{name: "nothing, no names", answer: &nothing, style: Layout{Nameless: true},
			llvm: "??:0:0\n\n", gnu: "??:0\n"},
		{name: "symbol", answer: &symbol, style: Layout{}, llvm: "_start\n??:0:0\n\n",
			gnu: "_start\n??:?\n"},
		{name: "lines", answer: &lines, style: Layout{}, llvm: "??\na.S:3:0\n\n",
			gnu: "??\na.S:3\n"},
		{name: "nothing", answer: &nothing, style: Layout{}, llvm: "??\n??:0:0\n\n",
			gnu: "??\n??:0\n"},
		{name: "nothing, pretty", answer: &nothing, style: Layout{Addresses: true, Pretty: true},
			llvm: "0xffffffffffffffff: ?? at ??:0:0\n\n", gnu: "0xffffffffffffffff: ?? ??:0\n"},
		{name: "rubbish", answer: &rubbish, style: Layout{}, llvm: "zz \"top\"\n",
			gnu: "??\n??:0\n"},
	} {
		if got := string(tt.style.AppendLLVM(nil, tt.answer)); got != tt.llvm {
			t.Errorf("%s: llvm %q, want %q", tt.name, got, tt.llvm)
		}
		if got := string(tt.style.AppendGNU(nil, tt.answer)); got != tt.gnu {
			t.Errorf("%s: gnu %q, want %q", tt.name, got, tt.gnu)
		}
	}
}

// TestAnswerJSON: the answers as read by a JSON decoder, and the very bytes of
// llvm-symbolizer where it knows as much.
func TestAnswerJSON(t *testing.T) {
	var s Layout
	for _, tt := range []struct {
		answer Answer
		want   string
	}{
		{answer: Answer{Valid: true, Address: 0xc20, Module: "mixed.debug", Frames: []Frame{{
			Function: "work_in_kernel", File: "/srv/app/src/mixed.c", Line: 50, Column: 11,
			StartLine: 48, StartAddress: 0xc12, HasStart: true}}},
			want: `{"Address":"0xc20","ModuleName":"mixed.debug","Symbol":[{"Column":11,` +
				`"Discriminator":0,"FileName":"/srv/app/src/mixed.c","FunctionName":"work_in_kernel",` +
				`"Line":50,"StartAddress":"0xc12","StartFileName":"","StartLine":48}]}`},
		{answer: Answer{Valid: true, Module: "m"},
			want: `{"Address":"0x0","ModuleName":"m","Symbol":[{"Column":0,"Discriminator":0,` +
				`"FileName":"","FunctionName":"","Line":0,"StartAddress":"","StartFileName":"",` +
				`"StartLine":0}]}`},
		{answer: Answer{Input: "foo", Module: "m"},
			want: `{"Error":{"Message":"unable to parse arguments: foo"},"ModuleName":"m"}`},
	} {
		if got := string(s.AppendJSON(nil, &tt.answer)); got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
	hostile := Answer{Valid: true, Module: "a\"b\\c\x01é\xff",
		Frames: []Frame{{Function: "f"}, {Function: "g\n"}}}
	var back struct {
		ModuleName string
		Symbol     []struct{ FunctionName string }
	}
	if err := json.Unmarshal(s.AppendJSON(nil, &hostile), &back); err != nil {
		t.Fatal(err)
	}
	if back.ModuleName != "a\"b\\c\x01é\ufffd" || len(back.Symbol) != 2 ||
		back.Symbol[1].FunctionName != "g\n" {
		t.Errorf("%+v", back)
	}
}
