package inspect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"symbolize/analyze/table"
	"symbolize/ingest/decode"
	"symbolize/ingest/input"
	"symbolize/ingest/object/bpf"
	"symbolize/ingest/object/btf"
	"symbolize/ingest/texts"
	"symbolize/store/indexer"
)

// BTF is the BTF of a file, or one of several in a capture.
type BTF struct {
	Source string // ".BTF", or the programs of a capture that have it
	Types  *btf.Types
}

// ErrNotSplit is the error for a file without BTF of its own that base was given for.
var ErrNotSplit = errors.New("is neither a kernel module nor BTF")

// ReadBTF reads the BTF in a file of any kind that has some: ELF, BTF as it is, a capture. base,
// which may be nil, is the BTF that it continues. An ELF file without BTF has the types of its DWARF:
// those with names as NewTypes has them, and what they refer to; without names all. damage is the
// damage of programs of a capture, or of DWARF: what could be read is returned.
func ReadBTF(ctx context.Context, path string, base *btf.Types, names []string) (found []BTF, damage, err error) {
	t, err := ReadTypes(path, base)
	if errors.Is(err, btf.ErrNoSection) && base == nil {
		if t, damage, failed := readDWARF(ctx, path, names); t != nil {
			return []BTF{{".debug_info", t}}, damage, nil
		} else if !errors.Is(failed, indexer.ErrNoDebugInfo) {
			return nil, nil, failed
		}
	}
	switch {
	case errors.Is(err, btf.ErrNoFile) && base != nil:
		return nil, nil, fmt.Errorf("%s %w", path, ErrNotSplit)
	case errors.Is(err, btf.ErrNoFile):
		return captureBTF(ctx, path)
	case err != nil:
		return nil, nil, err
	}
	return []BTF{{".BTF", t}}, nil, nil
}

// ReadTypes reads the BTF of a file that is not a capture. Errors have a hint.
func ReadTypes(path string, base *btf.Types) (*btf.Types, error) {
	t, err := btf.ReadFile(path, base)
	var damage *decode.Error
	switch {
	case errors.Is(err, btf.ErrNoSection):
		return nil, texts.WithHint(err,
			"clang -g -target bpf makes it in BPF objects, pahole -J in others; types are read from DWARF, too")
	case base == nil && !errors.Is(err, btf.ErrNoFile) && errors.As(err, &damage):
		return nil, hintSplit(err)
	}
	return t, err
}

// hintSplit adds a hint to the error for references to types that are not there.
func hintSplit(err error) error {
	return texts.WithHint(err, "if it belongs to a kernel module, it continues the kernel's: "+
		"--base /sys/kernel/btf/vmlinux")
}

// captureBTF collects the BTF of a capture's BPF programs, each once, then the BTF that
// only maps refer to.
func captureBTF(ctx context.Context, path string) (found []BTF, damage, err error) {
	c, err := input.Open(ctx, path, input.Options{})
	if err != nil {
		return nil, nil, err
	}
	defer c.Close()
	programs, damage := c.Programs()
	var out []BTF
	for i := range programs {
		out = addProgramBTF(out, &programs[i])
	}
	types := c.Types()
	for _, id := range slices.Sorted(maps.Keys(types)) {
		if !hasBTF(out, types[id]) {
			out = append(out, BTF{fmt.Sprintf("BTF %d of maps", id), types[id]})
		}
	}
	if len(out) == 0 {
		return nil, damage, texts.WithHint(fmt.Errorf("%s has no BTF: none of its %s has any", path,
			table.Count(len(programs), "BPF program", "BPF programs")),
			"`symbolize info %s` lists the contents", path)
	}
	return out, damage, nil
}

func hasBTF(list []BTF, t *btf.Types) bool {
	return slices.ContainsFunc(list, func(b BTF) bool {
		return b.Types == t || bytes.Equal(b.Types.Raw(), t.Raw())
	})
}

// addProgramBTF adds a program's BTF, or its name to the BTF that it shares with others.
func addProgramBTF(out []BTF, p *bpf.Program) []BTF {
	if p.BTF == nil {
		return out
	}
	name := p.Name // cut at 15 characters
	if len(p.Funcs) > 0 && p.Funcs[0].Name != "" {
		name = p.Funcs[0].Name
	}
	name = fmt.Sprintf("program %d %s", p.ID, texts.Printable(name))
	for i := range out {
		if out[i].Types == p.BTF || bytes.Equal(out[i].Types.Raw(), p.BTF.Raw()) {
			out[i].Source += ", " + name
			return out
		}
	}
	return append(out, BTF{name, p.BTF})
}
