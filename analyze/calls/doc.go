// Package calls prints which functions a profile's samples are of and who calls whom: the top
// table, call trees, callers and callees of a function, and differences of profiles, as text
// and JSON. The sums are those of analyze/calltree.
package calls
