package capturecmd

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"symbolize/analyze/table"
	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/ingest/record"
	"symbolize/ingest/texts"
)

// captureFacts is the output of `capture --summary`. The JSON names are an interface.
type captureFacts struct {
	File      string                  `json:"file"` // the last one with --rotate
	Programs  int                     `json:"bpf_programs"`
	Functions int                     `json:"bpf_functions"`
	Images    int                     `json:"bpf_images"`
	Copied    int                     `json:"bpf_images_copied"` // inside the kernel
	BTFs      int                     `json:"btf"`
	Bytes     int64                   `json:"bytes"` // of code and BTF
	KSymbols  int                     `json:"ksymbol_records"`
	Modules   int                     `json:"modules"`
	Processes int                     `json:"processes"`
	Maps      int                     `json:"bpf_maps"`
	MapDumps  int                     `json:"bpf_map_dumps"`
	Missing   []record.MissingProgram `json:"missing_programs"`
	Warnings  []string                `json:"warnings"`
	Lost      map[string]uint64       `json:"lost"` // by cause
	Runs      *captureRuns            `json:"bpf_runs,omitempty"`
	Stacks    *captureStacks          `json:"stacks,omitempty"`
	Command   *captureCommand         `json:"command,omitempty"`
}

type captureRuns struct {
	Runs        uint64 `json:"run_count"`
	Nanoseconds int64  `json:"run_time_ns"`
}

type captureStacks struct {
	Samples      uint64            `json:"samples"`
	UserStacks   int               `json:"user_stacks"`
	KernelStacks int               `json:"kernel_stacks"`
	KernelMemory uint64            `json:"kernel_memory"`
	Lost         map[string]uint64 `json:"lost"` // samples, by cause
}

type captureCommand struct {
	Status  int     `json:"status"` // -1 if a signal ended it
	Signal  string  `json:"signal,omitempty"`
	Seconds float64 `json:"seconds"`
}

func newCaptureFacts(path string, s *record.Summary) *captureFacts {
	f := &captureFacts{
		File: path, Programs: s.Programs, Functions: s.Functions, Images: s.Images,
		Copied: s.Copied, BTFs: s.BTFs, Bytes: s.Bytes, KSymbols: s.KSymbols, Modules: s.Modules,
		Processes: s.Processes, Maps: s.Maps, MapDumps: s.MapDumps,
		Missing:  append([]record.MissingProgram{}, s.Missing...),
		Warnings: append([]string{}, s.Warnings...), Lost: cli.OrEmpty(s.Lost),
	}
	if r := s.BPFRuns; r != nil {
		f.Runs = &captureRuns{r.Runs, r.Time.Nanoseconds()}
	}
	if t := s.Stacks; t != nil {
		f.Stacks = &captureStacks{t.Samples, t.UserStacks, t.KernelStacks, t.KernelMemory,
			cli.OrEmpty(t.Lost)}
	}
	if c := &s.Command; c.Run {
		f.Command = &captureCommand{Status: c.Status, Seconds: c.Elapsed.Seconds()}
		if c.Signal != nil {
			f.Command.Signal = c.Signal.String()
		}
	}
	return f
}

// captureSummary prints the contents of the bundle on standard error.
func captureSummary(a *cli.App, path string, s *record.Summary) {
	if a.Quiet {
		return
	}
	for _, text := range s.Warnings {
		a.Warn(text, "")
	}
	cli.WarnEach(a, s.Missing, func(m record.MissingProgram) (text, hint string) {
		return fmt.Sprintf("BPF program %d %s: no image: %s", m.ID, m.Symbol, m.Reason), ""
	}, func(left int) (text, hint string) {
		return fmt.Sprintf("and %d programs more without code", left), ""
	})
	for _, cause := range slices.Sorted(maps.Keys(s.Lost)) {
		a.Warn(fmt.Sprintf("lost: %d %s", s.Lost[cause], cause), "")
	}
	copied := ""
	if s.Copied > 0 {
		copied = fmt.Sprintf(" (%d copied inside the kernel)", s.Copied)
	}
	count := table.Count[int]
	fmt.Fprintf(a.Env.Stderr, "%s: %s with %s, %s%s, %d BTF, %d bytes; %s, %s, %s\n",
		texts.OneLine(path), count(s.Programs, "BPF program", "BPF programs"),
		count(s.Functions, "function", "functions"), count(s.Images, "image", "images"), copied,
		s.BTFs, s.Bytes, count(s.KSymbols, "KSYMBOL record", "KSYMBOL records"),
		count(s.Modules, "module", "modules"), count(s.Processes, "process", "processes"))
	if s.Maps > 0 {
		a.Note(fmt.Sprintf("%d BPF maps, %d dumps", s.Maps, s.MapDumps))
	}
	if r := s.BPFRuns; r != nil {
		a.Note(fmt.Sprintf("BPF programs ran %s times for %v: `symbolize info %s` has each",
			table.Thousands(r.Runs), r.Time.Round(time.Microsecond), texts.ShellWord(path)))
	}
	if s.Stacks != nil {
		stackSummary(a, s.Stacks)
	}
	if c := &s.Command; c.Run {
		a.Note(fmt.Sprintf("%s after %.2f s", cmp.Or(commandEnd(c), "the command ended"),
			c.Elapsed.Seconds()))
	}
}
