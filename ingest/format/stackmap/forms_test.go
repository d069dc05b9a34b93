package stackmap

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"symbolize/fixtures/golden"
	"symbolize/fixtures/must"
)

// recorded reads the recorded load from its raw dumps.
func recorded(t testing.TB) *Set {
	t.Helper()
	return mustRead(t, "stacks.raw", fixture(t, "load/stacks.raw"), &Options{
		Counts: input("bare.raw", fixture(t, "load/bare.raw")), Key: mustFields(t, recordedKey)})
}

// TestRecorded pins the recorded load, so that the comparisons below compare something.
func TestRecorded(t *testing.T) {
	set := recorded(t)
	total, valid, addresses, kernel, user := uint64(0), 0, 0, 0, 0
	comms := make(map[string]bool)
	for i := range set.Samples {
		sm := &set.Samples[i]
		total += sm.Count
		comms[sm.Comm] = true
		if sm.PID < 1 || sm.TID < 1 {
			t.Fatalf("sample %+v has no process", sm)
		}
		if sm.Kernel.Cause == Present {
			kernel++
		}
		if sm.User.Cause == Present {
			user++
		}
	}
	for n := range set.NumStacks() {
		for _, f := range set.Stack(uint32(n)) {
			if f.Status == Valid {
				valid++
			} else {
				addresses++
			}
		}
	}
	if total < 100 || valid < 50 || addresses < 50 || kernel < 10 || user < 20 || len(set.IDs) < 4 ||
		!comms["mixed"] || !comms["fixed"] || !comms["deleted"] || !comms["spawn"] {
		t.Errorf("%d samples, %d frames with build IDs of %d, %d addresses, %d kernel, %d user, %v",
			total, valid, len(set.IDs), addresses, kernel, user, comms)
	}
	if lost := set.Totals().Lost; len(lost) != 0 || set.Unused != 0 || len(set.Warnings) != 0 {
		t.Errorf("lost %v, unused %d, warnings %v", lost, set.Unused, set.Warnings)
	}
}

// TestDumpsAgree: the same maps in all forms that dumps have give the same stacks, counts
// and labels.
func TestDumpsAgree(t *testing.T) {
	all := Labels{PID: true, TID: true, Comm: true}
	want := recorded(t).text(all)
	for _, stacks := range []string{"raw", "json", "pretty", "txt"} {
		for _, counts := range []string{"bare.raw", "bare.json", "bare.pretty", "bare.txt",
			"counts.raw", "counts.json", "counts.pretty",
			"cpus.raw", "cpus.json", "cpus.pretty", "cpus.txt"} {
			set := mustRead(t, stacks, fixture(t, "load/stacks."+stacks), &Options{
				Counts: input(counts, fixture(t, "load/"+counts)), Key: mustFields(t, recordedKey)})
			if d := golden.FirstDifference(set.text(all), want); d != "" {
				t.Errorf("stacks.%s with %s: %s", stacks, counts, d)
			}
			if set.Labels != all || !set.Counted {
				t.Errorf("stacks.%s with %s: labels %v, counted %v", stacks, counts, set.Labels,
					set.Counted)
			}
		}
	}
	for _, counts := range []string{"counts.txt", "counts.json"} { // fields as bpftool printed them
		set := mustRead(t, counts, fixture(t, "load/stacks.raw"), &Options{
			Counts: input(counts, fixture(t, "load/"+counts))})
		if d := golden.FirstDifference(set.text(all), want); d != "" {
			t.Errorf("%s by its printed fields: %s", counts, d)
		}
	}
}

// TestUncounted: without a count map each stack counts 1, also in a bare concatenation.
func TestUncounted(t *testing.T) {
	for dir, addresses := range map[string]bool{"load": false, "addresses": true} {
		want := mustRead(t, dir, fixture(t, dir+"/stacks.raw"), &Options{})
		if want.Counted || len(want.Samples) < want.NumStacks() || want.NumStacks() < 30 {
			t.Fatalf("%s: counted %v, %d samples of %d stacks", dir, want.Counted, len(want.Samples),
				want.NumStacks())
		}
		for _, form := range []string{"json", "txt", "values"} {
			set := mustRead(t, form, fixture(t, dir+"/stacks."+form),
				&Options{Depth: 20, Addresses: addresses})
			if d := golden.FirstDifference(set.text(Labels{}), want.text(Labels{})); d != "" {
				t.Errorf("%s/stacks.%s: %s", dir, form, d)
			}
			if got := set.Labels.Missing(); len(got) != 5 {
				t.Errorf("%s: labels that are missing: %v", form, got)
			}
		}
	}
}

