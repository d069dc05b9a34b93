package dwarf

import (
	"errors"
	"runtime/debug"
)

// ErrChanged is returned by Walk if a mapped file shrank while the visit read from it.
var ErrChanged = errors.New("debug information went away while it was read: file changed")

// guarded runs f and reports whether it accessed a page that no longer exists, because a mapped
// file shrank. Any other panic is passed on.
func guarded(f func()) (fault bool) {
	old := debug.SetPanicOnFault(true)
	defer debug.SetPanicOnFault(old)
	defer func() {
		e := recover()
		if e == nil {
			return
		}
		// Only faults at an address that is not near nil have one.
		if _, fault = e.(interface{ Addr() uintptr }); !fault {
			panic(e)
		}
	}()
	f()
	return false
}

// guardedUnit decodes a unit. If its sections disappear meanwhile, the part decoded before is
// kept.
func (w *walker) guardedUnit(u *unit, res *result) {
	if guarded(func() { w.unit(u, res) }) {
		res.problem(".debug_info", u.off, "file changed while it was read")
		res.finish()
	}
}
