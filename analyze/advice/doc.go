// Package advice says how much of a profile is named, why the rest is not, and what to do about it:
// each frame without a name has a reason, and each reason a step, a command or a sentence, that
// depends on what is known of the object (Case).
//
// Coverage sums the reasons up, heaviest first; Warnings are for readers of a report that unnamed
// code or missing callers would mislead. Nothing here knows the store.
package advice
