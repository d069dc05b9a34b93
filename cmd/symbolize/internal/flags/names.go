package flags

import (
	"cmp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"symbolize/analyze/report"
	"symbolize/analyze/resolve"
	"symbolize/cmd/symbolize/internal/exit"
	"symbolize/ingest"
)

// AddNames adds --names.
func AddNames(cmd *cobra.Command, names *string, usage string) {
	cmd.Flags().StringVar(names, "names", "",
		"where symbol and debug information name a function differently, show the name of: "+usage)
	Complete(cmd, "names", resolve.NamePolicies)
}

// ParseNames checks the word of --names.
func ParseNames(names string) (resolve.NamePolicy, error) {
	if err := CheckWord("--names", names, resolve.NamePolicies); err != nil {
		return 0, err
	}
	return resolve.ParseNamePolicy(names)
}

// AddLabels adds --labels and its other name, --keep.
func AddLabels(fs *pflag.FlagSet, labels *[]string) {
	fs.StringSliceVar(labels, "labels", nil,
		"keep samples of different `LABELS` apart: pid, tid, cpu, "+ingest.TagWords()+
			"; the comm always is")
	fs.StringSliceVar(labels, "keep", nil, "the same as --labels")
	fs.Lookup("keep").Hidden = true
}

// ParseLabels parses --labels.
func ParseLabels(labels []string) (keep ingest.Keep, err error) {
	for _, l := range labels {
		word := ingest.CanonicalLabel(l)
		if !slices.Contains(ingest.FieldLabels[:], word) && ingest.ParseTag(word) != nil {
			return keep, exit.Usagef("--labels %q: it is one of %s, %s", l,
				strings.Join(ingest.FieldLabels[:], ", "), ingest.TagWords())
		}
		if err := keep.Add(word); err != nil {
			return keep, exit.Usagef("--labels: %v", err)
		}
	}
	return keep, nil
}

// DemangleModes are the words of --demangle, which are pprof's.
var DemangleModes = []string{"simple", "templates", "full", "none"}

// AddDemangle adds --demangle; its usage names the default.
func AddDemangle(cmd *cobra.Command, mode *string, byDefault string) {
	cmd.Flags().StringVar(mode, "demangle", "",
		"how much of C++ and Rust names is shown: simple, templates, full or none as `MODE` (default "+
			byDefault+")")
	Complete(cmd, "demangle", DemangleModes)
}

// ParseDemangle reads --demangle; byDefault is the mode where it is not given.
func ParseDemangle(mode, byDefault string) (report.Mode, error) {
	mode = cmp.Or(mode, byDefault)
	if err := CheckWord("--demangle", mode, DemangleModes); err != nil {
		return 0, err
	}
	return report.ParseMode(mode)
}
