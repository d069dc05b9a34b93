package record

// Need is a right or setting that the host lacks, and its use.
type Need struct {
	Name string // capability, sysctl or file
	For  string // the data that is missing without it
	Fix  string // how to get it
	// Option is the flag of capture that alone needs it; "" if all do.
	Option string
	// Fatal: without it there is no capture at all.
	Fatal bool
}
