package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"symbolize/ingest"
	"symbolize/ingest/decode"
	"symbolize/ingest/format/bpf"
	"symbolize/ingest/input"
	"symbolize/ingest/object/btf"
)

// btfBlob is the BTF of a file, or one of many in a capture.
type btfBlob struct {
	source string
	types  *btf.Types
}

// readBTF finds the BTF in a file of any kind that has some; base is the path of what it
// continues, or "".
func (a *app) readBTF(ctx context.Context, path, base string) ([]btfBlob, error) {
	var below *btf.Types
	if base != "" {
		t, err := readTypes(base, nil)
		if err != nil {
			return nil, fmt.Errorf("--base: %w", err)
		}
		below = t
	}
	t, err := readTypes(path, below)
	if errors.Is(err, btf.ErrNoFile) {
		if base != "" {
			return nil, usagef("--base: %s is no kernel module and no BTF", path)
		}
		return a.captureBTF(ctx, path)
	}
	if err != nil {
		return nil, err
	}
	return []btfBlob{{".BTF", t}}, nil
}

// readTypes reads the types of a file, and says what would mend it where that fails.
func readTypes(path string, base *btf.Types) (*btf.Types, error) {
	t, err := btf.ReadFile(path, base)
	var damage *decode.Error
	switch {
	case errors.Is(err, btf.ErrNoSection):
		return nil, withHint(err,
			"clang -g -target bpf makes it in BPF objects, pahole -J in others")
	case base == nil && !errors.Is(err, btf.ErrNoFile) && errors.As(err, &damage):
		return nil, hintSplit(err)
	}
	return t, err
}

// hintSplit says what is missing if BTF refers to what it does not have.
func hintSplit(err error) error {
	return withHint(err, "if it is of a kernel module, it continues the kernel's: "+
		"--base /sys/kernel/btf/vmlinux")
}

// captureBTF collects the BTF of a capture's BPF programs, each once, then what only maps
// refer to.
func (a *app) captureBTF(ctx context.Context, path string) ([]btfBlob, error) {
	c, err := input.Open(ctx, path, input.Options{})
	if errors.Is(err, input.ErrNotCapture) {
		return nil, withHint(err, "btf knows ELF files, BTF as it is, perf.data files and bundles")
	}
	if err != nil {
		return nil, err
	}
	defer c.Close()
	programs, err := c.Programs()
	if err != nil {
		a.warn(err.Error(), "")
		a.partial = true
	}
	var out []btfBlob
	for i := range programs {
		out = addProgramBTF(out, &programs[i])
	}
	types := c.Types()
	for _, id := range slices.Sorted(maps.Keys(types)) {
		if !hasBTF(out, types[id]) {
			out = append(out, btfBlob{fmt.Sprintf("BTF %d of maps", id), types[id]})
		}
	}
	if len(out) == 0 {
		return nil, withHint(fmt.Errorf("%s has no BTF: none of its %s has any", path,
			plural(uint64(len(programs)), "BPF program", "BPF programs")),
			"`symbolize info %s` tells what was captured", path)
	}
	return out, nil
}

func hasBTF(list []btfBlob, t *btf.Types) bool {
	return slices.ContainsFunc(list, func(b btfBlob) bool {
		return b.types == t || bytes.Equal(b.types.Raw(), t.Raw())
	})
}

// addProgramBTF adds a program's BTF, or its name to the BTF that it shares with others.
func addProgramBTF(out []btfBlob, p *bpf.Program) []btfBlob {
	if p.BTF == nil {
		return out
	}
	name := p.Name // cut at 15 characters
	if len(p.Funcs) > 0 && p.Funcs[0].Name != "" {
		name = p.Funcs[0].Name
	}
	name = fmt.Sprintf("program %d %s", p.ID, ingest.Printable(name))
	for i := range out {
		if out[i].types == p.BTF || bytes.Equal(out[i].types.Raw(), p.BTF.Raw()) {
			out[i].source += ", " + name
			return out
		}
	}
	return append(out, btfBlob{name, p.BTF})
}
