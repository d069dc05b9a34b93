// Package chart draws the counts in BPF maps: histograms as the tracing tools print them,
// and heat maps of value against time for a terminal, as SVG and as HTML.
//
// Its input is counts by slot; it does not depend on maps, dumps or symbols. A Scale maps
// slots to values. All output is computed with integers, so that it is the same bytes
// on every machine; input text is escaped or made printable here.
package chart
