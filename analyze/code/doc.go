// Package code finds the instructions and the source of functions for annotate: those of BPF
// programs in captures and the store, those of user, kernel and module functions in a file whose
// build ID proves that it is the one that ran. Patterns select the functions.
package code
