package resolvecmd

import (
	"context"
	"errors"
	"io"

	"symbolize/analyze/resolve"
	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/ingest"
	"symbolize/ingest/input"
	"symbolize/ingest/input/otlp"
	"symbolize/ingest/texts"
)

// writeOTLP writes the result as profiles of OpenTelemetry. If all captures are such files, they are
// copied with the names; otherwise, or if samples are left out, the file is made of the profile.
func (r *resolveRun) writeOTLP(ctx context.Context, p *ingest.Profile, output string) (err error) {
	r.demangler.Warm(p)
	opts := otlp.WriteOptions{Demangle: r.demangler.Name, JSON: r.o.format == cli.OTLPJSON}
	captures, err := r.openAgain(ctx, p.Meta.Captures)
	for _, c := range captures {
		defer c.Close()
	}
	if err != nil {
		return err
	}
	return r.a.WriteOutput(output, r.o.binary(), func(w io.Writer) error {
		if captures == nil {
			return otlp.Write(w, p, resolve.Layout(r.s.View(), p), opts)
		}
		to := otlp.NewRewriter(w, p, opts)
		for _, c := range captures {
			if err := c.Rewrite(to); err != nil {
				return err
			}
		}
		return to.Close()
	})
}

// openAgain opens captures to copy them; nil if they cannot be copied.
func (r *resolveRun) openAgain(ctx context.Context, paths []string) (list []*input.Capture, err error) {
	opts := r.s.InputOptions()
	if !input.CanRewrite(&opts) {
		return nil, nil
	}
	for _, path := range paths {
		if path == input.StandardInput {
			return list, texts.WithHint(errors.New("standard input is read once, and copied in a second run"),
				"name the file")
		}
		c, err := input.Open(ctx, path, opts)
		if c != nil {
			list = append(list, c)
		}
		if err != nil || !input.CanRewrite(&opts, c.Kind()) {
			for _, c := range list {
				err = errors.Join(err, c.Close())
			}
			return nil, err
		}
	}
	return list, nil
}
