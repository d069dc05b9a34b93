package bundle

import "testing"

// TestAddresses: bundles that were written have these numbers.
func TestAddresses(t *testing.T) {
	if OutsideAddress != 0 || GoneAddress != 0xff_ffff_ffff_ffff {
		t.Errorf("outside %#x, gone %#x: not as the package comment has them", OutsideAddress,
			uint64(GoneAddress))
	}
}
