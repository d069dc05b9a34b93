package dwarf

import (
	"cmp"
	"context"
	"errors"
	"sync"
)

// job is a unit on its way through a worker to the visit.
type job struct {
	res  result
	unit *unit
	done chan struct{}
}

// Walk visits all units in the order of .debug_info, decoded by a number of workers that run at
// most two units each ahead of the visit. Type units are left out. A damaged unit is visited with
// the entries before the damage; if .debug_info itself is damaged, the last Unit visited has only
// that problem. The error is from visit or ctx.
//
// If .debug_info is still being inflated, units are visited as they come, and an error ends the
// inflating.
func (d *Data) Walk(ctx context.Context, workers int, visit func(*Unit) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer d.units.wait()
	defer cancel()
	if d.sec.Growth != nil {
		context.AfterFunc(ctx, d.sec.Growth.Stop)
	}
	d.scan()
	if d.opts.Alt != nil {
		d.opts.Alt.scan()
	}
	if workers <= 1 || d.units.at(1) == nil {
		return d.walkAlone(ctx, visit)
	}
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	free := make(chan *job, 2*workers)
	for range cap(free) {
		free <- &job{done: make(chan struct{}, 1)}
	}
	order, tasks := make(chan *job, cap(free)), make(chan *job, cap(free))
	running.Go(func() { d.dispatch(ctx, free, order, tasks) })
	for range workers {
		running.Go(func() {
			w := newWalker(d)
			for j := range tasks {
				w.guardedUnit(j.unit, &j.res)
				j.done <- struct{}{}
			}
		})
	}
	rel, read := releaser{d: d}, meter{d: d}
	for j := range order {
		<-j.done
		rel.passed(j.unit)
		if err := j.res.deliver(ctx, &read, visit); err != nil {
			cancel()
			for j := range order { // close the remaining units
				<-j.done
				j.res.closeSplit()
			}
			if errors.Is(err, errOverlap) {
				return overlapping(j.unit.off, visit)
			}
			return err
		}
		free <- j
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return d.visitTrouble(visit)
}

// dispatch hands out units in order until there are none or ctx is done.
func (d *Data) dispatch(ctx context.Context, free <-chan *job, order, tasks chan<- *job) {
	defer close(order)
	defer close(tasks)
	for i := 0; ; i++ {
		u := d.units.at(i)
		if u == nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case j := <-free:
			j.unit = u
			order <- j
			tasks <- j
		}
	}
}

func (d *Data) walkAlone(ctx context.Context, visit func(*Unit) error) error {
	w := newWalker(d)
	var res result
	rel, read := releaser{d: d}, meter{d: d}
	for i := 0; ; i++ {
		u := d.units.at(i)
		if u == nil {
			break
		}
		w.guardedUnit(u, &res)
		rel.passed(u)
		if err := res.deliver(ctx, &read, visit); errors.Is(err, errOverlap) {
			return overlapping(u.off, visit)
		} else if err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return d.visitTrouble(visit)
}

// releaser requests the release of pages during a walk.
type releaser struct {
	d    *Data
	last uint64
}

func (r *releaser) passed(u *unit) {
	if r.d.opts.Release != nil && u.end-r.last >= releaseEvery {
		r.last = u.end
		r.d.opts.Release()
	}
}

func (res *result) deliver(ctx context.Context, read *meter, visit func(*Unit) error) error {
	defer res.closeSplit()
	if err := cmp.Or(ctx.Err(), read.passed(res)); err != nil {
		return err
	}
	var err error
	if guarded(func() { err = visit(&res.Unit) }) {
		return ErrChanged
	}
	return err
}

func (res *result) closeSplit() {
	if res.split != nil {
		res.split.Close()
		res.split = nil
	}
}

// visitTrouble visits a Unit with the reason why the scan of the units stopped early.
func (d *Data) visitTrouble(visit func(*Unit) error) error {
	if d.scanErr.reason == "" {
		return nil
	}
	u := Unit{Offset: d.scanErr.off}
	u.problem(d.scanErr.section, d.scanErr.off, d.scanErr.reason)
	return visit(&u)
}
