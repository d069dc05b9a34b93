package main

import (
	"bytes"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"symbolize/analyze/report"
	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/fixtures/profilebuild"
)

// TestMetrics: the parser of Prometheus reads what --metrics writes, and its linter, that of
// promtool, has nothing to say. It is here because the module at the top does without both.
func TestMetrics(t *testing.T) {
	r := &cli.Run{Command: "batch \"run\"\\\n", Captures: 3, Failed: 1, Tables: 7, Seconds: 1.5,
		CPU: 2.25, Memory: 1 << 20, Exit: 3, Finished: 1_790_000_000}
	r.Add(report.NewCoverage(profilebuild.EveryKind(), report.CoverageOptions{}))
	var b bytes.Buffer
	if err := r.WriteMetrics(&b); err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.New(&b).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}
