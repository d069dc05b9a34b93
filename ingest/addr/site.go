package addr

// Site returns the place to look up for a recorded address. For a return address (ret) it is
// the byte before it, which belongs to the call: the address itself can be the first byte of
// the next function. Other addresses, and 0, stay as they are. Return is the inverse.
//
// The first address of a stack, and of its part after each context marker, is no return
// address. For which of the others that holds too, because no call can precede them, see
// sideband.State.KernelCode, and resolve.Exact where there are symbol tables.
func Site[T ~uint64](at T, ret bool) T {
	if ret && at != 0 {
		return at - 1
	}
	return at
}

// Return returns the recorded address that is looked up at a site.
func Return[T ~uint64](site T, ret bool) T {
	if ret {
		return site + 1
	}
	return site
}
