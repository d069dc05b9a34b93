package gopclntab

import (
	"debug/elf"
	"runtime"
	"slices"
	"testing"

	"symbolize/ingest/addr"
	"symbolize/ingest/object/cfi"
)

// TestRules makes the rules of this very program: of ordinary functions at their first byte, of
// functions without a caller, of functions that switch stacks.
func TestRules(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("SKIPPED: the expected rules are of amd64")
	}
	table, err := Find(openELF(t, "self", self(t)))
	if err != nil || table == nil {
		t.Fatal(table, err)
	}
	b := cfi.NewBuilder(cfi.ArchOf(elf.EM_X86_64))
	if lost, err := table.Rules(b); lost > 0 || err != nil {
		t.Fatalf("lost %d, %v", lost, err)
	}
	var starts []addr.Addr
	var rules []cfi.Rule
	b.Rows(func(at addr.Addr, n uint32) {
		starts, rules = append(starts, at), append(rules, b.Rules[n])
	})
	ruleAt := func(a addr.Addr) cfi.Rule {
		i, ok := slices.BinarySearch(starts, a)
		if !ok {
			i--
		}
		return rules[i]
	}
	entry := cfi.Rule{Kind: cfi.Frame, CFA: cfi.Where{How: cfi.Register, Reg: 7, Off: 8},
		RA: cfi.Where{How: cfi.AtCFA, Off: -8}}
	byFP := cfi.Rule{Kind: cfi.Frame, CFA: cfi.Where{How: cfi.Register, Reg: 6, Off: 16},
		RA: entry.RA, Saved: [cfi.MaxSaved]cfi.Where{{How: cfi.AtCFA, Off: -16}}}
	end := cfi.Rule{Kind: cfi.End}
	ordinary, funcs, seen := 0, 0, make(map[string]bool)
	if _, err := table.Functions(func(f *Function) bool {
		funcs++
		r := ruleAt(f.Start)
		switch name := string(f.Name); name {
		case "runtime.goexit", "runtime.mstart":
			seen[name] = true
			if r != end {
				t.Errorf("%s: %+v, want the end", name, r)
			}
		case "runtime.mstart0": // mstart has called it
			seen[name] = true
			if r != entry {
				t.Errorf("%s: %+v, want that of a function that was called", name, r)
			}
		case "runtime.clone": // its caller in the parent alone
			seen[name] = true
			if r.Kind != cfi.Frame || r.CFA != entry.CFA || r.RA.How != cfi.Expr {
				t.Errorf("%s: %+v, want a return address by expression", name, r)
			}
		case "runtime.systemstack", "runtime.mcall":
			seen[name] = true
			if r != byFP {
				t.Errorf("%s: %+v, want by frame pointer", name, r)
			}
		default:
			if r == entry {
				ordinary++
			}
		}
		return true
	}); err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS == "linux" && !seen["runtime.clone"] || len(seen) < 5 {
		t.Errorf("only %v were there", seen)
	}
	if ordinary < funcs*95/100 || len(rules) < 3*funcs {
		t.Errorf("%d of %d functions begin with CFA rsp+8; %d rows", ordinary, funcs, len(rules))
	}
}

// TestRulesOfSignals: the rule of code that signal handlers return to begins a byte early.
func TestRulesOfSignals(t *testing.T) {
	table, err := Find(openELF(t, "self", self(t)))
	if err != nil || table == nil {
		t.Fatal(table, err)
	}
	b := cfi.NewBuilder(cfi.ArchOf(elf.EM_X86_64))
	table.Rules(b)
	var starts []addr.Addr
	b.Rows(func(at addr.Addr, n uint32) {
		if b.Rules[n].Signal {
			starts = append(starts, at)
		}
	})
	found := false
	table.Functions(func(f *Function) bool {
		if isSignalReturn(f.Name) {
			found = true
			if len(starts) != 1 || starts[0] != f.Start-1 {
				t.Errorf("%s at %#x: signal rules at %#x", f.Name, f.Start, starts)
			}
		}
		return true
	})
	if !found && runtime.GOOS == "linux" && runtime.GOARCH == "amd64" {
		t.Error("no function that signal handlers return to")
	}
}

// TestRulesTruncated cuts built tables at every length.
func TestRulesTruncated(t *testing.T) {
	for _, target := range targets {
		built := build(latest, target, sample()...)
		for n := range built.data {
			in := built.input()
			in.Data = in.Data[:n:n]
			table, err := New(in)
			if err != nil {
				continue
			}
			b := cfi.NewBuilder(cfi.ArchOf(elf.EM_X86_64))
			if lost, err := table.Rules(b); (lost > 0) != (err != nil) {
				t.Errorf("cut at %d: lost %d, %v", n, lost, err)
			}
		}
	}
}
