//go:build linux

package main

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"symbolize/fixtures/must"
)

// callerPair is a sampled function and its caller.
type callerPair struct{ callee, caller string }

// innermostPairs reads folded stacks and returns the weights of the sampled functions of processes with
// their callers: "" where the stack ends, "?" where it says that the caller is missing or unknown.
func innermostPairs(t *testing.T, folded string) (pairs map[callerPair]float64, total float64) {
	t.Helper()
	pairs = make(map[callerPair]float64)
	for _, line := range strings.Split(strings.TrimSpace(folded), "\n") {
		at := strings.LastIndexByte(line, ' ')
		weight, err := strconv.ParseFloat(line[at+1:], 64)
		if err != nil {
			t.Fatal(err)
		}
		frames := strings.Split(line[:at], ";")[1:]
		if len(frames) == 0 {
			continue
		}
		p := callerPair{callee: frames[len(frames)-1]}
		if n := len(frames) - 2; n >= 0 {
			if p.caller = frames[n]; strings.HasPrefix(p.caller, "[callers") || p.caller == "[…]" {
				p.caller = "?"
			}
		}
		pairs[p] += weight
		total += weight
	}
	return pairs, total
}

// TestLiveCallers samples a program by `capture --stacks`, that is by frame pointers, and at the same
// time by `perf record --call-graph dwarf`: of the pairs of a function and its caller, completed stacks
// have none that unwinding does not find, and stacks as recorded have many. The C library has no frame
// pointers.
func TestLiveCallers(t *testing.T) {
	needLive(t, "perf", "gcc", "ldd")
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	command(t, ".", "gcc", "-O2", "-fno-omit-frame-pointer", "-o", in("calling"), "../../fixtures/src/callers/libc.c", "-lm")
	bin, store := liveBinary(t), in("store")
	command(t, dir, bin, "capture", "-o", in("stacks.data"), "--stacks", "-F", "997", "--",
		"perf", "record", "-q", "-N", buildIDs, "-e", "cpu-clock:u", "-F", "499", "--call-graph", "dwarf,32768",
		"-o", in("perf.data"), in("calling"))
	libraries := strings.Fields(command(t, dir, "ldd", in("calling")))
	index := []string{"index", "-q", "--store", store, "--calls", in("calling")}
	for _, path := range libraries {
		if strings.HasPrefix(path, "/") {
			index = append(index, path)
		}
	}
	command(t, dir, bin, index...)
	folded := func(file, chains string) string {
		out := in("out.folded")
		command(t, dir, "sh", "-c", `"$@" || [ $? = 3 ]`, "sh", bin, "resolve", "-q", "--no-local", "--no-inlines", "--store", store, "--comm", "calling", "--chains", chains,
			"--gaps", "--format", "folded", "-o", out, in(file))
		text := must.Read(t, out)
		return string(text)
	}
	truth, all := innermostPairs(t, folded("perf.data", "recorded"))
	if all == 0 {
		t.Fatal("perf has no samples")
	}
	sampled := make(map[string]bool) // perf samples code of the process alone, not the kernel's
	for p := range truth {
		sampled[p.callee] = true
	}
	const period = 1e9 / 499
	wrong := make(map[string]float64)
	for _, chains := range []string{"recorded", "proven"} {
		pairs, total := innermostPairs(t, folded("stacks.data", chains))
		var right, none, open float64
		for p, weight := range pairs {
			switch share := weight / total; {
			case !sampled[p.callee]:
				open += share
			case p.caller == "" || p.caller == "?":
				none += share
			case truth[p] > 0:
				right += share
				if of := truth[p] / all; chains == "proven" && share > 1.3*of+0.02 {
					t.Errorf("%s <- %s: %.1f%% of the samples, %.1f%% by unwinding", p.callee, p.caller, 100*share, 100*of)
				}
			case share*all < 5*period: // perhaps in no sample of perf
				open += share
			default:
				wrong[chains] += share
				t.Logf("%s: %s <- %s, %.2f%% of the samples", chains, p.callee, p.caller, 100*share)
			}
		}
		t.Logf("%s: right %.1f%%, wrong %.1f%%, no caller %.1f%%, not compared %.1f%% of the samples", chains,
			100*right, 100*wrong[chains], 100*none, 100*open)
		if chains == "proven" && (right < 0.3 || open > 0.15) {
			t.Errorf("%.1f%% of the samples have a caller, %.1f%% are not compared", 100*right, 100*open)
		}
	}
	if wrong["proven"] > 0 || wrong["recorded"] < 0.1 {
		t.Errorf("wrong are %.2f%% of the samples, as recorded %.2f%%", 100*wrong["proven"], 100*wrong["recorded"])
	}
}
