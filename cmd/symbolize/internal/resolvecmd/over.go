package resolvecmd

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"symbolize/analyze/advice"
	"symbolize/analyze/batch"
	"symbolize/analyze/table"
	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/ingest"
	"symbolize/ingest/texts"
)

// missingOver has the missing objects of many captures, which are read one after another. Its JSON
// names are those of advice.Coverage, which `fetch --list` reads.
type missingOver struct {
	Captures int           `json:"profiles"`
	Samples  uint64        `json:"samples"`
	Missing  []overMissing `json:"missing"`                 // most samples first
	Left     int           `json:"rows_left_off,omitempty"` // by -n
}

// overMissing is an object that lacks names for one reason.
type overMissing struct {
	advice.Missing
	Captures int    `json:"profiles"`
	Hosts    int    `json:"hosts"`               // 0 where captures do not name theirs
	First    string `json:"first_day,omitempty"` // of the captures that have a clock, in UTC

	hosts map[string]bool
}

type overKey struct{ object, id, reason string }

func runMissingOver(ctx context.Context, a *cli.App, o *missingOptions, args []string) error {
	paths, err := batch.Profiles(args)
	if err != nil {
		return err
	}
	over := &missingOver{Missing: []overMissing{}}
	rows := make(map[overKey]*overMissing)
	err = a.WithSession(ctx, &o.InputOptions, paths, func(s *cli.Session, captures []string) error {
		return s.LoadEach(ctx, captures, func(_ string, p *ingest.Profile) error {
			over.add(rows, p, s.Coverage(p, true))
			return nil
		})
	})
	if err != nil {
		return err
	}
	for _, r := range rows {
		r.Hosts = len(r.hosts)
		r.SampleShare = 100 * float64(r.Samples) / float64(max(1, over.Samples))
		over.Missing = append(over.Missing, *r)
	}
	slices.SortFunc(over.Missing, func(a, b overMissing) int {
		return cmp.Or(cmp.Compare(b.Samples, a.Samples), cmp.Compare(b.Frames, a.Frames),
			cmp.Compare(a.Object, b.Object), cmp.Compare(a.BuildID, b.BuildID), cmp.Compare(a.Reason, b.Reason))
	})
	if o.rows > 0 && len(over.Missing) > o.rows {
		over.Left, over.Missing = len(over.Missing)-o.rows, over.Missing[:o.rows]
	}
	return a.WriteOutput(o.Output, false, func(w io.Writer) error {
		if o.Format == cli.JSON {
			return texts.WriteJSON(w, "missing-over/1", over)
		}
		return over.writeText(w)
	})
}

// add adds the missing objects of one capture. Shares of its frames mean nothing for all captures.
func (m *missingOver) add(rows map[overKey]*overMissing, p *ingest.Profile, c *advice.Coverage) {
	m.Captures++
	m.Samples += c.Samples
	day := ""
	if p.Meta.StartNanos > 0 {
		day = time.Unix(0, p.Meta.StartNanos).UTC().Format(time.DateOnly)
	}
	seen := make(map[overKey]bool)
	for i := range c.Missing {
		of := &c.Missing[i]
		k := overKey{of.Object, of.BuildID, of.Reason}
		r := rows[k]
		if r == nil {
			r = &overMissing{Missing: *of, First: day, hosts: make(map[string]bool)}
			r.Samples, r.Frames, r.Total, r.Share = 0, 0, 0, 0
			rows[k] = r
		}
		r.Samples += of.Samples
		r.Frames += of.Frames
		r.Total += of.Total
		r.Places = max(r.Places, of.Places)
		if !seen[k] {
			r.Captures++
		}
		seen[k] = true
		if p.Meta.Host != "" {
			r.hosts[p.Meta.Host] = true
		}
		if day != "" && (r.First == "" || day < r.First) {
			r.First = day
		}
	}
}

func (m *missingOver) writeText(w io.Writer) error {
	t := table.New(true, true, true, false, false, false, false).Names(5)
	t.Row("samples%", "profiles", "hosts", "first day", "reason", "object", "build ID")
	for i := range m.Missing {
		r := &m.Missing[i]
		hosts := ""
		if r.Hosts > 0 {
			hosts = strconv.Itoa(r.Hosts)
		}
		t.Row(fmt.Sprintf("%.2f%%", r.SampleShare), strconv.Itoa(r.Captures), hosts, r.First, r.Reason,
			r.Object, r.BuildID)
	}
	if len(m.Missing) == 0 {
		_, err := fmt.Fprintf(w, "nothing is missing in %s\n", table.Count(m.Captures, "capture",
			"captures"))
		return err
	}
	if err := t.Print(w); err != nil || m.Left == 0 {
		return err
	}
	_, err := fmt.Fprintf(w, "%d more rows\n", m.Left)
	return err
}
