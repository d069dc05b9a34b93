package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/fixtures/bundlebuild"
	"symbolize/fixtures/perfbuild"
	"symbolize/ingest/format/bundle"
)

// spoil writes a name of the same length in place of another: an escape sequence, a line of
// its own, the separators of folded stacks and of markup, and the other controls.
func spoil(name string) string {
	const evil = "\x1b]0;\nFORGED <script>\x07\x7f\r\xc2\x9b\xe2\x80\xae\x9b"
	out := name[:1]
	for len(out) < len(name) {
		out += evil
	}
	return out[:len(name)]
}

// spoilAll spoils names wherever they are.
func spoilAll(b []byte, names ...string) []byte {
	for _, n := range names {
		b = bytes.ReplaceAll(b, []byte(n), []byte(spoil(n)))
	}
	return b
}

// spoilText is spoilAll for texts in lines: those keep their lines.
func spoilText(b []byte, names ...string) []byte {
	for _, n := range names {
		evil := strings.NewReplacer("\n", "\v", " ", "\x1b").Replace(spoil(n))
		b = bytes.ReplaceAll(b, []byte(n), []byte(evil))
	}
	return b
}

// spoilJSON is spoilAll for JSON, where controls are written as \u00XX.
func spoilJSON(b []byte, names ...string) []byte {
	for _, n := range names {
		b = bytes.ReplaceAll(b, []byte(n), []byte(n[:1]+
			`\u001b]0;\nFORGED <script>\u0007\u007f\r\u009b\u202e`))
	}
	return b
}

var hostileNames = []string{"collatz", "longest_below", "mixed", "spin", "leaf_work", "outer_call",
	"libkernels", "fixed.c", "/usr/lib", "cpu-clock", "do_work", "worker_mod", "/srv/app",
	"count_system_calls_on_enter", "sum_window", "mix_bits", "vfs_read", "read_zero", "ksys_read",
	"entry_SYSCALL_64", "latency", "by_address",
	"bpf_raw_tracepoint_args", "tally_digits", "window", "__ARRAY_SIZE_TYPE__"}

