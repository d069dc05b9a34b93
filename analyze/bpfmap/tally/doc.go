// Package tally makes counts, histograms and rows by address of the pairs in a BPF map. A Layout
// has the types of key and value, and selects the bytes of them that are an address, a slot or a
// count; a Plan has the place of its histograms. Where no types are known, an Inferrer finds
// fields by the text that bpftool formatted.
package tally
