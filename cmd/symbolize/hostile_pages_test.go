package main

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"html"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/fixtures/must"
	"symbolize/fixtures/perfbuild"
	"symbolize/fixtures/profilebuild"
)

// hostilePages are the commands that write names of captures, by their formats. The inputs are of
// hostileInputs: P a pprof file, T a perf.data, W one of waits, C a capture with code of functions, B a bundle.
var hostilePages = map[string][][]string{
	"top text":  {{"top", "-n", "0", "P"}, {"top", "--by", "label,object", "P"}, {"top", "T"}},
	"top json":  {{"top", "P"}, {"top", "T"}},
	"tree text": {{"tree", "--min-share", "0", "P"}, {"tree", "T"}},
	"tree json": {{"tree", "P"}},
	"peek text": {{"peek", ".", "P"}}, "peek json": {{"peek", ".", "P"}},
	"diff text": {{"diff", "P", "P"}, {"diff", "--by", "line", "T", "T"}},
	"diff json": {{"diff", "P", "P"}}, "diff folded": {{"diff", "P", "P"}},
	"trend text": {{"trend", "P"}}, "trend json": {{"trend", "P"}}, "trend html": {{"trend", "P"}},
	"missing text": {{"missing", "P"}, {"missing", "T"}},
	"missing json": {{"missing", "P"}, {"missing", "T"}},
	"flamegraph html": {{"flamegraph", "P"}, {"flamegraph", "T"},
		{"flamegraph", "--base", "P", "P"}},
	"flamegraph svg":        {{"flamegraph", "P"}, {"flamegraph", "--base", "P", "P"}},
	"flamegraph folded":     {{"flamegraph", "P"}, {"flamegraph", "T"}},
	"flamegraph speedscope": {{"flamegraph", "P"}, {"flamegraph", "T"}},
	"flamegraph gecko":      {{"flamegraph", "P"}, {"flamegraph", "T"}},
	"resolve folded":        {{"resolve", "P"}, {"resolve", "T"}},
	"resolve json":          {{"resolve", "P"}, {"resolve", "T"}},
	"resolve otlp-json":     {{"resolve", "P"}, {"resolve", "T"}},
	"resolve script":        {{"resolve", "T"}},
	"heatmap html":          {{"heatmap", "T"}, {"heatmap", "--of", "off-cpu", "W"}},
	"heatmap json":          {{"heatmap", "T"}, {"heatmap", "--of", "off-cpu", "W"}},
	"heatmap text":          {{"heatmap", "--format", "text", "--of", "off-cpu", "W"}},
	"timeline html":         {{"timeline", "T"}, {"timeline", "--by", "comm", "T"}},
	"timeline json":         {{"timeline", "T"}},
	"annotate html":         {{"annotate", "C"}}, "annotate json": {{"annotate", "C"}},
	"annotate text": {{"annotate", "-n", "0", "C"}},
	"report html":   {{"report", "T"}, {"report", "C"}, {"report", "P"}},
	"map text":      {{"map", "--map", "12", "--hist=log2", "--unit", "<script>pwned\x1b[", "B"}},
	"map html":      {{"map", "--map", "12", "--heatmap", "--unit", "<script>pwned\x1b[", "B"}},
	"map svg":       {{"map", "--map", "12", "--heatmap", "--unit", "<script>pwned\x1b[", "B"}},
	"map json":      {{"map", "--map", "12", "--heatmap", "--unit", "<script>pwned\x1b[", "B"}},
	"info text":     {{"info", "P"}, {"info", "T"}, {"info", "B"}},
	"info json":     {{"info", "P"}, {"info", "T"}, {"info", "B"}},
}

// elsewhere are the other formats, and why no page is made of them here.
var elsewhere = map[string]string{
	"resolve pprof": "binary: names are kept as they are",
	"resolve otlp":  "binary", "resolve parquet": "binary; package columns prints texts",
	"resolve autofdo": "without names", "resolve preagg": "without names", "resolve llvm-profile": "of a file with a build ID", "resolve fdata": "of a file with a build ID", "resolve gcov": "of a file with a build ID", "annotate": "", "version": "without names",
	"index": "TestHostileText", "fetch": "TestHostileText", "lookup": "TestHostileText",
	"store": "TestHostileText", "btf": "TestHostileText", "capture": "names of the host's programs",
	"batch": "files of its own",
}