// TestSingleID: a key of one stack id needs no description.
func TestSingleID(t *testing.T) {
	all := recorded(t)
	for i := range all.Samples {
		all.Samples[i].Kernel = Part{}
		if sm := &all.Samples[i]; sm.User.Cause == Absent {
			sm.User.Cause = NotTaken // the kernel's part is unknown
		}
	}
	for _, form := range []string{"raw", "json", "pretty", "txt"} {
		set := mustRead(t, form, fixture(t, "load/stacks.raw"), &Options{
			Counts: input("single."+form, fixture(t, "load/single."+form))})
		for i := range set.Samples {
			if sm := &set.Samples[i]; sm.User.Cause == Absent {
				sm.User.Cause = NotTaken
			}
		}
		if d := golden.FirstDifference(set.text(Labels{}), all.text(Labels{})); d != "" {
			t.Errorf("single.%s: %s", form, d)
		}
	}
}

// TestLost: samples of stacks that lost their bucket are kept, with the cause.
func TestLost(t *testing.T) {
	set := mustRead(t, "stacks.raw", fixture(t, "full/stacks.raw"), &Options{
		Counts: input("bare.raw", fixture(t, "full/bare.raw")), Key: mustFields(t, recordedKey)})
	total := uint64(0)
	for i := range set.Samples {
		total += set.Samples[i].Count
	}
	lost := set.Totals().Lost
	if lost[BucketTaken] < 20 || lost[BucketTaken] >= total || total < 100 {
		t.Errorf("%d samples, lost %v", total, lost)
	}
}

// TestTextsAgree: the output of bpftrace, systing and Inspektor Gadget for the recorded stacks
// gives the same stacks and counts, and the labels that the form carries.
func TestTextsAgree(t *testing.T) {
	want := recorded(t)
	for _, c := range []struct {
		form   Form
		text   []byte
		labels Labels
	}{
		{form: Bpftrace, text: asBpftrace(want), labels: Labels{PID: true, Comm: true}},
		{form: Bpftrace, text: asBpftraceJSON(want, true), labels: Labels{PID: true, Comm: true}},
		{form: Bpftrace, text: asBpftraceJSON(want, false), labels: Labels{PID: true, Comm: true}},
		{form: Systing, text: asSysting(want), labels: Labels{PID: true, TID: true, Comm: true}},
		{form: Systing, text: must.Gzip(t, asSysting(want)),
			labels: Labels{PID: true, TID: true, Comm: true}},
		{form: Gadget, text: asGadget(want, ""), labels: Labels{PID: true, TID: true, Comm: true}},
		{form: Gadget, text: asGadget(want, "  "),
			labels: Labels{PID: true, TID: true, Comm: true}},
		{form: Gadget, text: asGadgetYAML(want), labels: Labels{PID: true, TID: true, Comm: true}},
	} {
		set := mustRead(t, c.form.String(), c.text, &Options{})
		if set.Form != c.form || set.Labels != c.labels || !set.Counted {
			t.Errorf("%v: form %v, labels %v, counted %v", c.form, set.Form, set.Labels, set.Counted)
		}
		if d := golden.FirstDifference(set.text(c.labels), want.text(c.labels)); d != "" {
			t.Errorf("%v: %s", c.form, d)
		}
		if len(set.Warnings) > 0 {
			t.Errorf("%v: %v", c.form, set.Warnings)
		}
	}
}

// padded is a build ID as the tools print it: 20 bytes.
func (s *Set) padded(f Frame) string {
	return (s.IDs[f.Ref].Hex() + strings.Repeat("0", 40))[:40]
}

// asBpftrace prints samples as bpftrace does @[ustack(build_id), kstack(raw), comm, pid] =
// count(): format_build_id_stack in src/types_format.cpp.
func asBpftrace(s *Set) []byte {
	var b bytes.Buffer
	stack := func(p Part) {
		b.WriteString("\n")
		if p.Cause != Present {
			return
		}
		for _, f := range s.Stack(p.Stack) {
			if f.Status == Valid {
				fmt.Fprintf(&b, "%s 0x%02x\n", s.padded(f), f.Offset)
			} else {
				fmt.Fprintf(&b, "%x\n", f.Offset)
			}
		}
	}
	b.WriteString("Attached 2 probes\n\n")
	for i := range s.Samples {
		sm := &s.Samples[i]
		b.WriteString("@[")
		stack(sm.User)
		b.WriteString(", ")
		stack(sm.Kernel)
		fmt.Fprintf(&b, ", %s, %d]: %d\n", sm.Comm, sm.PID, sm.Count)
	}
	return b.Bytes()
}

