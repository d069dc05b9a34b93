package process

import "fmt"

// minOpenFiles is how many files must be allowed to be open: pipes and events of the runtime,
// the store and its lock, inputs and outputs. With fewer Go itself may fail.
const minOpenFiles = 64

// CheckOpenFiles refuses a limit with which nothing works.
func CheckOpenFiles() error {
	if n, ok := maxOpenFiles(); ok && n < minOpenFiles {
		return fmt.Errorf("only %d files may be open (ulimit -n): at least %d are needed",
			n, minOpenFiles)
	}
	return nil
}