// hostileFiles makes files of all kinds in a directory, with names nobody would want to
// see. It returns its path.
func hostileFiles(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	put := func(name string, b []byte) {
		t.Helper()
		path := filepath.Join(dir, name)
		check(os.MkdirAll(filepath.Dir(path), 0o755))
		check(os.WriteFile(path, b, 0o644))
	}
	get := func(name string) []byte {
		t.Helper()
		b, err := os.ReadFile("../../fixtures/" + name)
		check(err)
		return b
	}
	object := openObject(checker{t}, "../../fixtures/objects/bin/fixed")
	hostileTrace = object.ID.Hex() + " 0x1140\n" + object.ID.Hex() + " 0x1180\n"
	evil := spoil("an evil name that is long enough for all of it")
	for _, name := range []string{"bin/fixed", "bin/mixed", "bin/mixed.debug"} {
		put("objects/"+name, spoilAll(get("objects/"+name), hostileNames...))
	}
	put("objects/"+strings.ReplaceAll(evil, "/", "_"), spoilAll(get("objects/bin/fixed"),
		hostileNames...))
	put("objects/bad\x1b]\nFORGED.so", get("objects/bin/fixed")[:700])
	for _, name := range []string{"fixed", "mixed", "bpf", "bpf-lines", "events", "tracepoint",
		"go"} {
		put("captures/"+name+".data", spoilAll(get("captures/"+name+".data"), hostileNames...))
	}
	put("captures/cut\n\x1b]FORGED.data", get("captures/fixed.data")[:3000])
	f := perfbuild.New()
	f.FeatureString(3, evil)
	f.CmdLine("perf", evil, evil)
	f.Comm(7, 7, evil[:15], true, perfbuild.At{Time: 1})
	f.Mmap2(perfbuild.Mmap{PID: 7, Addr: 0x401000, Len: 0x1000, Filename: "/x/" + evil},
		perfbuild.At{PID: 7, TID: 7, Time: 2})
	f.Sample(perfbuild.Sample{PID: 7, Time: 3, Chain: []uint64{perfbuild.ContextUser, 0x401010}})
	put("captures/built.data", f.Bytes())

	h := bundlebuild.NewHost()
	h.Name, h.Release = evil, evil
	check(addMaps(h))
	for name, b := range h.Entries {
		h.Entries[name] = spoilAll(b, hostileNames...)
	}
	h.Manifest = map[string]any{"command": []string{evil, evil}, "recorder": evil}
	check(packBundle(filepath.Join(dir, "host.bundle"), h.Bundle()))
	sampled, err := bundle.OpenFile("../../fixtures/sampled/stacks.data")
	check(err)
	defer sampled.Close()
	w, err := bundle.Create(filepath.Join(dir, "sampled.bundle"))
	check(err)
	for _, name := range sampled.Names() {
		b, err := sampled.ReadEntry(name, 64<<20)
		check(err)
		spoiled := spoilAll
		if strings.HasPrefix(name, "proc/") || strings.HasPrefix(name, "kernel/") {
			spoiled = spoilText
		}
		check(w.Add(name, spoiled(b, hostileNames...)))
	}
	m := sampled.Manifest
	m.Host = evil
	check(w.Commit(&m))
	put("kernel/kallsyms",
		spoilText([]byte("ffffffff81000000 T _text\nffffffff81000100 T do_work\n"+
			"ffffffff81000200 t vfs_read\nffffffffc0000000 t read_zero\t[worker_mod]\n"),
			hostileNames...))
	put("stacks.json", spoilJSON([]byte(`[{"key":1,"value":["0x401010","0x401020"]}]`)))
	put("stacks.txt", []byte("@[\n    collatz+0x10\n    "+evil[:12]+"+0x1\n, "+evil[:9]+"]: 3\n"))
	return dir
}

// checker makes a test one that openObject ends.
type checker struct{ *testing.T }

func (c checker) Check(err error) {
	if err != nil {
		c.Fatal(err)
	}
}

// ownColours are the escape sequences that annotate colours its output with.
var ownColours = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// unfit returns the characters of an output that must not reach a terminal or a reader of lines.
func unfit(out string) string {
	out = ownColours.ReplaceAllString(out, "")
	for i := 0; i < len(out); {
		r, n := utf8.DecodeRuneInString(out[i:])
		bad := r == utf8.RuneError && n == 1 || unicode.IsControl(r) && r != '\n' && r != '\t' ||
			unicode.Is(unicode.Cf, r)
		if bad || strings.HasPrefix(out[i:], "\nFORGED") {
			return out[max(0, i-60):min(len(out), i+40)]
		}
		i += n
	}
	return ""
}