// asBpftraceJSON prints samples as bpftrace -f json does, with blanks in keys before version 0.24.
func asBpftraceJSON(s *Set, blanks bool) []byte {
	var b bytes.Buffer
	stack := func(p Part) {
		b.WriteString("\\n")
		if p.Cause != Present {
			return
		}
		for _, f := range s.Stack(p.Stack) {
			switch {
			case f.Status != Valid:
				fmt.Fprintf(&b, "%x\\n", f.Offset)
			case blanks:
				fmt.Fprintf(&b, "%s 0x%02x\\n", s.padded(f), f.Offset)
			default:
				fmt.Fprintf(&b, "%s0x%02x\\n", s.padded(f), f.Offset)
			}
		}
	}
	b.WriteString("{\"type\": \"attached_probes\", \"data\": {\"probes\": 2}}\n")
	b.WriteString("{\"type\": \"map\", \"data\": {\"@\": {")
	for i := range s.Samples {
		sm := &s.Samples[i]
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString("\"")
		stack(sm.User)
		b.WriteString(",")
		stack(sm.Kernel)
		fmt.Fprintf(&b, ",%s,%d\": %d", sm.Comm, sm.PID, sm.Count)
	}
	b.WriteString("}}}\n{\"type\": \"map\", \"data\": {\"@x\": {\"go\": 3}}}\n{\"type\": \"map\", \"data\": {\"@n\": 7}}\n")
	return b.Bytes()
}

// asSysting writes samples as systing's export does (docs/PROFILE_EXPORT_FORMAT.md).
func asSysting(s *Set) []byte {
	var b bytes.Buffer
	b.WriteString(`{"systing_profile_export":1,"producer":"systing 1.11.4","sample_event":"cpu-clock",` +
		`"sample_period":1,"event_types":{"1":"cpu"},"stack_order":"leaf_first"}` + "\n")
	record := func(fields ...any) {
		line, err := json.Marshal(fields)
		if err != nil {
			panic(err) // numbers and strings
		}
		b.Write(append(line, '\n'))
	}
	frames := make(map[string]int)
	for i := range s.Samples {
		sm := &s.Samples[i]
		var ids []int
		for _, p := range []Part{sm.Kernel, sm.User} {
			if p.Cause != Present {
				continue
			}
			for n, f := range s.Stack(p.Stack) {
				text := fmt.Sprintf("0x%x", f.Offset)
				if f.Status == Valid {
					text = fmt.Sprintf("unknown ([buildid:%s]) <0x%x>", s.padded(f), f.Offset)
					if n%2 == 1 {
						text = fmt.Sprintf("buildid:%s+0x%x", s.padded(f), f.Offset)
					}
				}
				id, ok := frames[text]
				if !ok {
					id = len(frames)
					frames[text] = id
					record("f", id, text)
				}
				ids = append(ids, id)
			}
		}
		record("p", i, sm.PID, sm.Comm)
		record("t", i, sm.TID, sm.Comm, i)
		record("s", i, ids)
		record("x", i, i, 1, sm.Count)
	}
	return b.Bytes()
}

// gadgetStacks are the two strings of a user stack: readUserStackMap in
// pkg/operators/ustack/ustack_linux.go. A kernel stack is a list of addresses here.
func gadgetStacks(s *Set, sm *Sample) (ids, addresses, kernel string) {
	if sm.User.Cause == Present {
		for i, f := range s.Stack(sm.User.Stack) {
			if f.Status == Valid {
				ids += fmt.Sprintf("[%d]%s +%x; ", i, s.padded(f), f.Offset)
			} else {
				ids += fmt.Sprintf("[%d]%x; ", i, f.Offset)
			}
			addresses += fmt.Sprintf("[%d]0x%016x; ", i, 0x400000+f.Offset)
		}
	}
	if sm.Kernel.Cause == Present {
		for i, f := range s.Stack(sm.Kernel.Stack) {
			kernel += fmt.Sprintf("[%d]0x%016x; ", i, f.Offset)
		}
	}
	return ids, addresses, kernel
}

// asGadget prints samples as Inspektor Gadget's json, and jsonpretty where there is an
// indentation.
func asGadget(s *Set, indent string) []byte {
	var b bytes.Buffer
	for i := range s.Samples {
		sm := &s.Samples[i]
		ids, addresses, kernel := gadgetStacks(s, sm)
		enc := json.NewEncoder(&b)
		enc.SetIndent("", indent)
		err := enc.Encode(map[string]any{
			"proc":    map[string]any{"comm": sm.Comm, "pid": sm.PID, "tid": sm.TID},
			"samples": sm.Count, "kern_stack": kernel,
			"user_stack": map[string]any{"buildid": ids, "addresses": addresses, "symbols": "[0]a \"b\" {"},
		})
		if err != nil {
			panic(err) // numbers and strings
		}
	}
	return b.Bytes()
}

func asGadgetYAML(s *Set) []byte {
	var b bytes.Buffer
	for i := range s.Samples {
		sm := &s.Samples[i]
		ids, addresses, kernel := gadgetStacks(s, sm)
		fmt.Fprintf(&b, "---\nkern_stack: '%s'\nproc:\n  comm: %s\n  pid: %d\n  tid: %d\nsamples: %d\n"+
			"user_stack:\n  addresses: '%s'\n  buildid: '%s'\n", kernel, sm.Comm, sm.PID, sm.TID,
			sm.Count, addresses, strings.ReplaceAll(ids, "; [1]", ";\n    [1]"))
	}
	return b.Bytes()
}
