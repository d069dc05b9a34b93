package input

import (
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"symbolize/fixtures/must"
	"symbolize/ingest"
	"symbolize/ingest/addr"
)

// exactAt returns an Options.Exact that knows some offsets, and lists its calls in asked, sorted.
func exactAt(asked *[]string, exact ...addr.Offset) func(*ingest.Object,
	[]addr.Offset) []addr.Offset {
	var mu sync.Mutex
	return func(o *ingest.Object, returns []addr.Offset) (found []addr.Offset) {
		mu.Lock()
		*asked = append(*asked, fmt.Sprintf("%s%#x", o.File.Path, returns))
		slices.Sort(*asked)
		mu.Unlock()
		for _, off := range returns {
			if slices.Contains(exact, off) {
				found = append(found, off)
			}
		}
		return found
	}
}

// TestExactReturns: an address that symbol tables know to be no return address is looked up
// itself, in the profile and in a replay, also where another sample is at the byte before it.
func TestExactReturns(t *testing.T) {
	c := newCapture()
	c.KernelMap("_text", 0xffffffff81000000, 0xffffffff81000000, 0x1000000)
	c.lib(7, 0x400000, 0x10000, 0, "/bin/x", 1)
	c.lib(8, 0x700000, 0x10000, 0, "/bin/x", 1)
	c.hit(7, 2, cU, 0x400010, 0x401000, 0x402000)
	c.hit(8, 3, cU, 0x700010, 0x701000, 0x702000) // the same stack in another process
	c.hit(7, 4, cU, 0x400fff)                     // a leaf where the return address would be
	c.hit(7, 5, cK, 0xffffffff81000010, 0xffffffff81003000, cU, 0x401000)
	for _, tc := range []struct {
		name  string
		exact []addr.Offset
		want  []string
	}{
		{name: "none", want: []string{":7: /bin/x+0x10 /bin/x+0xfff /bin/x+0x1fff 1 1",
			":7: /bin/x+0xfff 1 1",
			":7: [kernel.kallsyms]+0x10 [kernel.kallsyms]+0x2fff /bin/x+0x1000 1 1",
			":8: /bin/x+0x10 /bin/x+0xfff /bin/x+0x1fff 1 1"}},
		{name: "one of each", exact: []addr.Offset{0x1000, 0x3000}, want: []string{
			":7: /bin/x+0x10 /bin/x+0x1000 /bin/x+0x1fff 1 1",
			":7: /bin/x+0xfff 1 1",
			":7: [kernel.kallsyms]+0x10 [kernel.kallsyms]+0x3000 /bin/x+0x1000 1 1",
			":8: /bin/x+0x10 /bin/x+0x1000 /bin/x+0x1fff 1 1"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var asked []string
			cp, err := openBytes(t, c.Bytes(), Options{Workers: 2, Exact: exactAt(&asked, tc.exact...)})
			if err != nil {
				t.Fatal(err)
			}
			p, err := cp.Profile(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			checkProfile(t, p)
			if want := []string{"/bin/x[0x1000 0x2000]", "[kernel.kallsyms][0x3000]"}; !slices.Equal(
				asked, want) {
				t.Errorf("asked %q, want %q", asked, want)
			}
			got := dump(p)
			slices.Sort(got)
			if !slices.Equal(got, tc.want) {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
			if again := refold(t, cp, p, ingest.Keep{}); !slices.Equal(again, tc.want) {
				t.Errorf("replay %q\nwant   %q", again, tc.want)
			}
			samples, _ := replayed(t, cp)
			for _, sm := range samples {
				for k, fr := range sm.Frames {
					leaf := k == 0 || fr.PC == 0x401000 && len(sm.Frames) == 3 && k == 2
					off := addr.Offset(fr.PC & 0xffff)
					if want := !leaf && !slices.Contains(tc.exact, off); fr.Return != want ||
						addr.Return(p.Locations[fr.Location].Offset, want) != off {
						t.Errorf("%#x: return %v, want %v", fr.PC, fr.Return, want)
					}
				}
			}
		})
	}
}

// TestExactReturnsInStacks does the same for the stacks of a map: frames that the kernel gave a
// build ID, and the kernel's addresses.
func TestExactReturnsInStacks(t *testing.T) {
	const valid, ip = 1, 2
	id := "abcdefghijklmnopqrst"
	dir := t.TempDir()
	must.Write(t, filepath.Join(dir, "kallsyms"), []byte("ffffffff81000000 T _text\n"+
		"ffffffff82000000 T _end\nffffffffc0000000 t mod_work\t[mymod]\n"+
		"ffffffffc00000f0 t __pfx_mod_next\t[mymod]\nffffffffc0000100 t mod_next\t[mymod]\n"))
	must.Write(t, filepath.Join(dir, "stacks.raw"), stackDump(t,
		[][]byte{stackRecord(valid, id, 0x100), stackRecord(valid, id, 0x200),
			stackRecord(valid, id, 0x300)},
		[][]byte{stackRecord(ip, "", 0xffffffff81000010), stackRecord(ip, "", 0xffffffff81003000),
			stackRecord(ip, "", 0xffffffffc0000100)}))
	must.Write(t, filepath.Join(dir, "counts.raw"), countDump(t, [5]any{0, 1, 7, "work", 5}))
	var asked []string
	opts := Options{Exact: exactAt(&asked, 0x200, 0x3000), Stacks: StackOptions{
		Counts: filepath.Join(dir, "counts.raw"), Kallsyms: filepath.Join(dir, "kallsyms"),
		Key: fieldsOf(t, "user_stack_id:0,kernel_stack_id:4,pid:8,comm:12:4")}}
	_, p := foldPath(t, filepath.Join(dir, "stacks.raw"), opts)
	for i := range p.Objects {
		if o := &p.Objects[i]; o.Kind == ingest.ELF {
			o.File.Path = o.ID.Hex()
		}
	}
	got := dump(p)
	want := fmt.Sprintf("work: [kernel.kallsyms]+0x10 [kernel.kallsyms]+0x3000 [mymod]+0x0 "+
		"%x+0x100 %x+0x200 %x+0x2ff 5 5", id, id, id)
	if len(got) != 1 || got[0] != want || len(asked) != 2 {
		t.Errorf("got  %q\nwant %q, asked %q", got, want, asked)
	}
	if o := objectOf(t, p, "[mymod]"); o.Symbol != "mod_next" {
		t.Errorf("the module's function is %q", o.Symbol)
	}
}