// TestHostilePages: hostile names of functions, files, objects, threads, events and labels, and
// hostile paths of captures, come out of each page and format as text: pages and pictures parse
// and have no element of a name's, JSON is valid, and nothing acts on a terminal.
func TestHostilePages(t *testing.T) {
	inputs := hostileInputs(t)
	for _, what := range slices.Sorted(maps.Keys(hostilePages)) {
		command, format, _ := strings.Cut(what, " ")
		for _, args := range hostilePages[what] {
			words := []string{command, "--store", t.TempDir()}
			if format != "text" && command != "report" {
				words = append(words, "--format", format)
			}
			for _, a := range args[1:] {
				if path, ok := inputs[a]; ok {
					words = append(words, path...)
				} else {
					words = append(words, a)
				}
			}
			out := filepath.Join(t.TempDir(), "out")
			toFile := slices.Contains([]string{"report", "flamegraph", "heatmap", "timeline"}, command)
			if toFile {
				words = append(words, "-o", out)
			}
			env, stdout, stderr := inProcess(words...)
			if code := Main(t.Context(), env); code != cli.OK && code != cli.Partial {
				t.Errorf("%q: status %d: %s", args, code, stderr)
				continue
			}
			text := stdout.String()
			if toFile {
				b := must.Read(t, out)
				text = string(b)
			}
			if err := checkHostile(format, text); err != nil {
				t.Errorf("%s %q: %v", format, args, err)
			}
			if bad := unfit(stderr.String()); bad != "" {
				t.Errorf("%q: stderr: %q", args, bad)
			}
		}
	}
}

// TestHostilePagesComplete: each format of a command is in the tables above.
func TestHostilePagesComplete(t *testing.T) {
	env, _, _ := inProcess()
	var visit func(top string, cmd *cobra.Command)
	visit = func(top string, cmd *cobra.Command) {
		f := cmd.Flags().Lookup("format")
		if f != nil && elsewhere[top] == "" {
			words := f.Annotations[cli.CompletionWords]
			if len(words) == 0 {
				t.Errorf("%s: the words of --format are not known", cmd.CommandPath())
			}
			for _, w := range words {
				if what := top + " " + w; hostilePages[what] == nil && elsewhere[what] == "" {
					t.Errorf("%s is in no table", what)
				}
			}
		}
		for _, sub := range cmd.Commands() {
			visit(top, sub)
		}
	}
	for _, cmd := range newRootCommand(&cli.App{Env: env}).Commands() {
		visit(cmd.Name(), cmd)
	}
}

// hostileInputs are the arguments in the place of captures.
func hostileInputs(t *testing.T) map[string][]string {
	t.Helper()
	dir := hostileFiles(t)
	const name = "\"><script>pwned=1<,script>]]>\x1b[31m\u202e\xff"
	rename := func(from, to string) string {
		if err := os.Rename(from, filepath.Join(dir, to)); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(dir, to)
	}
	f, waits := perfbuild.New(), perfbuild.New()
	waits.Events = perfbuild.SwitchEvents()
	waits.EventDesc()
	waits.TracingData("sched", perfbuild.SwitchFormat, perfbuild.WakingFormat)
	f.FeatureString(3, "<script>pwned=1</script>\x1b[31m")
	f.CmdLine("perf", `"><img src=x onerror=pwned=1>`)
	for i, evil := range profilebuild.HostileNames {
		pid, long := int32(100+i), strings.ReplaceAll(evil, "\x00", "")
		at := perfbuild.At{PID: pid, TID: pid, Time: uint64(1 + i)}
		f.Comm(pid, pid, long[:min(15, len(long))], true, at)
		path := "/lib/" + long
		f.Mmap2(perfbuild.Mmap{PID: pid, Addr: 0x401000, Len: 0x1000,
			Filename: path[:min(4000, len(path))]}, at)
		waits.Comm(pid, pid, long[:min(15, len(long))], true, at)
		waits.Mmap2(perfbuild.Mmap{PID: pid, Addr: 0x401000, Len: 0x1000,
			Filename: path[:min(4000, len(path))]}, at)
		waits.Sample(perfbuild.Sample{PID: pid, Time: 1000 + uint64(i),
			Chain: []uint64{perfbuild.ContextUser, 0x401010}, Raw: waits.SwitchRaw(pid, 1, pid+1)})
		for n := range 3 {
			f.Sample(perfbuild.Sample{PID: pid, Time: uint64(1000 + 1e8*n + i), Period: 100,
				Chain: []uint64{perfbuild.ContextUser, 0x401010 + uint64(i)}})
		}
	}
	raw, waitsRaw := filepath.Join(dir, "times.data"), filepath.Join(dir, "waits.data")
	err := errors.Join(os.WriteFile(raw, f.Bytes(), 0o644), os.WriteFile(waitsRaw, waits.Bytes(), 0o644))
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]string{
		"P": {rename(writeProfile(t, "p", profilebuild.Hostile()), "P2026-01-01"+name)},
		"T": {rename(raw, "T"+name)},
		"W": {rename(waitsRaw, "W"+name)},
		"C": {"--with", filepath.Join(dir, "objects"),
			rename(filepath.Join(dir, "captures", "fixed.data"), "C"+name)},
		"B": {rename(filepath.Join(dir, "host.bundle"), "B"+name)},
	}
}

