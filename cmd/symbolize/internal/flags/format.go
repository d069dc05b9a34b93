// Package flags has the flags that several commands share: words of --format, forms of names,
// sizes, processes, the files that belong to a stack map, work and the lock of the store.
package flags

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"symbolize/cmd/symbolize/internal/exit"
)

// The words of --format. Each subcommand takes some of them.
const (
	Text   = "text"
	JSON   = "json"
	Pprof  = "pprof"
	Folded = "folded"
	Script = "script"
	HTML   = "html"
	SVG    = "svg"
	// AutoFDO is the text form of AutoFDO's input.
	AutoFDO = "autofdo"
)

// Extensions are the ends of the names of files, by the format that they mean.
var Extensions = map[string]string{
	Pprof: ".pb.gz", Folded: ".folded", JSON: ".json", Script: ".txt", AutoFDO: ".afdo",
}

// FoldedHint is the hint for terminals of commands whose results can be folded stacks.
const FoldedHint = ", or ask for --format folded"

// AddFormat adds --format with these words, the first of them the default.
func AddFormat(cmd *cobra.Command, p *string, words ...string) {
	cmd.Flags().StringVar(p, "format", words[0],
		"`FORMAT` of the result: "+strings.Join(words, " or "))
	Complete(cmd, "format", words)
}

// AddOutput adds -o.
func AddOutput(fs *pflag.FlagSet, p *string) {
	fs.StringVarP(p, "output", "o", "",
		"write to `FILE`; - is standard output, which is the default")
}

// AddLimit adds -n and its other name, --rows.
func AddLimit(fs *pflag.FlagSet, p *int, byDefault int, usage string) {
	fs.IntVarP(p, "limit", "n", byDefault, usage)
	if byDefault < 0 { // none: usage describes it
		fs.Lookup("limit").DefValue = "0"
	}
	fs.IntVar(p, "rows", byDefault, usage)
	fs.Lookup("rows").Hidden = true
}

// AddCount adds --count.
func AddCount(fs *pflag.FlagSet, p *bool) {
	fs.BoolVar(p, "count", false, "count samples instead of adding up their periods")
}

// CompletionWords is the annotation of flags that has the words of Complete.
const CompletionWords = "symbolize_completion"

// Complete makes the shell complete a flag with these words.
func Complete(cmd *cobra.Command, flag string, words []string) {
	if err := cmd.Flags().SetAnnotation(flag, CompletionWords, words); err != nil {
		panic(err) // a flag that this program does not define: a bug of ours
	}
}

// CheckFormat refuses a word that is not among these.
func CheckFormat(word string, words ...string) error {
	return CheckWord("--format", word, words)
}

// CheckWord refuses the word of a flag that is not among these.
func CheckWord(flag, word string, words []string) error {
	if slices.Contains(words, word) {
		return nil
	}
	return exit.Usagef("%s %q: it is one of %s", flag, word, strings.Join(words, ", "))
}
