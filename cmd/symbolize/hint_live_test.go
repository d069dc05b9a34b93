//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"symbolize/fixtures/must"
	"symbolize/ingest"
)

// TestLiveHintsFollowed: recordings with each reason are made, and a user who follows its hint has
// it no more: at most a tenth of its share is left, for code that ran before its compiler's list
// began.
func TestLiveHintsFollowed(t *testing.T) {
	needLive(t, "perf")
	bin := filepath.Dir(liveBinary(t))
	for _, tt := range hintsLive {
		t.Run(tt.name, func(t *testing.T) {
			needLive(t, strings.Fields(tt.tools)...)
			r := &hintRun{t: t, dir: t.TempDir(), bin: bin}
			r.prepare(tt.tools)
			for _, name := range []string{"kptr_restrict", "perf_event_max_stack"} {
				restore(t, "/proc/sys/kernel/"+name)
			}
			r.sh(tt.before)
			before, hint := r.missing(tt.reason, tt.missed)
			if before == 0 || hint != tt.hint {
				t.Fatalf("before: %.1f%% for this reason, hint %q, want %q", before, hint, tt.hint)
			}
			step := hint
			if _, root, ok := strings.Cut(hint, "as root: "); ok {
				step = root
				awaitSettings(t)
			}
			r.sh(strings.ReplaceAll(tt.follow, "HINT", step))
			after, _ := r.missing(tt.reason, tt.misses)
			t.Logf("%s: %.2f%% of the frames, and after %q %.2f%%", tt.reason, before, hint, after)
			if after*10 > before {
				t.Errorf("%s: %.2f%% before, %.2f%% after", tt.reason, before, after)
			}
		})
	}
}

// hintRun is a user with an empty home.
type hintRun struct {
	t        *testing.T
	dir, bin string
}

// prepare makes the programs.
func (r *hintRun) prepare(tools string) {
	src, err := filepath.Abs("../../fixtures/src")
	if err != nil {
		r.t.Fatal(err)
	}
	if strings.Contains(tools, "gcc") {
		r.sh("cp " + filepath.Join(src, "omit.c") + " . && gcc -O2 -g -fomit-frame-pointer -o omit omit.c && " +
			"gcc -O1 -g -fno-omit-frame-pointer -fno-optimize-sibling-calls -o altstack " +
			filepath.Join(src, "altstack.c") + " && gcc -O2 -static -nostdlib -fno-stack-protector " +
			"-Wl,-z,noseparate-code -Wl,--build-id=sha1 -Wl,--eh-frame-hdr -o bare " +
			filepath.Join(src, "unwind", "bare.c"))
	}
	if strings.Contains(tools, "go") {
		command(r.t, ".", "go", "build", "-o", filepath.Join(r.dir, "stackrun"), "../../fixtures/stackrun")
	}
	if err := os.WriteFile(filepath.Join(r.dir, "hot.js"), []byte(hotScript), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

func (r *hintRun) sh(script string) string {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), "sh", "-c", script)
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "HOME="+r.dir, "SYMBOLIZE_STORE=", "XDG_DATA_HOME=", "SYMBOLIZE_LOCAL=",
		"DEBUGINFOD_URLS=", "PATH="+r.bin+":"+os.Getenv("PATH"))
	var messages strings.Builder
	cmd.Stderr = &messages
	out, err := cmd.Output()
	if err != nil {
		r.t.Fatalf("%s: %v\n%s", script, err, messages.String())
	}
	return string(out)
}

// missing returns the share of the frames that have no name for a reason, in percent, and its hint.
func (r *hintRun) missing(reason ingest.Reason, args string) (share float64, hint string) {
	r.t.Helper()
	var c struct {
		Missing []struct {
			Reason, Hint string
			Share        float64 `json:"frames_percent"`
		}
	}
	text := r.sh("symbolize missing -q --count --format json " + args)
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		r.t.Fatal(err)
	}
	for _, m := range c.Missing {
		if m.Reason == reason.String() {
			share += m.Share
			hint = m.Hint
		}
	}
	return share, hint
}

// restore has a setting of the kernel as it was when the test ends.
func restore(t *testing.T, path string) {
	was := must.Read(t, path)
	t.Cleanup(func() { writeSetting(t, path, was) })
}

// writeSetting waits while the kernel refuses to change a setting: the length of call chains is
// fixed while anybody on the host records some.
func writeSetting(t *testing.T, path string, value []byte) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		err := os.WriteFile(path, value, 0)
		if err == nil {
			return
		}
		if !errors.Is(err, syscall.EBUSY) || time.Now().After(end) {
			t.Error(err)
			return
		}
	}
}

// awaitSettings waits until settings can be changed, by writing what is there.
func awaitSettings(t *testing.T) {
	t.Helper()
	const path = "/proc/sys/kernel/perf_event_max_stack"
	is := must.Read(t, path)
	writeSetting(t, path, is)
}
