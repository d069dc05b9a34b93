package pprof_test

import (
	"bytes"
	"fmt"

	"symbolize/fixtures/profilebuild"
	"symbolize/ingest/input/pprof"
)

// A Profile becomes a file that `go tool pprof` reads, and comes back.
func ExampleWrite() {
	p := profilebuild.EveryKind()
	var file bytes.Buffer
	if err := pprof.Write(&file, p, pprof.WriteOptions{}); err != nil {
		fmt.Println(err)
		return
	}
	back, err := pprof.Read("profile.pb.gz", file.Bytes(), pprof.ReadOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(back.Stats.Samples == p.Stats.Samples, back.Events[0].Name)
	// Output:
	// true cpu
}
