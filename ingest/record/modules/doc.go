// Package modules records the kernel modules of this host and when each comes and goes, as a part
// of a capture. Linux only.
package modules
