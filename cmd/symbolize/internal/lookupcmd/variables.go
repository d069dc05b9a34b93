package lookupcmd

import (
	"cmp"
	"context"
	"io"

	"symbolize/analyze/lookup"
	"symbolize/cmd/symbolize/internal/cli"
)

// lookupVariables prints the variables at addresses of an object.
func lookupVariables(ctx context.Context, a *cli.App, o *lookupOptions, obj *lookup.Object, args []string) (err error) {
	v, err := lookup.NewVariables(ctx, obj, &o.Options)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, v.Close()) }()
	if err := a.WriteOutput("", false, func(w io.Writer) error { return v.Arguments(w, args) }); err != nil {
		return err
	}
	if lost := v.Incomplete(); lost != nil {
		a.Damage(lost.Error(), "")
	}
	return nil
}
