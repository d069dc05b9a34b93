package record

import (
	"os"
	"time"

	"symbolize/ingest/format/procmaps"
)

// A container has a /tmp of its own, which is gone when its last process is. So the files of
// run-time compilers in other mount namespaces are opened while their processes run: an open file
// stays, and grows on until it is taken.

// contained is a process in another mount namespace.
type contained struct {
	perfMap, dump *compiledFile // open; nil until they are there
	inner         int32         // its number in its own namespace
	next          uint64        // when to look for the files again, ns of CLOCK_MONOTONIC
	pause         time.Duration
}

const (
	// firstLook is when files of a process are looked for first, after its mappings were read;
	// the pauses between looks double up to flushEvery.
	firstLook = 100 * time.Millisecond
	// maxHeld bounds the files that are kept open.
	maxHeld = 512
)

// contain notes a process that is in another mount namespace.
func (p *processes) contain(pid int32) {
	p.mu.Lock()
	_, known := p.contained[pid]
	p.mu.Unlock()
	if known {
		return
	}
	of, err := os.Readlink(p.path(pid, "ns/mnt"))
	if err != nil {
		return
	}
	var c *contained
	if p.mounts != "" && of != p.mounts {
		c = &contained{next: p.s.host.Monotonic() + uint64(firstLook), pause: firstLook}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.contained[pid] = c
	if c != nil {
		p.s.wake()
	}
}

// hold opens the files of contained processes that are there by now, and returns when to look
// again; 0 if there is nothing to wait for.
func (p *processes) hold() (again time.Duration) {
	now := p.s.host.Monotonic()
	var due []int32
	p.mu.Lock()
	for pid, c := range p.contained {
		switch {
		case c == nil || c.perfMap != nil && (c.dump != nil || p.dumps[pid].Path == ""):
			continue
		case p.held >= maxHeld:
			continue
		case c.next <= now:
			due = append(due, pid)
			c.pause = min(2*c.pause, flushEvery)
			c.next = now + uint64(c.pause)
		}
		if wait := time.Duration(c.next - now); again == 0 || wait < again {
			again = wait
		}
	}
	p.mu.Unlock()
	for _, pid := range due {
		p.look(pid)
	}
	return again
}

// look opens the files of a contained process that are there.
func (p *processes) look(pid int32) {
	status, err := os.ReadFile(p.path(pid, "status"))
	if err != nil {
		return // gone
	}
	inner := procmaps.InnerPID(string(status), pid)
	perfMap := p.openMap(p.path(pid, "root"), inner)
	dump := p.openDump(p.path(pid, "root"), pid)
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.contained[pid]
	if c == nil {
		c = &contained{perfMap: &compiledFile{}, dump: &compiledFile{}} // it was forgotten meanwhile
	}
	c.inner = inner
	p.holdOne(&c.perfMap, perfMap)
	p.holdOne(&c.dump, dump)
}

// holdOne keeps an opened file, which may be nil, unless there is one already. p.mu is held.
func (p *processes) holdOne(at **compiledFile, f *compiledFile) {
	switch {
	case f == nil:
	case *at != nil:
		f.Close()
	default:
		f.held, *at = true, f
		p.held++
	}
}

// release closes the files of a process that are held. p.mu is held.
func (p *processes) release(pid int32) {
	if c := p.contained[pid]; c != nil {
		for _, f := range []*compiledFile{c.perfMap, c.dump} {
			if f != nil {
				f.File.Close()
				p.held--
			}
		}
	}
	delete(p.contained, pid)
}
