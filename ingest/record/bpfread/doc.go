// Package bpfread reads the BPF programs, BTF and maps of the running kernel, on Linux.
package bpfread
