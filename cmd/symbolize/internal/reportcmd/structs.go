package reportcmd

import (
	"context"
	"fmt"
	"io"
	"strings"

	"symbolize/analyze/inspect"
	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/ingest/texts"
)

// runDiffStruct compares the layouts of a structure in two files, with the samples in captures.
func runDiffStruct(ctx context.Context, a *cli.App, o *diffOptions, base, now string, captures []string) error {
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
	if len(captures) > 0 {
		if err := addStructSamples(ctx, a, o, d, captures); err != nil {
			return err
		}
	}
	return a.WriteOutput(o.Output, false, func(w io.Writer) error {
		if o.Format == cli.JSON {
			return texts.WriteJSON(w, "diff-struct/1", d)
		}
		return d.WriteText(w)
	})
}

// addStructSamples adds the samples of accesses to the structure, of any build.
func addStructSamples(ctx context.Context, a *cli.App, o *diffOptions, d *inspect.StructDiff, captures []string) error {
	return a.WithSession(ctx, &o.InputOptions, captures, func(s *cli.Session, captures []string) error {
		p, err := s.Load(ctx, captures)
		if err != nil {
			return err
		}
		s.PrintWarnings(p)
		event := s.Event(p)
		var list []inspect.MemberSamples
		for _, l := range s.DataTypes(ctx).Layouts(p, event, o.count, 0) {
			if strings.TrimSuffix(l.Name, " [BTF]") != d.Name {
				continue
			}
			d.Samples, d.Share = d.Samples+l.Samples, d.Share+l.Share
			for i := range l.Members {
				m := &l.Members[i]
				list = append(list, inspect.MemberSamples{Name: m.Name, Offset: m.Offset, Of: l.Size, Samples: m.Samples,
					Share: m.Share})
			}
		}
		d.AddSamples(p.Events[event].Name, list)
		if len(list) == 0 {
			a.Warn("no sample is known to access "+d.Name, "symbolize top --by type has what is known")
		}
		a.PrintOtherEvents(p, event)
		return nil
	})
}
