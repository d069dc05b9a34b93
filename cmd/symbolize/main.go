// Command symbolize gives names to the addresses in profiles, offline and by
// build ID: `index` puts the symbols of a machine into a store, `resolve` joins
// a capture from any host with that store.
package main

import "os"

func main() { os.Exit(run()) }
