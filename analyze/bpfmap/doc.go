// Package bpfmap reads dumps of BPF maps and makes results of them: values by BTF in the layout
// of bpftool, histograms and heat maps for package chart, counts by code address, the list of a
// bundle's maps, and the maps that a BPF object defines.
//
// Open selects the dumps of one map and finds their types: in the dump, in BTF that Source names,
// by a map's definition or the kernel's structure (struct_ops), or from the text that bpftool
// formatted. Package tally then finds the numbers in keys and values.
package bpfmap