// checkHostile reports how an output is unfit for its format, or lets a name be more than text.
func checkHostile(format, text string) error {
	if text == "" {
		return errors.New("nothing was written")
	}
	if bad := unfit(text); bad != "" {
		return fmt.Errorf("characters that act: %q", bad)
	}
	switch format {
	case "html":
		return checkHostileHTML(text)
	case "svg":
		return checkMarkup(text, true)
	case "json", "speedscope", "gecko":
		for d := json.NewDecoder(strings.NewReader(text)); ; {
			var v any
			if err := d.Decode(&v); err != nil {
				if errors.Is(err, io.EOF) {
					return nil
				}
				return err
			}
		}
	}
	return nil
}

// ownScripts are the scripts, data and style of a page, which begin and end on lines of their own.
var ownScripts = regexp.MustCompile(`(?s)<(script|style)( [a-z]+="[^"<>]*")*>.*?</(script|style)>`)

var ownPolicy = regexp.MustCompile(
	`<meta http-equiv="Content-Security-Policy"\s+content="([^"]*)"`)

func checkHostileHTML(text string) error {
	head, _, _ := strings.Cut(text, "</head>")
	policies := ownPolicy.FindAllStringSubmatch(head, -1)
	if len(policies) != 1 ||
		!strings.HasPrefix(html.UnescapeString(policies[0][1]), "default-src 'none';") {
		return fmt.Errorf("Content-Security-Policies in its head: %q", policies)
	}
	for _, s := range ownScripts.FindAllString(text, -1) {
		if strings.Contains(s, "pwned") {
			return fmt.Errorf("a name in a script: %.80q", s)
		}
	}
	text = ownScripts.ReplaceAllString(text, "")
	text = regexp.MustCompile(`(?i)<!doctype html>`).ReplaceAllString(text, "")
	return checkMarkup(text, false)
}

// checkMarkup parses markup, and refuses elements and attributes that only a name can have made.
func checkMarkup(text string, strict bool) error {
	d := xml.NewDecoder(strings.NewReader(text))
	if !strict {
		d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	}
	elements, pwned := 0, false
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		switch e := token.(type) {
		case xml.Comment:
			if strings.Contains(string(e), "pwned") {
				return errors.New("a name in a comment")
			}
		case xml.CharData:
			pwned = pwned || strings.Contains(string(e), "pwned")
		case xml.StartElement:
			elements++
			if slices.Contains([]string{"script", "img", "iframe", "object", "embed", "link"},
				strings.ToLower(e.Name.Local)) {
				return fmt.Errorf("an element %s", e.Name.Local)
			}
			for _, a := range e.Attr {
				if strings.HasPrefix(strings.ToLower(a.Name.Local), "on") {
					return fmt.Errorf("an attribute %s", a.Name.Local)
				}
			}
		}
	}
	if elements < 5 {
		return fmt.Errorf("%d elements: no page was read", elements)
	}
	if strict && !pwned {
		return errors.New("no hostile name in it: the test looks at nothing")
	}
	return nil
}
