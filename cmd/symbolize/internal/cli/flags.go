package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"symbolize/analyze/demangle"
	"symbolize/analyze/pgo"
	"symbolize/analyze/resolve"
	"symbolize/ingest"
	"symbolize/ingest/texts"
	"symbolize/store/db"
)

// The words of --format. Each subcommand accepts some of them.
const (
	Text       = "text"
	JSON       = "json"
	Pprof      = "pprof"
	Folded     = "folded"
	Script     = "script"
	HTML       = "html"
	SVG        = "svg"
	Speedscope = "speedscope"
	Gecko      = "gecko" // of the Firefox Profiler
	AutoFDO    = "autofdo"
	Preagg     = "preagg" // pre-aggregated, of BOLT
	Fdata      = "fdata"  // of BOLT, by symbols
	LLVM       = "llvm-profile"
	GCOV       = "gcov" // of gcc
	OTLP       = "otlp"
	OTLPJSON   = "otlp-json"
	Parquet    = "parquet"
)

// Extensions are the ends of file names, by format.
var Extensions = map[string]string{
	Pprof: ".pb.gz", Folded: ".folded", JSON: ".json", Script: ".txt",
	AutoFDO: pgo.FormatAutoFDO, Preagg: pgo.FormatPreagg, Fdata: pgo.FormatFdata, LLVM: pgo.FormatLLVM, GCOV: pgo.FormatGCOV,
	OTLP: ".otlp", OTLPJSON: ".otlp.json", Parquet: ".parquet",
	Text: ".txt", HTML: ".html", SVG: ".svg", Speedscope: ".speedscope.json", Gecko: ".gecko.json",
}

// pgoExtension is the other extension of pprof: go build reads default.pgo.
const pgoExtension = ".pgo"

// FoldedHint is the hint for terminals of commands that can print folded stacks.
const FoldedHint = ", or ask for --format folded"

// AddFormat adds --format with these words, the first of them the default.
func AddFormat(cmd *cobra.Command, p *string, words ...string) {
	*p = words[0]
	AddChoice(cmd, p, "format", "`FORMAT` of the result: "+strings.Join(words, ", "), words...)
}

// AddFileFormat adds --format with these words; FormatByName sets *p without the flag.
func AddFileFormat(cmd *cobra.Command, p *string, words ...string) {
	AddChoice(cmd, p, "format", "`FORMAT`: "+strings.Join(words, ", ")+" (default by the name of -o)",
		words...)
}

// FormatByName sets *p, if it is "", to the format of an output file by its name, and to the first
// of words for standard output and directories.
func FormatByName(p *string, output string, directory bool, words ...string) error {
	if *p != "" {
		return nil
	}
	name, ends := filepath.Base(output), make([]string, len(words))
	for i, w := range words {
		if ends[i] = Extensions[w]; strings.HasSuffix(name, ends[i]) &&
			len(ends[i]) > len(Extensions[*p]) {
			*p = w
		}
	}
	if filepath.Ext(name) == pgoExtension && slices.Contains(words, Pprof) {
		*p = Pprof
	}
	if *p != "" {
		return nil
	}
	*p = words[0]
	if ext := filepath.Ext(name); ext != "" && output != "-" && !directory && name != ext {
		last := len(ends) - 1
		return texts.WithHint(Usagef("-o %s: no format has the extension %s", output, ext),
			"name one with --format, or end the name in %s or %s", strings.Join(ends[:last], ", "),
			ends[last])
	}
	return nil
}

// choice is the value of a flag with a fixed set of words.
type choice struct {
	to    *string
	words []string
}

// Set implements pflag.Value.
func (c *choice) Set(word string) error {
	if err := checkWord(word, c.words); err != nil {
		return err
	}
	*c.to = word
	return nil
}

// String implements pflag.Value.
func (c *choice) String() string { return *c.to }

// Type implements pflag.Value.
func (*choice) Type() string { return "string" }

// AddChoice adds a flag with a fixed set of words, which the shell completes. *p is the default.
func AddChoice(cmd *cobra.Command, p *string, name, usage string, words ...string) {
	cmd.Flags().Var(&choice{p, words}, name, usage)
	Complete(cmd, name, words)
}

// AddOutput adds -o.
func AddOutput(fs *pflag.FlagSet, p *string) {
	fs.StringVarP(p, "output", "o", "",
		"write to `FILE`; - is standard output (default)")
}

