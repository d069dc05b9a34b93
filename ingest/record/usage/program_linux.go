package usage

import (
	"encoding/binary"
	"slices"

	"golang.org/x/sys/unix"

	"symbolize/ingest/format/bpf"
	"symbolize/ingest/record/sys"
)

// program is a program of the list at hand.
type program struct {
	bpf.ProgramStats
	base counters // of runs before
	last counters
	at   uint64 // when it was met last: the number of the poll
}

// counters are those of struct bpf_prog_info.
type counters struct{ time, runs, missed uint64 }

func (x counters) since(base counters) counters {
	return counters{x.time - base.time, x.runs - base.runs, x.missed - base.missed}
}

// Fields of struct bpf_prog_info.
const (
	infoLoadedAt = 40
	infoUIDAt    = 48
	infoMapsAt   = 52
	infoMapIDsAt = 56
	infoNameAt   = 64
	infoNameEnd  = 80
	infoTimeAt   = 192
	infoRunsAt   = 200
	infoMissedAt = 208
)

func countersOf(info []byte) counters {
	order := binary.NativeEndian
	return counters{order.Uint64(info[infoTimeAt:]), order.Uint64(info[infoRunsAt:]),
		order.Uint64(info[infoMissedAt:])}
}

// meet adds a program whose info was read. Runs of one that was there before are not counted.
func (c *Recorder) meet(id uint32, fd int, now uint64) *program {
	order := binary.NativeEndian
	p := &program{ProgramStats: bpf.ProgramStats{ID: id, Type: order.Uint32(c.info),
		Tag:  bpf.Tag(c.info[bpf.InfoTagAt:]).String(),
		Name: unix.ByteSliceToString(c.info[infoNameAt:infoNameEnd]),
		UID:  order.Uint32(c.info[infoUIDAt:]), Loaded: order.Uint64(c.info[infoLoadedAt:]),
		First: now}}
	if p.Loaded < c.begin {
		p.base, p.First = countersOf(c.info), c.begin
	}
	c.programs[id], c.unscanned = p, true
	n := min(order.Uint32(c.info[infoMapsAt:]), maxUses)
	if n == 0 {
		return p
	}
	last := slices.Clone(c.info)
	c.ids = slices.Grow(c.ids[:0], int(n)*4)[:n*4]
	clear(c.info)
	order.PutUint32(c.info[infoMapsAt:], n)
	order.PutUint64(c.info[infoMapIDsAt:], sys.Address(c.ids))
	if _, err := sys.BPFInfo(fd, c.info); err == nil {
		for ids := c.ids; len(ids) >= 4; ids = ids[4:] {
			p.Maps = append(p.Maps, c.mapOf(order.Uint32(ids)))
		}
	}
	copy(c.info, last)
	return p
}

// mapOf describes a map as far as it can be read.
func (c *Recorder) mapOf(id uint32) bpf.MapStats {
	m := bpf.MapStats{ID: id}
	fd, err := sys.OpenMap(id)
	if err != nil {
		return m
	}
	defer unix.Close(fd)
	if h, err := c.maps.Header(fd); err == nil {
		m.Name, m.Type = h.Name, h.Type
	}
	return m
}

// learn adds the results of a scan.
func (p *program) learn(u *Use) {
	for _, a := range u.Attached {
		i := slices.IndexFunc(p.Attached, func(x bpf.Attachment) bool {
			return x.How == a.How && x.To == a.To
		})
		switch {
		case i >= 0:
			p.Attached[i] = a
		case len(p.Attached) < maxUses:
			p.Attached = append(p.Attached, a)
		default:
			p.More++
		}
	}
	p.Holders = union(p.Holders, u.Holders, &p.More)
	p.Pins = union(p.Pins, u.Pins, &p.More)
}

// union appends to a list the items that are new, up to maxUses, and counts the others.
func union[T comparable](to, from []T, more *uint64) []T {
	for _, x := range from {
		switch {
		case slices.Contains(to, x):
		case len(to) < maxUses:
			to = append(to, x)
		default:
			*more++
		}
	}
	return to
}
