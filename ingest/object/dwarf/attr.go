package dwarf

import (
	"bytes"
	"math/bits"
)

// values holds the attributes of interest of one entry as stored in the file: numbers, offsets
// and indexes, with their forms. An inline string (DW_FORM_string) is its position in
// .debug_info.
type values struct {
	mask uint32 // bit per slot that was there
	val  [numSlots]uint64
	form [numSlots]uint16
}

func (v *values) has(s slot) bool { return v.mask>>s&1 != 0 }

// get returns the value of a slot, or 0.
func (v *values) get(s slot) uint64 {
	if !v.has(s) {
		return 0
	}
	return v.val[s]
}

// uint32 returns a small unsigned constant, or 0 if it is absent or another kind of value:
// producers write line numbers in every constant form.
func (v *values) uint32(s slot) uint32 {
	if n := v.get(s); bits.Len64(n) <= 32 {
		return uint32(n)
	}
	return 0
}

// read runs a compiled abbreviation over the attributes at r.
func (t *abbrevs) read(p program, r *buf, enc encoding, v *values) {
	v.mask = 0
	for i := p.lo; i < p.hi; i++ {
		st := &t.steps[i]
		if st.pre != 0 {
			r.skip(uint64(st.pre))
		}
		if st.slot == slotNone {
			skipForm(r, st.form, enc)
			continue
		}
		form := st.form
		if form == formIndirect {
			form = uint16(min(r.uleb(), 0xffff))
		}
		switch {
		case st.size != 0:
			v.val[st.slot] = r.sized(st.size)
		case form == formImplicitConst && st.form == form:
			v.val[st.slot] = uint64(t.implicit[st.arg])
		default:
			v.val[st.slot] = readForm(r, form, enc)
		}
		v.form[st.slot] = form
		v.mask |= 1 << st.slot
	}
	r.skip(uint64(p.tail))
}

// readForm reads one value. Blocks are skipped and read as 0.
func readForm(r *buf, form uint16, enc encoding) uint64 {
	switch form {
	case formString:
		at := r.off
		skipForm(r, form, enc)
		return uint64(at)
	case formUdata, formRefUdata, formStrx, formAddrx, formLoclistx, formRnglistx,
		formGNUAddrIndex, formGNUStrIndex:
		return r.uleb()
	case formSdata:
		return uint64(r.sleb())
	case formFlagPresent:
		return 1
	}
	size, ok := enc.fixedSize(form)
	if !ok || size == 0 || size > 8 {
		skipForm(r, form, enc)
		return 0
	}
	return r.sized(size)
}

// skipForm skips one value.
func skipForm(r *buf, form uint16, enc encoding) {
	switch form {
	case formString:
		n := bytes.IndexByte(r.b[r.off:], 0)
		if n < 0 {
			r.fail()
			return
		}
		r.off += n + 1
	case formUdata, formSdata, formRefUdata, formStrx, formAddrx, formLoclistx, formRnglistx,
		formGNUAddrIndex, formGNUStrIndex:
		r.skipLEB()
	case formBlock, formExprloc:
		r.skip(r.uleb())
	case formBlock1:
		r.skip(uint64(r.u8()))
	case formBlock2:
		r.skip(uint64(r.u16()))
	case formBlock4:
		r.skip(uint64(r.u32()))
	case formIndirect:
		inner := uint16(min(r.uleb(), 0xffff))
		if inner == formIndirect || inner == formImplicitConst {
			r.fail()
			return
		}
		skipForm(r, inner, enc)
	default:
		size, ok := enc.fixedSize(form)
		if !ok {
			r.fail()
			return
		}
		r.skip(uint64(size))
	}
}
