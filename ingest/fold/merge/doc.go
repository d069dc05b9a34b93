// Package merge makes one Profile of many parts: of what the workers of one capture have
// counted (Assemble), and of the Profiles of several captures (Profiles). Everything is
// numbered by sorted order, so that equal inputs give equal bytes, whoever counted what.
package merge
