// Package copier has the kernel copy BPF programs while they are being loaded, so that code,
// lines and BTF of a program are had that is gone before user space could read it. Attach
// loads a BPF program of our own; the pieces that it sends become copies by Pieces.
package copier
