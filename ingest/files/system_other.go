//go:build !unix

package files

const noFollow = 0 // the look before must do
