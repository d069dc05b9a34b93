// Package annotate adds up the samples of functions by instruction and source line, and prints
// their code with that: as text and as JSON. Instructions and source come from a CodeSource; it
// knows neither the store nor files.
package annotate
