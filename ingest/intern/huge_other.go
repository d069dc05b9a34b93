//go:build !linux

package intern

func advise[E any]([]E) {}
