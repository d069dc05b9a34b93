package filter

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"symbolize/buildid"
	"symbolize/store"
)

// counted counts the look-ups of objects in a view.
type counted struct {
	store.View
	finds int
}

func (c *counted) Find(id buildid.ID) ([]*store.Manifest, error) {
	c.finds++
	return c.View.Find(id)
}

// TestAnswersAreKept: a place is looked up once, in all batches.
func TestAnswersAreKept(t *testing.T) {
	view := &counted{View: newView(t)}
	r := New(view, Options{})
	for range 5 {
		text := []byte(fixedID + " 0x114e\n" + nobodyID + " 0x10\n" + fixedID + " 0x114e\n")
		if err := r.Rewrite(io.Discard, text); err != nil {
			t.Fatal(err)
		}
	}
	if view.finds != 2 {
		t.Errorf("%d look-ups of 2 objects", view.finds)
	}
	if st := r.Stats(); st.Places != 15 || st.Named != 10 {
		t.Errorf("%d of %d places named, not 10 of 15", st.Named, st.Places)
	}
}

// TestBounds: the caches stay within their bounds, and answers are right afterwards.
func TestBounds(t *testing.T) {
	r := New(newView(t), Options{})
	var b bytes.Buffer
	for round := range 3 {
		b.Reset()
		for i := range maxAnswers {
			fmt.Fprintf(&b, "%08x%s +%x\n", i%(maxLooked+100), nobodyID[8:], round<<20+i)
		}
		if err := r.Rewrite(io.Discard, b.Bytes()); err != nil {
			t.Fatal(err)
		}
		if len(r.known) > 2*maxAnswers {
			t.Errorf("%d answers are kept, %d is the bound", len(r.known), 2*maxAnswers)
		}
		if n := len(r.finder.objects); n > 2*maxLooked {
			t.Errorf("%d objects are kept, %d is the bound", n, 2*maxLooked)
		}
	}
	st := r.Stats()
	if len(st.Left) > maxLeft+1 || st.Places != 3*maxAnswers {
		t.Errorf("%d rows, %d places", len(st.Left), st.Places)
	}
	var sum uint64
	for _, l := range st.Left {
		sum += l.Places
	}
	if sum != st.Places {
		t.Errorf("the rows add up to %d of %d", sum, st.Places)
	}
	b.Reset()
	if err := r.Rewrite(&b, []byte("\n"+fixedID+" 0x114e\n")); err != nil {
		t.Fatal(err)
	}
	if want := "\ncollatz+0x18 (/srv/app/src/fixed.c:14)\n"; b.String() != want {
		t.Errorf("afterwards %q, not %q", b.String(), want)
	}
}

// TestBinary: binary data stays as it is, all around a place.
func TestBinary(t *testing.T) {
	var every []byte
	for i := range 256 {
		every = append(every, byte(i))
	}
	in := string(every) + "\x00 " + fixedID + " 0x114e\x00\xff" + string(every)
	want := string(every) + "\x00 collatz+0x18 (/srv/app/src/fixed.c:14)\x00\xff" + string(every)
	if got, _ := rewrite(t, newView(t), Options{}, in); got != want {
		t.Errorf("%q becomes %q", in, got)
	}
}

// TestLongLine: a line of thousands of frames takes time in proportion to its length:
// the test's own time limit would fail.
func TestLongLine(t *testing.T) {
	const n = 1 << 14
	view := newView(t)
	for in, want := range map[string]int{
		fixedID + "+0x114e;":                     n,
		"[buildid:" + fixedID + "] 0x114e ":      n,
		"collatz+0x18/0x48 [f " + fixedID + "] ": n,
		"+0x1) (BuildId: ":                       0,
		"CPU:  PID:  Comm: ":                     0,
		"{{{":                                    0, "CPU: ": 0, "[buildid:": 0, "+0x1": 0,
		"bpf_prog_": 0, "[[[[": 0, "] 0x1": 0, "a b +": 0,
	} {
		_, st := rewrite(t, view, Options{}, strings.Repeat(in, n))
		if int(st.Named) != want {
			t.Errorf("%d of %d named: %.30q repeated", st.Named, want, in)
		}
	}
}

