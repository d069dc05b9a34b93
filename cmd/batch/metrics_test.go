package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
)

// TestMetrics: the parser of Prometheus reads what --metrics writes, and its linter, the one of
// promtool, reports nothing. The test is in this module because the main module needs neither.
func TestMetrics(t *testing.T) {
	dir := t.TempDir()
	binary, metrics := filepath.Join(dir, "symbolize"), filepath.Join(dir, "metrics.prom")
	build := exec.Command("go", "build", "-o", binary, "./cmd/symbolize")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	resolve := exec.Command(binary, "resolve", "-q", "--no-local", "--store", filepath.Join(dir, "store"),
		"--metrics", metrics, "-o", filepath.Join(dir, "x.folded"), "../../fixtures/captures/mixed.data")
	if out, err := resolve.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", resolve, err, out)
	}
	b, err := os.ReadFile(metrics)
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.New(bytes.NewReader(b)).Lint()
	if err != nil || len(b) == 0 {
		t.Fatalf("%d bytes: %v", len(b), err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}
