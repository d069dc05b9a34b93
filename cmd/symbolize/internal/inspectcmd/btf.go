package inspectcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"symbolize/analyze/inspect"
	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/ingest/input"
	"symbolize/ingest/object/btf"
	"symbolize/ingest/texts"
)

const btfLong = `btf lists the types in a file's BTF, the type information of BPF programs and the kernel, or in its
DWARF: number, kind, size in bytes, name. With TYPE it prints types as C, with the offset and size of each member,
holes and padding, as pahole does. TYPE is a name (list_head), a name of one kind
('struct list_head'), or a number of the list ('#12').

--format c prints a C header that compiles, as bpftool btf dump FILE format c: all types, or the
named ones with everything they need.

FILE is a BPF object, an ELF file with a .BTF section or DWARF, BTF itself (/sys/kernel/btf/vmlinux), or a
capture or bundle with BPF programs.

Exit status: 0 done; 1 failed, or no such type; 2 usage; 3 only a part of a capture could be read;
130 interrupted.`

// btfOptions are the flags of btf.
type btfOptions struct {
	base, format, output string
}

// NewBTF makes the command `btf`.
func NewBTF(a *cli.App) *cobra.Command {
	var o btfOptions
	cmd := &cobra.Command{
		Use:     "btf FILE [TYPE…]",
		Short:   "List the types in a file's BTF, or print them as C",
		Long:    btfLong,
		GroupID: cli.GroupLook,
		Example: "  symbolize btf prog.bpf.o\n" +
			"  symbolize btf /sys/kernel/btf/vmlinux 'struct task_struct'",
		Args: cli.SomeArgs("FILE"),
		RunE: a.RunE(func(ctx context.Context, args []string) error {
			return runBTF(ctx, a, &o, args[0], args[1:])
		}),
	}
	cmd.Flags().StringVar(&o.base, "base", "",
		"`FILE` has the types that a kernel module's BTF continues: /sys/kernel/btf/vmlinux")
	cli.AddFormat(cmd, &o.format, cli.Text, cli.JSON, formatC)
	cli.AddOutput(cmd.Flags(), &o.output)
	return cmd
}

func runBTF(ctx context.Context, a *cli.App, o *btfOptions, path string, names []string) error {
	blobs, err := readBTF(ctx, a, path, o.base, names)
	if err != nil {
		return err
	}
	out, err := inspect.NewTypes(path, blobs, names, o.format != formatC)
	if err != nil {
		return err
	}
	if missing := out.Missing(names); len(missing) > 0 {
		return texts.WithHint(fmt.Errorf("%s: no type %s in its BTF", path, strings.Join(missing,
			", ")),
			"`symbolize btf %s` lists the types", path)
	}
	return a.WriteOutput(o.output, false, func(w io.Writer) error {
		switch o.format {
		case cli.JSON:
			return texts.WriteJSON(w, "btf/1", out)
		case formatC:
			return out.WriteC(w)
		}
		return out.WriteText(w)
	})
}

// formatC prints the types of --format as C, all of them where none is named.
const formatC = "c"

// readBTF finds the BTF in a file of any kind that has some; base is the path of the BTF that
// it continues, or "".
func readBTF(ctx context.Context, a *cli.App, path, base string, names []string) ([]inspect.BTF, error) {
	var below *btf.Types
	if base != "" {
		var err error
		if below, err = inspect.ReadTypes(base, nil); err != nil {
			return nil, fmt.Errorf("--base: %w", err)
		}
	}
	blobs, damage, err := inspect.ReadBTF(ctx, path, below, names)
	if damage != nil {
		a.Damage(damage.Error(), "")
	}
	switch {
	case errors.Is(err, input.ErrNotCapture):
		return nil, texts.WithHint(err,
			"btf knows ELF files, BTF as it is, perf.data files and bundles")
	case errors.Is(err, inspect.ErrNotSplit):
		return nil, cli.Usagef("--base: %w", err)
	}
	return blobs, err
}
