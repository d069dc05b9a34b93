// Package listing draws annotated functions as one page of HTML: source lines beside
// instructions, both coloured by their share of the function's samples, with the jumps inside a
// function as arrows. The page loads nothing and runs no script.
package listing
