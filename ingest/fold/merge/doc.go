// Package merge makes one Profile of many parts: the results of one capture's workers (Assemble),
// or the Profiles of several captures (Profiles). Everything is numbered in sorted order, so that
// equal inputs give equal bytes, for any division of work.
package merge
