package cli

import (
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"symbolize/ingest/format/stackmap"
	"symbolize/ingest/input"
)

// StackMap has the flags that name the files that belong to a stack map, and its layout.
type StackMap struct {
	counts, kernel string
	btf            string
	key, value     string
	depth          int
	maps           []string

	Parsed input.StackOptions
}

// AddTo adds the flags, in a group of their own.
func (o *StackMap) AddTo(fs *pflag.FlagSet) { AddGroup(fs, GroupStackMap, o.define) }

func (o *StackMap) define(fs *pflag.FlagSet) {
	fs.StringVar(&o.counts, "counts", "",
		"`FILE` is the dump of the map that counts the stacks")
	fs.StringVar(&o.key, "key", "",
		"fields in the keys of --counts, `FIELD:OFFSET[:SIZE],…` in bytes: user_stack_id, "+
			"kernel_stack_id, stack_id, pid, tgid, tid, comm")
	fs.StringVar(&o.btf, "btf", "",
		"`FILE` is the BPF object, or BTF, with the types of keys and values of --counts")
	fs.StringVar(&o.value, "value", "",
		"`OFFSET[:SIZE]` of the count in the values of --counts (default: the whole value)")
	fs.StringVar(&o.kernel, "kernel-stacks", "",
		"`FILE` is the dump of the kernel's stacks, if they have their own map")
	fs.IntVar(&o.depth, "depth", 0,
		"a dump without keys has values of `N` frames of 32 bytes")
	fs.StringArrayVar(&o.maps, "maps", nil,
		"mappings of frames without a build ID: `PID=FILE`, a copy of /proc/PID/maps, or FILE "+
			"for a dump without process IDs; may be repeated")
}

// Parse checks the flags.
func (o *StackMap) Parse(kallsyms []string) error {
	p := &o.Parsed
	*p = input.StackOptions{Counts: o.counts, Kernel: o.kernel, BTF: o.btf, Depth: o.depth}
	if o.depth < 0 {
		return Usagef("--depth %d: it is at least 1", o.depth)
	}
	var err error
	if o.key != "" {
		if p.Key, err = stackmap.ParseFields(o.key); err != nil {
			return Usagef("--key: %v", err)
		}
	}
	if o.value != "" {
		if p.Value, err = stackmap.ParseValue(o.value); err != nil {
			return Usagef("--value: %v", err)
		}
	}
	for _, m := range o.maps {
		pid, file := input.AnyProcess, m
		if number, path, ok := strings.Cut(m, "="); ok {
			n, err := strconv.ParseInt(number, 10, 32)
			if err != nil || n < 1 || path == "" {
				return Usagef("--maps %s: it is PID=FILE", m)
			}
			pid, file = int32(n), path
		}
		if p.Maps == nil {
			p.Maps = make(map[int32]string)
		}
		if p.Maps[pid] != "" {
			return Usagef("--maps %s: the process has one already", m)
		}
		p.Maps[pid] = file
	}
	if len(kallsyms) > 0 {
		p.Kallsyms = kallsyms[0]
	}
	return nil
}
