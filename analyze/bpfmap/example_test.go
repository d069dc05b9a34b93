package bpfmap_test

import (
	"context"
	"fmt"
	"os"

	"symbolize/analyze/bpfmap"
)

// stderr prints the remarks of a command line.
type stderr struct{}

func (stderr) Note(text string)         { fmt.Fprintln(os.Stderr, text) }
func (stderr) Warn(text, hint string)   { fmt.Fprintln(os.Stderr, text, hint) }
func (stderr) Damage(text, hint string) { fmt.Fprintln(os.Stderr, text, hint) }

func ExampleOpen() {
	in, err := bpfmap.Open(context.Background(), []string{"../../fixtures/drops/locations.json"},
		bpfmap.Source{}, stderr{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer in.Close()
	r, err := in.List[0].Addresses(bpfmap.SymbolOptions{Key: "key", Rows: 2}, stderr{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%d in all, addresses %#x\n", r.Total, r.PCs())
	// Output: 1109 in all, addresses [0xffffffff8204674c]
}