// TestPrefixes: text may end anywhere, also in the middle of a form: the text before it
// is named.
func TestPrefixes(t *testing.T) {
	view := newView(t)
	const before, named = fixedID + " 0x114e\n\n", "collatz+0x18 (/srv/app/src/fixed.c:14)\n\n"
	for _, c := range forms {
		in := strings.ReplaceAll(c.in, "ID", fixedID)
		for n := range in {
			if got, _ := rewrite(t, view, Options{}, before+in[:n]); !strings.HasPrefix(got, named) {
				t.Errorf("%q becomes %q", in[:n], got)
			}
		}
	}
}

type broken struct{}

var errBroken = errors.New("broken")

func (broken) Write([]byte) (int, error) { return 0, errBroken }

func TestWriteError(t *testing.T) {
	r := New(newView(t), Options{})
	for _, text := range []string{"nothing\n", fixedID + " 0x114e\n"} {
		if err := r.Rewrite(broken{}, []byte(text)); !errors.Is(err, errBroken) {
			t.Errorf("error %v of %q", err, text)
		}
	}
}

// FuzzRewrite: no text is too bad; where nothing is known it stays as it is, for all
// batches; and answers only add names.
func FuzzRewrite(f *testing.F) {
	for _, seed := range []string{
		head + " do_syscall_64+0x71/0x280\n RIP: 0010:f+0x1/0x2 [m " + fixedID + "]\n",
		"@[\n    " + fixedID + " 0x114e\n    7f0012345678\n]: 3\n",
		"[0]" + fixedID + " +114e unknown ([buildid:" + fixedID + "]) <0x1212>\n",
		tallyTag + "+0x2d/0x1000 bpf_prog_a612a69c77159703 " + tallyTag + "+45\n",
		"(x+0x401010) (BuildId: " + oddID + ") [buildid:" + fixedID + "+0x1]\n",
		"{{{module:0:f:elf:" + fixedID + "}}}" +
			"{{{mmap:0x7000:0x1000:load:0:rx:0x401000}}}{{{bt:0:0x714e}}}",
		"{{{reset}}}{{{pc:1}}}\x00\xff\r\n",
	} {
		f.Add([]byte(seed), uint16(7))
	}
	for _, c := range pasted {
		in, _ := splitPasted(c.want)
		f.Add([]byte(in), uint16(7))
	}
	known, empty := newView(f), store.NewOverlay()
	f.Fuzz(func(t *testing.T, text []byte, cut uint16) {
		if len(text) > 1<<16 {
			return
		}
		for _, at := range []int{0, int(cut) % (len(text) + 1)} {
			at += bytes.IndexByte(text[at:], '\n') + 1
			var out bytes.Buffer
			r := New(empty, Options{})
			for _, part := range [][]byte{text[:at], text[at:]} {
				if err := r.Rewrite(&out, bytes.Clone(part)); err != nil {
					t.Fatal(err)
				}
			}
			if !bytes.Equal(out.Bytes(), text) {
				t.Fatalf("%q becomes %q without a store", text, out.Bytes())
			}
			if r.Stats().Named > 0 {
				t.Fatalf("named without a store: %q", text)
			}
		}
		var once, again bytes.Buffer
		r := New(known, Options{Files: files})
		if err := r.Rewrite(&once, bytes.Clone(text)); err != nil {
			t.Fatal(err)
		}
		if r.Stats().Named == 0 && !bytes.Equal(once.Bytes(), text) {
			t.Fatalf("%q becomes %q with no place named", text, once.Bytes())
		}
		if err := New(known, Options{Files: files}).Rewrite(&again, text); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(once.Bytes(), again.Bytes()) {
			t.Fatalf("%q becomes %q, and %q", text, once.Bytes(), again.Bytes())
		}
	})
}

func BenchmarkRewrite(b *testing.B) {
	view := newView(b)
	for name, text := range map[string]string{
		"plain":  "[ 2901.523386] hrtimer: interrupt took 555285 ns, bytes: 17 + 4 {a} [b]\n",
		"frames": " collatz+0x18/0x48 [fixed " + fixedID + "]\n    " + fixedID + " 0x114e\n",
	} {
		b.Run(name, func(b *testing.B) {
			batch := []byte(strings.Repeat(text, (1<<20)/len(text)))
			r := New(view, Options{})
			b.SetBytes(int64(len(batch)))
			for b.Loop() {
				if err := r.Rewrite(io.Discard, batch); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
