package main

import (
	"context"
	_ "embed"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"symbolize/analyze/columns"
	"symbolize/analyze/table"
	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/cmd/symbolize/internal/version"
	"symbolize/ingest/format/bundle"
	"symbolize/store"
)

// notices are the licences of the modules in the binary: fixtures/release/notices wrote them.
//
//go:embed notices.txt
var notices string

// format is a format of files that are kept, in which versions differ.
type format struct {
	Name   string `json:"name"`
	Writes string `json:"writes"`
	Reads  string `json:"reads"`
}

// formats are described in docs/formats.md.
var formats = []format{
	{Name: "store", Writes: fmt.Sprint(store.SchemaVersion), Reads: fmt.Sprint(store.SchemaVersion)},
	{Name: "bundle", Writes: fmt.Sprint(bundle.Format), Reads: fmt.Sprintf("1 to %d", bundle.Format)},
	{Name: "parquet", Writes: columns.SchemaVersion, Reads: "-"},
	{Name: "pprof", Writes: "profile.proto", Reads: "profile.proto"},
	{Name: "otlp", Writes: "1.10", Reads: "1.8 to 1.10"},
}

// versionFacts is the JSON of version.
type versionFacts struct {
	version.Info
	Formats []format `json:"formats"`
}

func newVersionCommand(a *cli.App) *cobra.Command {
	var (
		form     string
		licenses bool
	)
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version, and the formats that it writes and reads",
		Args:  cli.NoArgs,
		RunE: a.RunE(func(context.Context, []string) error {
			if licenses {
				return a.WriteOutput("", false, func(w io.Writer) error {
					_, err := io.WriteString(w, notices)
					return err
				})
			}
			v := version.Read()
			return a.WriteFacts(form, "version/1", versionFacts{v, formats}, func(w io.Writer) error {
				fmt.Fprintln(w, version.Text()) // the table reports an error
				if v.Revision != "" {
					fmt.Fprintf(w, "commit %s of %s\n", v.Revision, v.Time.UTC().Format("2006-01-02"))
				}
				t := table.New()
				t.Row("FORMAT", "WRITES", "READS")
				for _, f := range formats {
					t.Row(f.Name, f.Writes, f.Reads)
				}
				return t.Print(w)
			})
		}),
	}
	cmd.Flags().BoolVar(&licenses, "licenses", false, "print the licences of the code in the program")
	cli.AddFormat(cmd, &form, cli.Text, cli.JSON)
	return cmd
}
