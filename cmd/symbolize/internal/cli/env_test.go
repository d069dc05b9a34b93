package cli

import (
	"bytes"
	"strings"
)

// inProcess returns an Env without a terminal that collects the output. Objects come from no file
// of the machine.
func inProcess(args ...string) (env *Env, stdout, stderr *bytes.Buffer) {
	stdout, stderr = new(bytes.Buffer), new(bytes.Buffer)
	return &Env{Args: args, Stdin: strings.NewReader(""), Stdout: stdout, Stderr: stderr,
		Getenv: func(name string) string {
			if name == hostEnv {
				return "0"
			}
			return ""
		}}, stdout, stderr
}