// Result is where a report goes, and in which format.
type Result struct {
	Output, Format string
	words          []string
}

// AddFlags adds -o and --format with these words, the first of them the default.
func (r *Result) AddFlags(cmd *cobra.Command, words ...string) {
	r.words = words
	AddOutput(cmd.Flags(), &r.Output)
	AddFileFormat(cmd, &r.Format, words...)
}

// Check sets the format by the name of the output, and refuses to write over an input.
func (r *Result) Check(inputs []string) error {
	return cmp.Or(FormatByName(&r.Format, r.Output, false, r.words...),
		RefuseOverwrite(inputs, []string{r.Output}))
}

// CheckLimit checks -n.
func CheckLimit(n int) error {
	if n < 0 {
		return Usagef("-n %d: it is at least 0", n)
	}
	return nil
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

// CheckWord refuses the word of a flag that is not among these.
func CheckWord(flag, word string, words []string) error {
	if err := checkWord(word, words); err != nil {
		return Usagef("%s %w", flag, err)
	}
	return nil
}

func checkWord(word string, words []string) error {
	if slices.Contains(words, word) {
		return nil
	}
	return Usagef("%q: it is one of %s", word, strings.Join(words, ", "))
}

// AddNames adds --names.
func AddNames(cmd *cobra.Command, names *string, usage string) {
	AddChoice(cmd, names, "names", "choose between different names of a function in symbol table and "+
		"debug information: "+usage, resolve.NamePolicies...)
}

// AddLabels adds --labels and its other name, --keep.
func AddLabels(fs *pflag.FlagSet, labels *[]string) {
	fs.StringSliceVar(labels, "labels", nil,
		"keep samples with different `LABELS` apart, besides comm: pid, tid, cpu, "+ingest.TagWords())
	fs.StringSliceVar(labels, "keep", nil, "the same as --labels")
	fs.Lookup("keep").Hidden = true
}

// ParseLabels parses --labels.
func ParseLabels(labels []string) (keep ingest.Keep, err error) {
	for _, l := range labels {
		word := ingest.CanonicalLabel(l)
		if !slices.Contains(ingest.FieldLabels[:], word) && ingest.ParseTag(word) != nil {
			return keep, Usagef("--labels %q: it is one of %s, %s", l,
				strings.Join(ingest.FieldLabels[:], ", "), ingest.TagWords())
		}
		if err := keep.Add(word); err != nil {
			return keep, Usagef("--labels: %v", err)
		}
	}
	return keep, nil
}

// AddDemangle adds --demangle; its usage names the default.
func AddDemangle(cmd *cobra.Command, mode *string, byDefault string) {
	words := []string{"simple", "templates", "full", "none"} // pprof's
	AddChoice(cmd, mode, "demangle", "how much of encoded names to print (C++, Rust, OCaml, Haskell): `MODE` is simple, "+
		"templates, full or none (default "+byDefault+")", words...)
}

// ParseDemangle reads --demangle; byDefault is the mode where it is not given.
func ParseDemangle(mode, byDefault string) (demangle.Mode, error) {
	return demangle.ParseMode(cmp.Or(mode, byDefault))
}

// PIDs is a flag value: IDs of processes, or of threads, with commas between them, each
// occurrence adding its own.
type PIDs[T int | int32] []T

// AddPIDs adds --pid.
func AddPIDs[T int | int32](fs *pflag.FlagSet, p *[]T, usage string) {
	fs.VarP((*PIDs[T])(p), "pid", "p", usage)
}

// Set implements pflag.Value.
func (l *PIDs[T]) Set(s string) error {
	for text := range strings.SplitSeq(s, ",") {
		n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 32)
		if err != nil {
			return Usagef("%q is not a list of process or thread IDs, such as 123 or 123,456", s)
		}
		*l = append(*l, T(n))
	}
	return nil
}

// String implements pflag.Value.
func (l *PIDs[T]) String() string {
	var texts []string
	for _, n := range *l {
		texts = append(texts, strconv.FormatInt(int64(n), 10))
	}
	return strings.Join(texts, ",")
}

// Type implements pflag.Value.
func (*PIDs[T]) Type() string { return "PID" }

// Dirs is a flag value: directories, which must be there, one for each occurrence.
type Dirs []string

