//go:build !linux

package check

// Host reports that captures are made on Linux only.
func Host() []Need {
	return []Need{{Name: "Linux", For: "anything", Fix: "run it on the host to be captured",
		Fatal: true}}
}
