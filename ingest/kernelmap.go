package ingest

import (
	"context"
	"slices"

	"symbolize/ingest/addr"
	"symbolize/ingest/addrspace"
)

// KernelMap is the kernel's address space at one moment of a capture: it says what a
// pointer in captured code points to. It stays usable when the capture is closed, and
// is safe for concurrent use.
type KernelMap struct {
	spaces  *addrspace.Map
	version addrspace.Version
	objects []Object // by raw object
}

// KernelMap returns the kernel's address space as it was when the function called
// symbol was last mapped at pc; as it was at the end if it never was there. The objects
// in it have the build IDs that Profile found. It is nil for captures that tell nothing
// of the kernel. It may be called after Close, if Profile was before.
func (c *Capture) KernelMap(ctx context.Context, pc addr.PC, symbol string) (*KernelMap, error) {
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
	m := &KernelMap{spaces: sb.spaces, objects: slices.Clone(sb.raw.list)}
	x := newIdentifier(sb, ObjectQuery{}, nil)
	for i := range m.objects { // no sample may lie in the kernel itself
		if o := &m.objects[i]; o.Kind == Kernel || o.Kind == Module {
			x.identify(o)
		}
	}
	_, n := sb.spaces.Versions()
	m.version = addrspace.Version(n - 1)
	for v := m.version; ; v-- {
		at := sb.spaces.InKernel(v, pc)
		if at != nil && at.Start == pc && sb.raw.list[at.Object].Symbol == symbol {
			m.version = v
			break
		}
		if v == 0 || sb.spaces.Steady(pc) {
			break
		}
	}
	return m, nil
}

// Find returns the object that an address lay in, and where in it. The object's Kernel
// field is of no meaning.
func (m *KernelMap) Find(pc addr.PC) (Object, addr.Offset, bool) {
	if m == nil {
		return Object{}, 0, false
	}
	at := m.spaces.InKernel(m.version, pc)
	if at == nil || m.objects[at.Object].Kind.Collapsed() {
		return Object{}, 0, false
	}
	return m.objects[at.Object], at.Offset(pc), true
}
