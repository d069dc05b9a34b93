//go:build !unix

package regular

const noFollow = 0 // the look before must do
