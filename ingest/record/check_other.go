//go:build !linux

package record

// CheckHost reports that captures are made on Linux only.
func CheckHost() []Need {
	return []Need{{Name: "Linux", For: "anything", Fix: "run it on the host to be captured",
		Fatal: true}}
}
