package dwarf

// A scope is a unit with the context for decoding its values. For a split unit, addresses and
// line tables are the skeleton's.
type scope struct {
	d    *Data
	u    *unit
	main *Data
	skel *unit
}

func (d *Data) scope(u *unit) scope { return scope{d, u, d, u} }

// str returns the string that an attribute gives, nil if there is none. ok is false if there should
// be one.
func (c *scope) str(v ref) (s []byte, ok bool) {
	sec := &c.d.sec
	switch v.form {
	case 0:
		return nil, true
	case formString:
		return cstringAt(sec.Info[:c.u.end], v.val)
	case formLineStrp:
		return cstringAt(sec.LineStr, v.val)
	}
	d, off, ok := c.shared(v)
	if !ok {
		return nil, false
	}
	return cstringAt(d.sec.Str, off)
}

// shared returns the offset of a string in .debug_str of a file; false for one that is elsewhere.
func (c *scope) shared(v ref) (d *Data, off uint64, ok bool) {
	switch v.form {
	case formStrp:
		return c.d, v.val, true
	case formStrx, formStrx1, formStrx2, formStrx3, formStrx4, formGNUStrIndex:
		off, ok := c.indexed(c.d.sec.StrOffsets, c.u.strBase, v.val, c.u.enc.offsetSize())
		return c.d, off, ok
	case formGNUStrpAlt, formStrpSup:
		return c.d.opts.Alt, v.val, c.d.opts.Alt != nil
	}
	return nil, 0, false
}

// indexed reads entry i of a table of numbers of one size.
func (c *scope) indexed(sec []byte, base, i uint64, size uint8) (uint64, bool) {
	n := uint64(len(sec))
	if base > n || i >= (n-base)/uint64(size) {
		return 0, false
	}
	r := buf{b: sec, off: int(base + i*uint64(size)), big: c.d.sec.BigEndian}
	return r.sized(size), true
}

// address returns the address that an attribute gives, directly or by index.
func (c *scope) address(v ref) (uint64, bool) {
	switch v.form {
	case formAddr:
		return v.val, true
	case formAddrx, formAddrx1, formAddrx2, formAddrx3, formAddrx4, formGNUAddrIndex:
		return c.addrx(v.val)
	}
	return 0, false
}

func (c *scope) addrx(i uint64) (uint64, bool) {
	return c.indexed(c.main.sec.Addr, c.skel.addrBase, i, c.u.enc.addrSize)
}

// target finds the entry that a reference points to.
func (c *scope) target(v ref) (scope, uint64, bool) {
	switch v.form {
	case formRef1, formRef2, formRef4, formRef8, formRefUdata:
		off := c.u.off + v.val
		return *c, off, off >= c.u.die && off < c.u.end
	case formRefAddr:
		return c.elsewhere(c.d, v.val)
	case formGNURefAlt, formRefSup4, formRefSup8:
		if c.d.opts.Alt != nil {
			return c.elsewhere(c.d.opts.Alt, v.val)
		}
	}
	return scope{}, 0, false
}

func (c *scope) elsewhere(d *Data, off uint64) (scope, uint64, bool) {
	if d == c.d && off >= c.u.die && off < c.u.end {
		return *c, off, true
	}
	d.scan()
	u := d.units.around(off)
	if u == nil || u.damage != "" || off < u.die {
		return scope{}, 0, false
	}
	to := d.scope(u)
	if d == c.d && c.main != c.d { // within a .dwo file
		to.main, to.skel = c.main, c.skel
	}
	return to, off, true
}
