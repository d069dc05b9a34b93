package input

import (
	"context"
	"errors"

	"symbolize/ingest/format/bpf"
	"symbolize/ingest/sideband"
)

// Programs returns the BPF programs that the capture tells of, by ID: those whose
// information was recorded, and those that only records name, with the reason why
// no more is known (bpf.Program.Missing, Raw nil). They are decoded once and
// shared; nobody may change them. With an error come the programs that were whole:
// those of the features alone where the records cannot be read. A capture of another
// kind has none.
func (c *Capture) Programs() ([]bpf.Program, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.perf == nil {
		return nil, nil
	}
	sb, err := c.scan(context.Background())
	if err != nil {
		programs, damage := sideband.ReadPrograms(c.perf)
		return programs, errors.Join(err, damage)
	}
	return sb.Programs.List, sb.Programs.Err
}

// scan makes the first pass, once.
func (c *Capture) scan(ctx context.Context) (*sideband.State, error) {
	if c.side == nil {
		opts := sideband.ScanOptions{ChunkSize: c.chunkSize, Bundles: c.bundles(), Missing: c.opts.lost}
		sb, err := sideband.Scan(ctx, c.perf, &opts)
		if err != nil {
			return nil, withHint(err)
		}
		c.side = sb
	}
	return c.side, nil
}

// bundles are those of Options.Bundles.
func (c *Capture) bundles() []sideband.Bundle {
	list := make([]sideband.Bundle, 0, len(c.opts.Bundles))
	for _, b := range c.opts.Bundles {
		list = append(list, b.asBundle(b.Programs))
	}
	return list
}

// asBundle gives the capture as one that other captures take from.
func (c *Capture) asBundle(programs func() ([]bpf.Program, error)) sideband.Bundle {
	return sideband.Bundle{Path: c.path, Bundle: c.bundle, Records: c.perf, Programs: programs}
}

// Taken returns what the capture took from each bundle of Options.Bundles, in
// their order. It is known after Profile or Programs.
func (c *Capture) Taken() []sideband.Taken {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stackSide != nil {
		return c.stackSide.Taken()
	}
	if c.side == nil {
		return nil
	}
	return c.side.Taken()
}

// KernelMap returns the kernel's address space as it was when all functions of a BPF
// program were last mapped where it says; as it was at the end if they never were. The
// objects in it have the build IDs that Profile found. It is nil for captures without
// records of the kernel. It may be called after Close, if Profile was before.
func (c *Capture) KernelMap(ctx context.Context, p *bpf.Program) (*sideband.KernelMap, error) {
	if _, err := c.Profile(ctx); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.perf == nil {
		return nil, nil
	}
	sb, err := c.scan(ctx)
	if err != nil {
		return nil, err
	}
	return sb.KernelMap(p), nil
}
