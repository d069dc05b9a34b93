package disasm

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"symbolize/ingest/addr"
)

func TestNew(t *testing.T) {
	for _, machine := range []string{"x86_64", "amd64", "aarch64", "arm64", "loongarch64"} {
		if _, err := New(machine, ATT); err != nil {
			t.Errorf("%s: %v", machine, err)
		}
	}
	if _, err := New("riscv64", ATT); !errors.Is(err, ErrMachine) {
		t.Errorf("riscv64: %v", err)
	}
	for want, word := range Syntaxes {
		if s, err := ParseSyntax(word); err != nil || s != Syntax(want) {
			t.Errorf("%s: %v, %v", word, s, err)
		}
	}
	if _, err := ParseSyntax("masm"); err == nil {
		t.Error("no error for masm")
	}
}

// collect decodes code and checks the invariants of every decoder: instructions follow
// each other and sum up, and have a text.
func collect(t testing.TB, d Decoder, code []byte, pc addr.PC) []Inst {
	t.Helper()
	var list []Inst
	at := 0
	for inst := range d.Decode(code, pc) {
		if inst.Offset != at || inst.Len < 1 || at+inst.Len > len(code) {
			t.Fatalf("%d bytes at %d, want them at %d of %d: % x", inst.Len, inst.Offset, at,
				len(code), code)
		}
		if inst.Text == "" || strings.ContainsAny(inst.Text, "\n\t\x00") ||
			inst.Text != strings.TrimSpace(inst.Text) {
			t.Fatalf("text %q of % x", inst.Text, code[at:at+inst.Len])
		}
		if inst.HasTarget && !inst.Call && !inst.Jump && !strings.HasPrefix(inst.Text, "xbegin") {
			t.Fatalf("%s has a target and is neither call nor jump", inst.Text)
		}
		if inst.HasTarget && !strings.HasSuffix(inst.WithTarget("<here>"), " <here>") {
			t.Fatalf("%s with another target is %s", inst.Text, inst.WithTarget("<here>"))
		}
		at += inst.Len
		list = append(list, inst)
	}
	if at != len(code) {
		t.Fatalf("%d of %d bytes: % x", at, len(code), code)
	}
	return list
}

