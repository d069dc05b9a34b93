package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// commandLines finds the command lines of symbolize in the examples for engines.
var commandLines = map[string]*regexp.Regexp{
	"kubernetes.yaml":         regexp.MustCompile(`(?m)args: \[(.*)\]$`),
	"symbolize-night.service": regexp.MustCompile(`(?m)^ExecStart=\S*symbolize (.*)$`),
}

// TestNightExamples: the examples for engines name commands and flags that there are.
func TestNightExamples(t *testing.T) {
	for name, expr := range commandLines {
		b, err := os.ReadFile("../../fixtures/night/" + name)
		if err != nil {
			t.Fatal(err)
		}
		found := expr.FindAllStringSubmatch(string(b), -1)
		if len(found) == 0 {
			t.Errorf("%s: no command line", name)
		}
		for _, m := range found {
			words := strings.Fields(strings.NewReplacer(", ", " ", `"`, "").Replace(m[1]))
			env, _, _ := inProcess()
			cmd, rest, err := newRootCommand(&app{env: env}).Find(words)
			if err != nil || cmd.RunE == nil || !strings.HasPrefix(cmd.CommandPath(), "symbolize batch ") {
				t.Errorf("%s: %q is no command: %v", name, words, err)
				continue
			}
			if err := cmd.ParseFlags(rest); err != nil {
				t.Errorf("%s: %q: %v", name, words, err)
			}
		}
	}
}
