package reportcmd

import (
	"context"
	"fmt"
	"io"

	"symbolize/analyze/inspect"
	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/ingest/texts"
)

// runDiffStruct compares the layouts of a structure in two files.
func runDiffStruct(ctx context.Context, a *cli.App, o *diffOptions, base, now string) error {
	if o.Format == cli.Folded {
		return cli.Usagef("--struct prints --format text or json")
	}
	var sides []inspect.StructOf
	for _, path := range []string{base, now} {
		blobs, damage, err := inspect.ReadBTF(ctx, path, nil, []string{o.structure})
		if err != nil {
			return err
		}
		if damage != nil {
			a.Damage(damage.Error(), "")
		}
		s, ok := inspect.FindStruct(path, blobs, o.structure)
		if !ok {
			return texts.WithHint(fmt.Errorf("%s: no structure %s", path, o.structure),
				"`symbolize btf %s` lists the types", path)
		}
		sides = append(sides, s)
	}
	d := inspect.DiffStructs(sides[0], sides[1])
	return a.WriteOutput(o.Output, false, func(w io.Writer) error {
		if o.Format == cli.JSON {
			return texts.WriteJSON(w, "diff-struct/1", d)
		}
		return d.WriteText(w)
	})
}
