package flags

import (
	"time"

	"github.com/spf13/pflag"

	"symbolize/cmd/symbolize/internal/exit"
	"symbolize/store/db"
)

// AddJobs adds --jobs.
func AddJobs(fs *pflag.FlagSet, jobs *int) {
	fs.IntVarP(jobs, "jobs", "j", 0, "use at most `N` cores (default all)")
}

// AddWork adds --jobs and --max-memory.
func AddWork(fs *pflag.FlagSet, jobs *int, maxMemory *Size) {
	AddJobs(fs, jobs)
	fs.Var(maxMemory, "max-memory",
		"try to stay below `SIZE` of memory, as 512MiB or 2G (default: no limit of our own)")
}

// AddWriter adds the flags of all commands that write to the store.
func AddWriter(fs *pflag.FlagSet, o *db.WriterOptions) {
	fs.DurationVar(&o.LockTimeout, "lock-timeout", defaultLockTimeout,
		"wait for `TIME` for another writer; 0: not at all")
	fs.BoolVar(&o.Shared, "shared-store", false,
		"write although others can write to the store's directory, or to one above it")
}

// defaultLockTimeout is how long a second writer waits for the first.
const defaultLockTimeout = time.Minute

// AddBCCDirs adds --bcc-dir. It has no default: text and captures may be of any host, and
// files in a directory that anybody can write to are used only on request.
func AddBCCDirs(fs *pflag.FlagSet, dirs *[]string) {
	fs.StringArrayVar(dirs, "bcc-dir", nil,
		"take BPF programs from `DIR` too, where bcc left their sources: /var/tmp/bcc on its host")
}

// CheckJobs accepts the number of workers, 0 being one for each CPU.
func CheckJobs(n int) error {
	if n < 0 {
		return exit.Usagef("--jobs %d: it is at least 1", n)
	}
	return nil
}
