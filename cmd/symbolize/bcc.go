package main

import (
	"context"

	"github.com/spf13/pflag"

	"symbolize/analyze"
	"symbolize/store"
	"symbolize/store/bpfprog"
)

// addBCCFlag adds --bcc-dir. It has no default: text and captures may be of any host, and
// files in a directory that anybody can write to are used only on request.
func addBCCFlag(fs *pflag.FlagSet, dirs *[]string) {
	fs.StringArrayVar(dirs, "bcc-dir", nil,
		"take BPF programs from `DIR` too, where bcc left their sources: /var/tmp/bcc on its host")
}

// addBCC merges the files in the directories of --bcc-dir. open is not called if there are
// none.
func (a *app) addBCC(ctx context.Context, dirs []string, open func() (store.Sink, error)) error {
	for _, dir := range dirs {
		sink, err := open()
		if err != nil {
			return err
		}
		stats, err := bpfprog.AddBCC(ctx, sink, dir)
		if err != nil {
			return err
		}
		for _, w := range analyze.BCCWarnings(dir, stats) {
			a.warn(w.Text, w.Hint)
		}
	}
	return nil
}