// TestTargets: the targets that a reader of annotated code follows.
func TestTargets(t *testing.T) {
	const pc = 0xffffffffc0001000
	for _, tt := range []struct {
		machine string
		code    string
		want    Inst
		named   string
	}{
		{machine: "x86_64", code: "\xe8\x05\x00\x00\x00",
			want: Inst{Len: 5, Call: true, HasTarget: true,
				Target: pc + 10, Text: "call   ffffffffc000100a"}, named: "call   f"},
		{machine: "x86_64", code: "\xeb\xfe",
			want: Inst{Len: 2, Jump: true, HasTarget: true, Target: pc,
				Text: "jmp    ffffffffc0001000"}, named: "jmp    f"},
		{machine: "x86_64", code: "\x0f\x84\x00\x01\x00\x00",
			want: Inst{Len: 6, Jump: true, HasTarget: true,
				Target: pc + 0x106, Text: "je     ffffffffc0001106"}, named: "je     f"},
		{machine: "x86_64", code: "\xff\xd0",
			want: Inst{Len: 2, Call: true, Text: "call   *%rax"}, named: "call   *%rax"},
		{machine: "x86_64", code: "\xff\x25\x10\x00\x00\x00",
			want: Inst{Len: 6, Jump: true, HasData: true,
				Data: pc + 0x16, Text: "jmp    *0x10(%rip)"}, named: "jmp    *0x10(%rip)"},
		{machine: "x86_64", code: "\xc5\x7d\x6f\x25\xdf\x29\x04\x00",
			want: Inst{Len: 8, HasData: true,
				Data: pc + 0x429e7, Text: "vmovdqa 0x429df(%rip),%ymm12"},
			named: "vmovdqa 0x429df(%rip),%ymm12"},
		{machine: "x86_64", code: "\x66\x48\x0f\x38\xf6\x1d\x02\x00\x00\x00",
			want: Inst{Len: 10, HasData: true,
				Data: pc + 12, Text: "adcx   0x2(%rip),%rbx"}, named: "adcx   0x2(%rip),%rbx"},
		{machine: "x86_64", code: "\x06", want: Inst{Len: 1, Bad: true, Text: ".byte  0x06"},
			named: ".byte  0x06"},
		{machine: "aarch64", code: "\x02\x00\x00\x94",
			want: Inst{Len: 4, Call: true, HasTarget: true, Target: pc + 8,
				Text: "bl     ffffffffc0001008"}, named: "bl     f"},
		{machine: "aarch64", code: "\x41\x00\x1f\x37",
			want: Inst{Len: 4, Jump: true, HasTarget: true,
				Target: pc - 0x1ff8, Text: "tbnz   w1, #3, ffffffffbffff008"},
			named: "tbnz   w1, #3, f"},
		{machine: "aarch64", code: "\x20\x01\x1f\xd6",
			want: Inst{Len: 4, Jump: true, Text: "br     x9"}, named: "br     x9"},
		{machine: "aarch64", code: "\x20\x00\x00\xb0",
			want: Inst{Len: 4, HasData: true, Data: pc + 0x5000,
				Text: "adrp   x0, ffffffffc0006000"}, named: "adrp   x0, ffffffffc0006000"},
		{machine: "aarch64", code: "\x01\x02", want: Inst{Len: 1, Bad: true, Text: ".byte  0x01"},
			named: ".byte  0x01"},
	} {
		d, err := New(tt.machine, ATT)
		if err != nil {
			t.Fatal(err)
		}
		got := collect(t, d, []byte(tt.code), pc)[0]
		named := got.WithTarget("f")
		got.targetLen = 0
		if got != tt.want || named != tt.named {
			t.Errorf("% x:\n got %+v, %s\nwant %+v, %s", tt.code, got, named, tt.want, tt.named)
		}
	}
}

// TestBad: unknown code keeps the length that its prefix implies, and decoding
// continues behind it.
func TestBad(t *testing.T) {
	for code, want := range map[string]string{
		"\x8f\xe8\x78\xc2\xc0\x07\xc3":     ".byte  0x8f,0xe8,0x78,0xc2,0xc0,0x07; ret", // XOP
		"\xc4\xe2\x79\xff\x44\x24\x08\x90": ".byte  0xc4,0xe2,0x79,0xff,0x44,0x24,0x08; nop",
		"\x06\x07\x90":                     ".byte  0x06; .byte  0x07; nop",
		"\xf3\xc3\xf3":                     "repz ret; .byte  0xf3",
		"\xd0\xf0\xf6\xc9\x01":             "shl    %al; test   $0x1,%cl",
		"\x48":                             ".byte  0x48",
		"\x0f":                             ".byte  0x0f",
		"\xe8\x01":                         ".byte  0xe8; .byte  0x01",
		"\xc5\xf8\x77\xc5\xfc\x77\xc4\xe1\x78\x77": "vzeroupper; vzeroall; vzeroupper",
	} {
		d, err := New("x86_64", ATT)
		if err != nil {
			t.Fatal(err)
		}
		var texts []string
		for _, inst := range collect(t, d, []byte(code), 0x1000) {
			texts = append(texts, inst.Text)
		}
		if got := strings.Join(texts, "; "); got != want {
			t.Errorf("% x is %s, want %s", code, got, want)
		}
	}
}

// TestEarlyEnd: a consumer may stop.
func TestEarlyEnd(t *testing.T) {
	d, err := New("x86_64", ATT)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for range d.Decode(bytes.Repeat([]byte{0x90}, 10), 0) {
		if n++; n == 3 {
			break
		}
	}
	if n != 3 {
		t.Errorf("%d", n)
	}
}

