// Package chart draws what BPF maps count: histograms as the tracing tools print them,
// and heat maps of value against time for a terminal, as SVG and as HTML.
//
// It knows counts by slot and nothing of maps, dumps or symbols. A Scale says which
// values a slot counts. All output is made of integers, so that it is the same bytes
// on every machine; text from outside is escaped or made printable here.
package chart
