// Package code finds the instructions and the source of functions for annotate: of BPF programs in
// captures and the store; of user, kernel and module functions in a file that has the recorded
// build ID. Patterns select the functions.
package code
