package storecmd

import (
	"time"

	"symbolize/analyze/inspect"
	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/ingest/texts"
	"symbolize/store/db"
)

// gcFacts are the output of `store gc` and `store rm` with --format json. As of all types here, the
// JSON names are an interface.
type gcFacts struct {
	DryRun      bool         `json:"dry_run"`
	Objects     int          `json:"objects"` // kept
	Dropped     int          `json:"dropped"`
	Undated     int          `json:"undated"` // without a day of use: they count as used today
	Superseded  int          `json:"superseded_tables"`
	Damaged     int          `json:"damaged_values"`
	Rows        int          `json:"path_rows"` // kept
	RowsDropped int          `json:"path_rows_dropped"`
	Before      int64        `json:"disk_before"` // bytes
	After       int64        `json:"disk_after"`  // an estimate in a dry run
	Gone        []goneObject `json:"gone"`
}

// goneObject is an object that is dropped.
type goneObject struct {
	BuildID  string `json:"build_id"`
	Kind     string `json:"kind"`
	LastUsed string `json:"last_used,omitempty"` // a day, UTC
	Size     int64  `json:"size"`
	Path     string `json:"path"`
}

func newGCFacts(r *db.GCResult, dryRun bool, gone []goneObject) *gcFacts {
	return &gcFacts{
		DryRun: dryRun, Objects: r.Objects, Dropped: r.Dropped, Undated: r.Undated,
		Superseded: r.Superseded, Damaged: r.Damaged, Rows: r.Rows, RowsDropped: r.RowsDropped,
		Before: r.Before, After: r.After, Gone: gone,
	}
}

func newGone(g db.Gone) goneObject {
	o, used := inspect.NewStored(g.Manifest), ""
	if !g.LastUsed.IsZero() {
		used = g.LastUsed.Format(time.DateOnly)
	}
	return goneObject{o.BuildID, o.Kind, used, o.Size, o.Name()}
}

// rebuildFacts are the output of `store rebuild --format json`.
type rebuildFacts struct {
	Sources  int      `json:"captured_inputs"`
	Changed  int      `json:"tables_changed"`
	Problems []string `json:"problems"`
}

// imported is the output of `store import --format json`.
type imported struct {
	Archives []*importFacts `json:"archives"`
}

// importFacts are an element of the output of `store import --format json`.
type importFacts struct {
	Archive  string   `json:"archive"`
	Objects  int      `json:"objects"`
	Sources  int      `json:"tables"`
	Problems []string `json:"problems"`
	More     int      `json:"more_problems"`
}

// exportFacts are the output of `store export --format json`.
type exportFacts struct {
	Archive string `json:"archive"`
	Objects int    `json:"objects"`
}

func errorTexts(errs []error) []string {
	list := []string{}
	for _, err := range errs {
		list = append(list, texts.OneLine(err.Error()))
	}
	return list
}

// writeNoted writes facts as JSON to standard output, or else the note that has them to standard
// error.
func writeNoted(a *cli.App, format, schema string, facts any, note string) error {
	if format != cli.JSON {
		a.Note(note)
		return nil
	}
	return a.WriteFacts(format, schema, facts, nil)
}
