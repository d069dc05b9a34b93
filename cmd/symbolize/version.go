package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/cmd/symbolize/internal/flags"
	"symbolize/cmd/symbolize/internal/help"
	"symbolize/ingest"
)

// versionInfo is the output of `version`.
type versionInfo struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"` // of the source tree, when it was built from one
	Modified bool   `json:"modified,omitempty"` // the tree had changes of its own
	Go       string `json:"go"`
	Platform string `json:"platform"`

	Time time.Time `json:"-"` // of the revision
}

func readVersion() versionInfo {
	v := versionInfo{
		Version:  "(devel)",
		Go:       runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
	bi, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if bi.Main.Version != "" {
		v.Version = bi.Main.Version
	}
	for _, s := range bi.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		case "vcs.time":
			v.Time, _ = time.Parse(time.RFC3339, s.Value) // zero where it is malformed
		}
	}
	return v
}

func versionText() string {
	v := readVersion()
	text := "symbolize " + v.Version
	if v.Revision != "" {
		text += " " + v.Revision
	}
	return fmt.Sprintf("%s %s %s", text, v.Go, v.Platform)
}

func newVersionCommand(a *cli.App) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  help.NoArgs,
		RunE: a.RunE(func(context.Context, []string) error {
			if format == flags.JSON {
				return ingest.WriteJSON(a.Stdout(), readVersion())
			}
			if err := flags.CheckFormat(format, flags.Text, flags.JSON); err != nil {
				return err
			}
			_, err := fmt.Fprintln(a.Stdout(), versionText())
			return err
		}),
	}
	flags.AddFormat(cmd, &format, flags.Text, flags.JSON)
	return cmd
}