// TestHostileText feeds names that no one would want to see through every subcommand: none
// of their bytes comes out raw, and no line that a name made.
func TestHostileText(t *testing.T) {
	dir := hostileFiles(t)
	store := filepath.Join(t.TempDir(), "st\x1b]\nFORGED")
	glob := func(pattern string) []string {
		list, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || len(list) == 0 {
			t.Fatalf("%s: %v, %v", pattern, list, err)
		}
		return list
	}
	captures, objects := glob("captures/*"), append(glob("objects/*"), glob("objects/bin/*")...)
	bundles := glob("*.bundle")
	all := append(append(append([]string{}, captures...), objects...), bundles...)
	all = append(all, glob("*.json")...)
	all = append(all, glob("*.txt")...)
	evil := "e\x1b]0;x\x07\nFORGED"
	calls := [][]string{
		{"index", dir}, {"index", "--format", "json", dir}, {"index", "--quality", dir},
		append([]string{"index"}, append(captures, bundles...)...),
		{"index", "--explain", dir}, {"index", "--explain", "--format", "json", dir},
		{"index", filepath.Join(dir, evil)}, {"index", "--build-id", evil, dir},
		{"store", "ls"}, {"store", "ls", "--format", "json"}, {"store", "stats"},
		{"store", "verify"}, {"store", "show", evil}, {"store", evil}, {evil}, {"top", "--" + evil},
		{"version", evil}, {"filter", "--with", evil}, {"store", "import", evil},
		{"store", "rebuild"}, {"store", "gc"}, {"btf", "--format", "c"}, {"map", "--list"},
	}
	for _, f := range all {
		calls = append(calls, []string{"info", f}, []string{"info", "--format", "json", f},
			[]string{"btf", f}, []string{"btf", "--format", "json", f}, []string{"btf", "--format",
				"c", f},
			[]string{"map", f}, []string{"map", "--format", "json", f}, []string{"map", "--map",
				evil, f},
			[]string{"lookup", "-e", f, "0x401136", "0x401160"}, []string{"lookup", "--style",
				"gnu",
				"-f", "-i", "-e", f, "0x401136"}, []string{"lookup", "--style", "json", "-e", f,
				"0x401136"})
	}
	for _, f := range append(append([]string{}, captures...), bundles...) {
		for _, command := range [][]string{{"resolve", "--format", "folded"},
			{"resolve", "--format", "script"}, {"resolve", "--format", "json"}, {"top"},
			{"top", "--format", "json"}, {"missing"}, {"missing", "--format", "json"},
			{"annotate"}, {"annotate", "--format", "json"}, {"annotate", "--with", dir},
			{"resolve", "-o", filepath.Join(t.TempDir(), "out"+evil)},
			{"top", "--event", evil}, {"top", "--comm", evil}} {
			calls = append(calls, append(append([]string{}, command...), f))
		}
	}
	for _, how := range [][]string{{"--hist=log2"}, {"--hist=log2", "--style", "bpftrace"},
		{"--hist=log2", "--format", "json"}, {"--heatmap"}, {"--heatmap", "--format", "svg"},
		{"--heatmap", "--format", "html"}, {"--heatmap", "--format", "json"}, {}} {
		calls = append(calls, append(append([]string{"map", "--map", "12", "--unit",
			"<script>FORGED <script>" + evil}, how...), filepath.Join(dir, "host.bundle")))
	}
	calls = append(calls, []string{"map", "--map", "11", "--symbols", "key",
		filepath.Join(dir, "host.bundle")}, []string{"filter", "--with", filepath.Join(dir,
		"objects")})
	ran := make(map[string]int)
	for _, args := range calls {
		out, status := hostileRun(t, store, args)
		if status == cli.OK || status == cli.Partial {
			ran[args[0]]++
		}
		for where, text := range out {
			if bad := unfit(text); bad != "" {
				t.Errorf("%q: status %d, %s: %q", args, status, where, bad)
			}
		}
		if slices.Contains(args, "folded") && strings.Contains(out["stdout"], ";?FORGED") {
			t.Errorf("%q: a name makes two frames", args)
		}
		markup := slices.Contains(args, "html") || slices.Contains(args, "svg")
		if markup && strings.Contains(out["stdout"], "FORGED <script>") {
			t.Errorf("%q: a name is markup", args)
		}
	}
	for _, command := range []string{"index", "info", "resolve", "top", "missing", "annotate",
		"lookup", "btf", "map", "store", "filter"} {
		if ran[command] == 0 {
			t.Errorf("%s: no call did anything", command)
		}
	}
}

// hostileTrace is text with places that filter names.
var hostileTrace = ""

func hostileRun(t *testing.T, store string, args []string) (map[string]string, int) {
	t.Helper()
	var out, errs bytes.Buffer
	status := Main(t.Context(), &cli.Env{
		Args:   append([]string{args[0], "--store", store}, args[1:]...),
		Stdin:  strings.NewReader(hostileTrace),
		Stdout: &out, Stderr: &errs, Getenv: hermetic,
		StdoutTerminal: args[0] == "annotate",
	})
	return map[string]string{"stdout": out.String(), "stderr": errs.String()}, status
}
