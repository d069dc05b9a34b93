package page_test

import (
	"fmt"

	"symbolize/analyze/page"
)

func ExamplePolicy() {
	// The sums are those of `printf TEXT | openssl dgst -sha256 -binary | base64`.
	fmt.Println(page.Policy(""))
	fmt.Println(page.Policy("", "", "f()"))
	// Output:
	// default-src 'none'; style-src 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='; base-uri 'none'; form-action 'none'
	// default-src 'none'; script-src 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=' 'sha256-GcEEE0IkDzIP5EQ6DXZaDPORqT5RTBELX8Fyzyg9yvo='; style-src 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='; base-uri 'none'; form-action 'none'
}
