// Package hint has for each reason why code has no name the step that names it: the one table of
// such hints, for reports over captures and for places in text. A step is a command of the shell,
// or a sentence where no single command does. It never advises a step that the Case has as done.
package hint
