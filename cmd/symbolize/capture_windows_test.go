package main

import "github.com/rogpeppe/go-internal/testscript"

// cmdCapture needs the numbers of files and devices.
func cmdCapture(ts *testscript.TestScript, _ bool, _ []string) {
	ts.Fatalf("capture: recordings have no such files")
}
