package reportcmd

import (
	"path"

	"symbolize/analyze/flame"
	"symbolize/analyze/inspect"
	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/ingest/input"
	"symbolize/ingest/texts"
)

// bpfTable gathers how BPF programs were used, of one bundle or several.
type bpfTable struct {
	counted bool // the kernel counted runs in one of them
	names   []string
	usages  []*inspect.BPFUsage
}

// bpfTables returns the table of the costs of programs that bundles have; none without them.
func bpfTables(s *cli.Session) []flame.Table {
	t := &bpfTable{}
	for _, c := range s.State().Bundles {
		if err := t.add(c); err != nil {
			s.App.Damage(err.Error(), "")
		}
	}
	return t.tables()
}

// add appends the programs of a bundle.
func (t *bpfTable) add(c *input.Capture) error {
	programs, _ := c.Programs() // their damage is in the profile's warnings
	u, err := inspect.NewBPFUsage(c.Bundle(), programs)
	if err != nil || u == nil || len(u.Programs) == 0 {
		return err
	}
	t.names = append(t.names, texts.Printable(path.Base(c.Path())))
	t.usages = append(t.usages, u)
	t.counted = t.counted || u.Counted
	return nil
}

// tables returns the table; none if no program is known.
func (t *bpfTable) tables() []flame.Table {
	if len(t.usages) == 0 {
		return nil
	}
	type column = flame.TableColumn
	columns := []column{{Name: "time", Kind: flame.NanosecondsColumn},
		{Name: "runs", Kind: flame.CountColumn}, {Name: "per run", Kind: flame.NanosecondsColumn},
		{Name: "CPU", Kind: flame.ShareColumn}}
	note := "runs while it was recorded; CPU is the share of one"
	skip := 0
	if !t.counted {
		skip, note = len(columns), inspect.NotCounted
	}
	out := flame.Table{Name: "BPF", Note: note, Columns: append(columns[skip:],
		column{Name: "id", Kind: flame.NumberColumn}, column{Name: "name", Kind: flame.TextColumn},
		column{Name: "type", Kind: flame.TextColumn}, column{Name: "maps", Kind: flame.TextColumn})}
	if len(t.usages) > 1 {
		out.Columns = append(out.Columns, column{Name: "capture", Kind: flame.TextColumn})
	}
	for i, u := range t.usages {
		for k := range u.Programs {
			p := &u.Programs[k]
			row := []any{p.RunTime, p.Runs, p.PerRun, p.Share, p.ID}[skip:]
			for _, text := range []string{p.Label(), p.Type, p.UsesMaps()} {
				row = append(row, texts.Printable(text))
			}
			if len(t.usages) > 1 {
				row = append(row, t.names[i])
			}
			out.Rows = append(out.Rows, row)
		}
	}
	return []flame.Table{out}
}