// TestRandom: rubbish ends, and sums up, in every syntax.
func TestRandom(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	code := make([]byte, 1<<16)
	for i := range code {
		code[i] = byte(rng.Uint32())
	}
	for _, d := range []Decoder{amd64{ATT}, amd64{Intel}, words(arm64), words(loong64)} {
		list := collect(t, d, code, 0x1000)
		if !slices.ContainsFunc(list, func(i Inst) bool { return i.Bad }) {
			t.Errorf("%T: all of it decodes", d)
		}
	}
	// Every prefix of code gives a result.
	for n := range 200 {
		for _, d := range []Decoder{amd64{ATT}, amd64{Intel}, words(arm64), words(loong64)} {
			collect(t, d, code[:n], 0)
		}
	}
}

// TestLoong64: texts are as in binutils, after the test cases of x/arch, with targets of branches.
func TestLoong64(t *testing.T) {
	for _, c := range []struct {
		code, want string
		call, jump bool
	}{
		{code: "\x00\x00\x40\x03", want: "nop"},
		{code: "\xac\x39\x10\x00", want: "add.w  $t0, $t1, $t2"},
		{code: "\xac\x41\xc0\x02", want: "addi.d $t0, $t1, 16"},
		{code: "\x61\x20\xc0\x29", want: "st.d   $ra, $sp, 8"},
		{code: "\x20\x00\x00\x4c", want: "ret", jump: true},
		{code: "\x80\x01\x00\x4c", want: "jr     $t0", jump: true},
		{code: "\x81\x01\x00\x4c", want: "jirl   $ra, $t0, 0", call: true},
		{code: "\x00\x10\x00\x54", want: "bl     1010", call: true},
		{code: "\x00\x10\x00\x50", want: "b      1010", jump: true},
		{code: "\x8d\x11\x00\x58", want: "beq    $t0, $t1, 1010", jump: true},
		{code: "\x9f\xf1\xff\x43", want: "beqz   $t0, ff0", jump: true},
		{code: "\x1f\xf1\xff\x4b", want: "bcnez  $fcc0, ff0", jump: true},
		{code: "\xff\xff\xff\xff", want: ".word  0xffffffff"},
	} {
		list := collect(t, words(loong64), []byte(c.code), 0x1000)
		if got := list[0]; len(list) != 1 || got.Text != c.want || got.Call != c.call || got.Jump != c.jump {
			t.Errorf("%q, call %v, jump %v; want %q", got.Text, got.Call, got.Jump, c.want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte("\xf3\x0f\x1e\xfa\x55\x48\x89\xe5\xe8\x00\x00\x00\x00\xc3"))
	f.Add([]byte("\xc5\xf8\x77\x62\xf1\x7d\x48\x6f\x08\x8f\xe8\x78\xc2\xc0\x07"))
	f.Add([]byte("\x66\x48\x0f\x38\xf6\x1d\x02\x00\x00\x00\xc4\xe2\x7b\x4b\x0c\x18"))
	f.Add([]byte("\xfd\x7b\xbe\xa9\x00\xc0\xa0\x04\x62\x7c\xa1\xc8\x01"))
	f.Add([]byte("\x00\x10\x00\x54\x20\x00\x00\x4c"))
	f.Fuzz(func(t *testing.T, code []byte) {
		for _, d := range []Decoder{amd64{ATT}, amd64{Intel}, words(arm64), words(loong64)} {
			collect(t, d, code, 0xffffffffc0000000)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	for _, bb := range []struct{ machine, file string }{
		{machine: "x86_64", file: "testdata/amd64.objdump"}, {machine: "aarch64",
			file: "testdata/arm64.objdump"},
	} {
		b.Run(bb.machine, func(b *testing.B) {
			var code []byte
			for _, l := range readListing(b, bb.file) {
				code = append(code, l.code...)
			}
			d, err := New(bb.machine, ATT)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(code)))
			b.ReportAllocs()
			for b.Loop() {
				for range d.Decode(code, 0x1000) {
				}
			}
		})
	}
}
