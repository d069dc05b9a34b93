package main

import (
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"symbolize/cmd/symbolize/internal/exit"
)

// The words of --format. Each subcommand takes some of them.
const (
	formatText   = "text"
	formatJSON   = "json"
	formatPprof  = "pprof"
	formatFolded = "folded"
	formatScript = "script"
	formatHTML   = "html"
	formatSVG    = "svg"
)

// textFolded is the hint for terminals of commands whose results can be folded stacks.
const textFolded = ", or ask for --format folded"

// addFormatFlag adds --format with these words, the first of them the default.
func addFormatFlag(cmd *cobra.Command, p *string, words ...string) {
	cmd.Flags().StringVar(p, "format", words[0],
		"`FORMAT` of the result: "+strings.Join(words, " or "))
	completeFixed(cmd, "format", words)
}

func addOutputFlag(fs *pflag.FlagSet, p *string) {
	fs.StringVarP(p, "output", "o", "",
		"write to `FILE`; - is standard output, which is the default")
}

// addLimitFlag adds -n and its other name, --rows.
func addLimitFlag(fs *pflag.FlagSet, p *int, byDefault int, usage string) {
	fs.IntVarP(p, "limit", "n", byDefault, usage)
	if byDefault < 0 { // none: usage describes it
		fs.Lookup("limit").DefValue = "0"
	}
	fs.IntVar(p, "rows", byDefault, usage)
	fs.Lookup("rows").Hidden = true
}

func addCountFlag(fs *pflag.FlagSet, p *bool) {
	fs.BoolVar(p, "count", false, "count samples instead of adding up their periods")
}

// completionWords is the annotation of flags that has the words of completeFixed.
const completionWords = "symbolize_completion"

// completeFixed makes the shell complete a flag with these words, see app.completeFlags.
func completeFixed(cmd *cobra.Command, flag string, words []string) {
	if err := cmd.Flags().SetAnnotation(flag, completionWords, words); err != nil {
		panic(err) // a flag that this program does not define: a bug of ours
	}
}

// checkFormat refuses a word that is not among these.
func checkFormat(word string, words ...string) error {
	return checkWord("--format", word, words)
}

func checkWord(flag, word string, words []string) error {
	if slices.Contains(words, word) {
		return nil
	}
	return exit.Usagef("%s %q: it is one of %s", flag, word, strings.Join(words, ", "))
}

// byteSize is a flag value: a number of bytes with an optional unit, "512MiB",
// "300M", "1G". Units are powers of 1,024; 0 means "no limit of our own".
type byteSize int64

var byteUnits = []struct {
	suffix string
	shift  uint
}{
	{"kib", 10}, {"mib", 20}, {"gib", 30}, {"tib", 40},
	{"kb", 10}, {"mb", 20}, {"gb", 30}, {"tb", 40},
	{"k", 10}, {"m", 20}, {"g", 30}, {"t", 40}, {"b", 0},
}

// Set implements pflag.Value.
func (b *byteSize) Set(s string) error {
	text, shift := strings.ToLower(strings.TrimSpace(s)), uint(0)
	for _, u := range byteUnits {
		if rest, ok := strings.CutSuffix(text, u.suffix); ok {
			text, shift = strings.TrimSpace(rest), u.shift
			break
		}
	}
	n, err := strconv.ParseUint(text, 10, 62)
	if err != nil || n > 1<<62>>shift {
		return exit.Usagef("%q is no size: 512MiB, 2G or a number of bytes is", s)
	}
	*b = byteSize(n << shift)
	return nil
}

// String implements pflag.Value.
func (b *byteSize) String() string {
	for _, u := range []struct {
		suffix string
		shift  uint
	}{{"GiB", 30}, {"MiB", 20}, {"KiB", 10}} {
		if n := int64(*b); n >= 1<<u.shift && n%(1<<u.shift) == 0 {
			return strconv.FormatInt(n>>u.shift, 10) + u.suffix
		}
	}
	return strconv.FormatInt(int64(*b), 10)
}

// Type implements pflag.Value.
func (b *byteSize) Type() string { return "SIZE" }

// checkJobs accepts the number of workers, 0 being one for each CPU.
func checkJobs(n int) error {
	if n < 0 {
		return exit.Usagef("--jobs %d: it is at least 1", n)
	}
	return nil
}
