package input

import (
	"bufio"
	"bytes"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"symbolize/ingest"
	"symbolize/ingest/object/bpf"
)

// frameLine is a frame as perf script prints it.
var frameLine = regexp.MustCompile(
	`^\s+[0-9a-f]+ (bpf_prog_[0-9a-f]{16}\S*)\+0x([0-9a-f]+) \(\S+\)$`)

// TestUnreadPrograms: a program that only KSYMBOL records have has its name, and is listed
// with the reason.
func TestUnreadPrograms(t *testing.T) {
	c := openFixture(t, "bpf-unread", Options{})
	programs, err := c.Programs()
	if err != nil || len(programs) != 3 {
		t.Fatalf("%d programs, %v", len(programs), err)
	}
	for i := range programs {
		if p := &programs[i]; p.Missing != bpf.MissingNotRecorded || p.Raw != nil || p.ID != 0 {
			t.Errorf("program %+v", p)
		}
	}
	p, err := c.Profile(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, symbol := range []string{"bpf_prog_3a842eb99152f844_tally_digits",
		"bpf_prog_a612a69c77159703_fold_digits"} {
		if o := objectOf(t, p, symbol); !o.NoImage || o.Symbol != symbol {
			t.Errorf("object %+v", o)
		}
	}
}

// TestHiddenPrograms: addresses that the kernel hid from the recorder are known by the
// records, and is the same function as where nothing else is known.
func TestHiddenPrograms(t *testing.T) {
	const symbol = "bpf_prog_3a842eb99152f844_tally_digits"
	c, unread := openFixture(t, "bpf-hidden", Options{}), openFixture(t, "bpf-unread", Options{})
	programs, err := c.Programs()
	if err != nil || len(programs) != 2 {
		t.Fatalf("%d programs, %v", len(programs), err)
	}
	p := &programs[1]
	if p.Missing != bpf.MissingHidden || p.Symbol(0) != symbol || p.Funcs[0].Length != 560 ||
		p.Funcs[0].Start == 0 || p.Funcs[0].Image != nil || p.BTF == nil {
		t.Errorf("program %+v", p)
	}
	before, err := unread.Profile(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if o := objectOf(t, before, symbol); o.ID != p.Identity(0, "x86_64") {
		t.Errorf("identity %s, by its record alone %s", p.Identity(0, "x86_64"), o.ID)
	}
}

// TestProgramNamesLikePerf compares the name and the offset of every BPF frame of the recorded
// captures with the output of perf, and wants a line for each. Of programs that were there before
// the recording perf's name has another tag.
func TestProgramNamesLikePerf(t *testing.T) {
	for name, hasLines := range map[string]bool{"bpf": false, "bpf-lines": true, "bpf-before": true,
		"bpf-unread": false} {
		want := map[string]int{}
		text := gunzip(t, filepath.Join("../../fixtures/captures", name+".script.gz"))
		for sc := bufio.NewScanner(bytes.NewReader(text)); sc.Scan(); {
			if m := frameLine.FindStringSubmatch(sc.Text()); m != nil {
				want[m[1]+"+"+m[2]]++
			}
		}
		c := openFixture(t, name, Options{})
		programs, err := c.Programs()
		if err != nil {
			t.Fatal(err)
		}
		byPC := map[string]int{} // name and offset of every frame
		all, p := replayed(t, c)
		lines := 0
		for i := range all {
			for k, fr := range all[i].Frames {
				loc := p.Locations[fr.Location]
				o := &p.Objects[loc.Object]
				if o.Kind != ingest.JIT {
					continue
				}
				offset := uint64(loc.Offset)
				if k > 0 {
					offset++ // perf does not move return addresses back
				}
				symbol := perfName(programs, o, uint64(fr.PC))
				byPC[symbol+"+"+strconv.FormatUint(offset, 16)]++
				if fn := funcOf(programs, o); fn != nil && fn.LineAt(uint32(loc.Offset)) != nil {
					lines++
				} else if hasLines {
					t.Errorf("%s: %s+%#x has no line", name, o.Symbol, uint64(loc.Offset))
				}
			}
		}
		if len(want) == 0 {
			t.Fatalf("%s: perf printed no BPF frames", name)
		}
		for k, n := range want {
			if byPC[k] != n {
				t.Errorf("%s: %s %d times, perf prints %d", name, k, byPC[k], n)
			}
			delete(byPC, k)
		}
		for k, n := range byPC {
			t.Errorf("%s: %s %d times, perf prints none", name, k, n)
		}
		t.Logf("%s: %d distinct frames as perf prints them, %d with lines", name, len(want), lines)
	}
}

// funcOf finds a function of an object.
func funcOf(programs []bpf.Program, o *ingest.Object) *bpf.Func {
	for i := range programs {
		for k := range programs[i].Funcs {
			if programs[i].Identity(k, "x86_64") == o.ID {
				return &programs[i].Funcs[k]
			}
		}
	}
	return nil
}

// perfName is the name that perf has for the function at pc: programs loaded before the recording
// have the lowest ID.
func perfName(programs []bpf.Program, o *ingest.Object, pc uint64) string {
	for k := range programs[0].Funcs {
		f := &programs[0].Funcs[k]
		if programs[0].Identity(k, "x86_64") == o.ID && pc-uint64(f.Start) <= uint64(f.Length) &&
			programs[0].ID == beforeID {
			return programs[0].PerfSymbol(k)
		}
	}
	return o.Symbol
}

// beforeID is the program of bpf-before.data that was loaded before.
const beforeID = 1227
