package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/fixtures/must"
)

// TestNightUnits runs the command of the systemd service, and has systemd check both units where it
// is there.
func TestNightUnits(t *testing.T) {
	const service, timer = "symbolize-night.service", "symbolize-night.timer"
	b := must.Read(t, "../../fixtures/night/"+service)
	command := regexp.MustCompile(`(?m)^ExecStart=/usr/bin/(symbolize .*)$`).FindStringSubmatch(string(b))
	if command == nil || !strings.Contains(string(b), fmt.Sprintf("SuccessExitStatus=%d\n", cli.Partial)) {
		t.Fatalf("%s: no ExecStart, or a capture that cannot be read is a failure", service)
	}
	r := newNightRunner(t)
	r.put("fixed", "web/h1", "2026-03-01")
	line := strings.ReplaceAll(command[1], " {", " '{")
	line = strings.ReplaceAll(line, "}.data ", "}.data' ")
	if status := r.run(line); status != cli.OK {
		t.Errorf("status %d", status)
	}
	broken := filepath.Join(r.srv, "captures", "web", "h2", "2026-03-01.data")
	if err := errors.Join(os.MkdirAll(filepath.Dir(broken), 0o755),
		os.WriteFile(broken, []byte("no capture\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if status := r.run(line); status != cli.Partial {
		t.Errorf("with a broken capture: status %d", status)
	}
	if fi, err := os.Stat(filepath.Join(r.srv, "profiles", "summary.json")); err != nil || fi.Size() == 0 {
		t.Errorf("the summary: %v", err)
	}
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("SKIPPED: systemd-analyze is not there")
	}
	// verify wants a program that is there.
	units := t.TempDir()
	for _, name := range []string{service, timer} {
		b, err := os.ReadFile("../../fixtures/night/" + name)
		text := strings.Replace(string(b), "/usr/bin/symbolize", filepath.Join(r.bin, "symbolize"), 1)
		if err := errors.Join(err, os.WriteFile(filepath.Join(units, name), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.Command("systemd-analyze", "verify", filepath.Join(units, timer),
		filepath.Join(units, service)).CombinedOutput()
	if err != nil || strings.Contains(string(out), "symbolize-night") {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}

// TestNightKubernetes runs the tasks of the Indexed Jobs one after another, as their containers
// would: the profiles equal batch run's, though one capture is broken.
func TestNightKubernetes(t *testing.T) {
	b := must.Read(t, "../../fixtures/night/kubernetes.yaml")
	jobs := regexp.MustCompile(`(?s)completions: (\d+).*?args: \[(.*?)\]`).FindAllStringSubmatch(string(b), -1)
	if len(jobs) != 3 {
		t.Fatalf("%d jobs", len(jobs))
	}
	r := newNightRunner(t)
	for i, name := range []string{"fixed", "mixed", "go", "spawn"} {
		r.put(name, "web", strconv.Itoa(i))
	}
	broken := filepath.Join(r.srv, "captures", "broken.data")
	must.Write(t, broken, []byte("no capture\n"))
	for _, job := range jobs {
		tasks, err := strconv.Atoi(job[1])
		if err != nil {
			t.Fatal(err)
		}
		for i := range tasks {
			args := strings.NewReplacer(`"`, "", ", ", " ", "/night/", "/srv/",
				"$(JOB_COMPLETION_INDEX)", strconv.Itoa(i)).Replace(job[2])
			if status := r.run(fmt.Sprintf("JOB_COMPLETION_INDEX=%d symbolize %s", i, args)); status != cli.OK {
				t.Fatalf("task %d of %q: status %d", i, args, status)
			}
		}
	}
	if status := r.run("symbolize batch run -q --by host -o /srv/run /srv/captures"); status != cli.Partial {
		t.Errorf("batch run: status %d", status)
	}
	got := profilesBelow(t, filepath.Join(r.srv, "profiles"))
	want := profilesBelow(t, filepath.Join(r.srv, "run"))
	if len(got) != len(want) || len(want) == 0 {
		t.Errorf("%d profiles, want %d", len(got), len(want))
	}
	for name := range want {
		if got[name] != want[name] {
			t.Errorf("%s: %d bytes, want the %d of batch run", name, len(got[name]), len(want[name]))
		}
	}
}

// profilesBelow reads the profiles below a directory.
func profilesBelow(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".pb.gz") {
			return err
		}
		b, err := os.ReadFile(path)
		files[strings.TrimPrefix(path, dir)] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