// Set implements pflag.Value.
func (l *Dirs) Set(dir string) error {
	fi, err := os.Stat(dir)
	var pe *fs.PathError
	switch {
	case errors.As(err, &pe):
		return Usagef("%s: %v", dir, pe.Err)
	case err != nil:
		return err
	case !fi.IsDir():
		return Usagef("%s: not a directory", dir)
	}
	*l = append(*l, dir)
	return nil
}

// String implements pflag.Value.
func (l *Dirs) String() string { return strings.Join(*l, ", ") }

// Type implements pflag.Value.
func (*Dirs) Type() string { return "DIR" }

// WarnEmpty warns of directories of a flag that have nothing in them, as one that is not mounted.
func (a *App) WarnEmpty(flag string, dirs []string) {
	for _, dir := range dirs {
		if list, err := os.ReadDir(dir); err == nil && len(list) == 0 { // who reads it reports errors
			a.Warn(fmt.Sprintf("%s: the directory is empty (--%s)", texts.Printable(dir), flag), "")
		}
	}
}

// Size is a flag value: a number of bytes with an optional unit, "512MiB", "300M", "1G". Units are
// powers of 1,024; 0 means "no limit of our own".
type Size int64

var byteUnits = []struct {
	suffix string
	shift  uint
}{
	{"kib", 10}, {"mib", 20}, {"gib", 30}, {"tib", 40},
	{"kb", 10}, {"mb", 20}, {"gb", 30}, {"tb", 40},
	{"k", 10}, {"m", 20}, {"g", 30}, {"t", 40}, {"b", 0},
}

// Set implements pflag.Value.
func (b *Size) Set(s string) error {
	text, shift := strings.ToLower(strings.TrimSpace(s)), uint(0)
	for _, u := range byteUnits {
		if rest, ok := strings.CutSuffix(text, u.suffix); ok {
			text, shift = strings.TrimSpace(rest), u.shift
			break
		}
	}
	n, err := strconv.ParseUint(text, 10, 62)
	if err != nil || n > 1<<62>>shift {
		return Usagef("%q is not a size, such as 512MiB, 2G or a number of bytes", s)
	}
	*b = Size(n << shift)
	return nil
}

// String implements pflag.Value.
func (b *Size) String() string {
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
func (b *Size) Type() string { return "SIZE" }

// AddJobs adds --jobs.
func AddJobs(fs *pflag.FlagSet, jobs *int) {
	AddGroup(fs, GroupLimits, func(fs *pflag.FlagSet) {
		fs.IntVarP(jobs, "jobs", "j", 0, "use at most `N` cores (default all)")
	})
}

// AddWork adds --jobs and --max-memory.
func AddWork(fs *pflag.FlagSet, jobs *int, maxMemory *Size) {
	AddJobs(fs, jobs)
	AddGroup(fs, GroupLimits, func(fs *pflag.FlagSet) {
		fs.Var(maxMemory, "max-memory", "try to use less memory than `SIZE`, such as 512MiB or 2G (default: no limit)")
	})
}

// AddWriter adds the flags of all commands that write to the store. The help of index alone has them.
func AddWriter(fs *pflag.FlagSet, o *db.WriterOptions) {
	fs.DurationVar(&o.LockTimeout, "lock-timeout", LockTimeout,
		"wait up to `TIME` for another writer of the store")
	fs.BoolVar(&o.Shared, "shared-store", false,
		"write even if other users can write to the store's directory or one above it")
	for _, name := range writerFlags {
		fs.Lookup(name).Hidden = true
	}
}

// ShowWriter shows the flags of AddWriter in the help of the command.
func ShowWriter(fs *pflag.FlagSet) {
	for _, name := range writerFlags {
		fs.Lookup(name).Hidden = false
	}
}

var writerFlags = []string{"lock-timeout", "shared-store"}

// LockTimeout is how long a second writer waits for the first.
const LockTimeout = time.Minute

// AddBCCDirs adds --bcc-dir. It has no default: text and captures may be of any host, and
// files in a directory that anybody can write to are used only on request.
func AddBCCDirs(fs *pflag.FlagSet, dirs *[]string) {
	AddGroup(fs, GroupSymbols, func(fs *pflag.FlagSet) {
		fs.StringArrayVar(dirs, "bcc-dir", nil,
			"read the BPF programs that bcc left in `DIR` (/var/tmp/bcc on the host that ran them)")
	})
}

// CheckJobs accepts the number of workers, 0 being one for each CPU.
func CheckJobs(n int) error {
	if n < 0 {
		return Usagef("--jobs %d: it is at least 1", n)
	}
	return nil
}
