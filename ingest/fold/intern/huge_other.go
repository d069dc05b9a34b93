//go:build !linux

package intern

func adviseHuge[E any]([]E) {}
