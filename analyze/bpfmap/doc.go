// Package bpfmap makes counts of the pairs of a BPF map: which bytes of key and value are
// an address, a slot of a histogram or a count, by BTF where there is any, and the sums.
//
// What it makes is drawn by package chart, and named by ingest and resolve.
package bpfmap
