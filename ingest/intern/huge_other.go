//go:build !linux

package intern

// AdviseHuge does nothing here.
func AdviseHuge[E any]([]E) {}
