package lookup

import (
	"symbolize/analyze/report"
	"symbolize/analyze/resolve"
)

// Style selects the tool with the output to reproduce.
type Style uint8

// The styles.
const (
	LLVM Style = iota // llvm-symbolizer --inlines
	GNU               // addr2line -f -i -C
	JSON              // llvm-symbolizer --output-style=JSON
)

// Options select the addresses' origin and the form of the answers.
type Options struct {
	Offsets bool   // addresses are file offsets; of a kernel, offsets from _text
	Section string // addresses count from the start of this section; "" for ELF addresses

	Style     Style
	Layout    Layout
	Demangle  report.Mode
	Names     resolve.NamePolicy
	OwnNames  bool // Names is given: it overrides the choice of Style's tool
	NoInlines bool // only the physical frame
	Basenames bool // files without directories
}
