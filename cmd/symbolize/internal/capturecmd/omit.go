package capturecmd

import (
	"errors"
	"fmt"

	"symbolize/buildid"
	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/ingest/record"
	"symbolize/ingest/texts"
	"symbolize/store"
	"symbolize/store/db"
)

// omission is --omit-indexed: symbols of the kernel that the store has are left out of a bundle.
type omission struct {
	a    *cli.App
	kept string // why the kernel's symbols are in the bundle after all
}

// newOmission returns nil where nothing is to be left out. That there is no store is an
// error before anything is recorded: its name may be mistyped.
func newOmission(a *cli.App, o *captureOptions) (*omission, error) {
	if !o.omitIndexed {
		return nil, nil
	}
	err := a.WithReader(func(*db.Reader) error { return nil })
	if errors.Is(err, store.ErrNoStore) {
		err = texts.WithHint(err, "run `symbolize index --kernel` first, or drop --omit-indexed")
	}
	return &omission{a: a}, err
}

// apply has a recorder ask.
func (x *omission) apply(opts *record.Options) {
	if x != nil {
		opts.KnownKernel = x.knows
	}
}

// knows reports whether the store has the symbols of a kernel.
func (x *omission) knows(id buildid.ID) bool {
	known := false
	err := x.a.WithReader(func(r *db.Reader) error {
		m, _, err := store.FindOne(r, id)
		known = m != nil && m.HasNames()
		return err
	})
	switch {
	case err != nil:
		x.kept = err.Error()
	case !known:
		x.kept = fmt.Sprintf("the store has no symbols of kernel %s", id)
	}
	return known && err == nil
}

// warn reports symbols that are not left out.
func (x *omission) warn() {
	if x != nil && x.kept != "" {
		x.a.Warn("--omit-indexed omitted nothing: "+x.kept, "`symbolize index --kernel` adds them")
	}
}
