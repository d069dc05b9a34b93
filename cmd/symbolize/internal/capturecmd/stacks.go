package capturecmd

import (
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/pflag"

	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/ingest/record/sampler"
	"symbolize/ingest/texts"
)

// stackOptions are the flags of capture that select the stacks to sample.
type stackOptions struct {
	on        bool
	frequency int
	all       bool
	cgroup    string
	event     string
	offCPU    bool
	wall      bool
	wakers    bool
	parsed    sampler.Event

	given func(flag string) bool
}

func (o *stackOptions) register(fs *pflag.FlagSet) {
	o.given = fs.Changed
	fs.BoolVar(&o.on, "stacks", false, "sample stacks; a BPF program counts them in the kernel")
	fs.IntVarP(&o.frequency, "frequency", "F", 0,
		fmt.Sprintf("sample each CPU `N` times a second (default %d)", sampler.DefaultFrequency))
	fs.BoolVarP(&o.all, "all-cpus", "a", false,
		"sample all processes, also with COMMAND")
	fs.StringVar(&o.cgroup, "cgroup", "",
		"sample only the control group of `DIR` and those below it")
	fs.StringVar(&o.event, "event", "",
		"sample at `EVENT`: cpu-clock (default), GROUP:TRACEPOINT, uprobe:PATH:FUNCTION")
	fs.BoolVar(&o.offCPU, "off-cpu", false,
		"sample threads that stop running, weighted by the time until they continue")
	fs.BoolVar(&o.wall, "wall", false,
		"sample running threads and those that stop: report both with --event wall")
	fs.BoolVar(&o.wakers, "wakers", false,
		"with --off-cpu or --wall, sample the threads that wake those that stopped")
}

// validate checks the flags, and reads --event.
func (o *stackOptions) validate(pids []int) error {
	if !o.on {
		for _, f := range []struct {
			name string
			set  bool
		}{{"--frequency", o.given("frequency")}, {"--all-cpus", o.all}, {"--cgroup",
			o.cgroup != ""},
			{"--event", o.event != ""}, {"--off-cpu", o.offCPU},
			{"--wall", o.wall}, {"--wakers", o.wakers}} {
			if f.set {
				return texts.WithHint(cli.Usagef("%s selects the stacks to sample", f.name),
					"add --stacks")
			}
		}
		return nil
	}
	switch {
	case o.offCPU && o.event != "":
		return cli.Usagef("--off-cpu and --event exclude each other")
	case o.wall && (o.offCPU || o.event != ""):
		return cli.Usagef("--wall excludes --off-cpu and --event")
	case o.wakers && !o.offCPU && !o.wall:
		return cli.Usagef("--wakers needs --off-cpu or --wall")
	case o.given("frequency") && (o.frequency < 1 || o.frequency > sampler.MaxFrequency):
		return cli.Usagef("--frequency %d: from 1 to %d", o.frequency, sampler.MaxFrequency)
	case o.all && (len(pids) > 0 || o.cgroup != ""):
		return cli.Usagef("--all-cpus excludes --pid and --cgroup")
	}
	o.parsed = sampler.Event{}
	if o.event != "" {
		var err error
		if o.parsed, err = sampler.ParseEvent(o.event); err != nil {
			return cli.Usagef("--event: %v", err)
		}
	}
	if o.offCPU {
		o.parsed.Kind = sampler.OffCPU
	}
	if o.frequency != 0 && o.parsed.Kind != sampler.Clock {
		return cli.Usagef("--frequency needs a clock: %s is sampled at every occurrence", o.parsed)
	}
	return nil
}

// options returns the sampler's options, nil without --stacks.
func (o *stackOptions) options(pids []int) *sampler.Options {
	if !o.on {
		return nil
	}
	return &sampler.Options{Event: o.parsed, Frequency: o.frequency, Wall: o.wall,
		Wakers: o.wakers, PIDs: pids, Cgroup: o.cgroup}
}

// stackSummary prints the sampled stacks and losses on standard error.
func stackSummary(a *cli.App, s *sampler.Stats) {
	for _, cause := range slices.Sorted(maps.Keys(s.Lost)) {
		a.Warn(fmt.Sprintf("lost: %d samples: %s", s.Lost[cause], cause), "")
	}
	a.Note(fmt.Sprintf(
		"%d samples, %d stacks of users and %d of the kernel; %.1f MB of kernel memory",
		s.Samples, s.UserStacks, s.KernelStacks, float64(s.KernelMemory)/1e6))
}
