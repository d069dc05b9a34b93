// Package diff compares named profiles, one or several a side: function by function or line by
// line, with a test of significance where there are several.
//
// Two builds of a program compare, since nodes are matched by names that stay from build to build:
// readable names with their template arguments, the main program as such, libraries without
// their version, lines by their distance from the function's first. Values are compared as
// measured or, on request, as shares: then each profile is scaled to the base's total.
//
// The test checks for each function whether its values differ by more than repetitions differ, and
// than chance allows with that number of samples. It is a t-test with moderated variances
// (pValues), corrected for the number of functions by Holm's method. Without repetitions nothing
// is known of how runs differ: then a growth fails only if it exceeds the noise of counting.
package diff
