package store

import (
	"fmt"
	"sync"

	"symbolize/store/symtab"
)

// Counted is a View that counts distinct opened symbol tables.
type Counted struct {
	View
	mu     sync.Mutex
	opened map[string]struct{}
}

// NewCounted returns a Counted of v.
func NewCounted(v View) *Counted {
	return &Counted{View: v, opened: make(map[string]struct{})}
}

// Open implements View.
func (c *Counted) Open(m *Manifest, i int) (*symtab.Table, error) {
	t, err := c.View.Open(m, i)
	if err == nil {
		key := TableKey(m, i)
		c.mu.Lock()
		c.opened[key] = struct{}{}
		c.mu.Unlock()
	}
	return t, err
}

// Tables returns how many distinct tables were opened.
func (c *Counted) Tables() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return uint64(len(c.opened))
}

// TableKey names the table of m.Sources[i].
func TableKey(m *Manifest, i int) string {
	info := &m.Sources[i]
	return fmt.Sprintf("%s %d %x", m.ID, info.Kind, info.Digest)
}
