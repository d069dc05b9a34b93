package usage

import (
	"cmp"
	"errors"
	"io/fs"
	"slices"

	"symbolize/ingest/format/bpf"
)

// Options locate the files to read.
type Options struct {
	Proc string // where /proc is mounted; "" is /proc
	// OtherPIDs: processes have other numbers there than for system calls of this process.
	OtherPIDs bool
}

// Use is how a program is used.
type Use struct {
	Attached []bpf.Attachment
	Holders  []bpf.Holder
	Pins     []string
}

// scan is one search.
type scan struct {
	opts    Options
	uses    map[uint32]*Use
	groups  []group           // of all file systems of type cgroup2
	paths   map[uint64]string // of groups, by number
	ifaces  []iface
	targets targets
	errs    []error
}

// scanHost returns how the programs are used, by number; those that nothing is known of are absent.
// An error of one place is returned with the results of the others.
func scanHost(opts Options) (map[uint32]*Use, error) {
	opts.Proc = cmp.Or(opts.Proc, "/proc")
	s := &scan{opts: opts, uses: make(map[uint32]*Use), paths: make(map[uint64]string)}
	mounts := s.mounts()
	s.listGroups(mounts)
	s.listInterfaces()
	s.addLinks()
	s.addGroups()
	s.addInterfaces()
	s.addHolders()
	s.addPins(mounts)
	for _, u := range s.uses {
		u.sort()
	}
	return s.uses, errors.Join(s.errs...)
}

// fail keeps an error, unless it is that something has gone meanwhile.
func (s *scan) fail(err error) {
	const most = 8
	if err != nil && !errors.Is(err, fs.ErrNotExist) && len(s.errs) < most {
		s.errs = append(s.errs, err)
	}
}

func (s *scan) use(program uint32) *Use {
	u := s.uses[program]
	if u == nil {
		u = new(Use)
		s.uses[program] = u
	}
	return u
}

// addLink adds an attachment by a link; those that differ by their numbers alone are one.
func (u *Use) addLink(a bpf.Attachment) {
	for i := range u.Attached {
		if x := &u.Attached[i]; x.How == a.How && x.To == a.To {
			x.Times = max(x.Times, 1) + 1
			x.Link = min(x.Link, a.Link)
			return
		}
	}
	u.Attached = append(u.Attached, a)
}

// add adds an attachment, unless a link like it is known: it is that one, met again.
func (u *Use) add(how, to string) {
	for _, x := range u.Attached {
		if x.How == how && x.To == to {
			return
		}
	}
	u.Attached = append(u.Attached, bpf.Attachment{How: how, To: to})
}

func (u *Use) hold(h bpf.Holder) {
	if !slices.Contains(u.Holders, h) {
		u.Holders = append(u.Holders, h)
	}
}

func (u *Use) sort() {
	slices.SortFunc(u.Attached, func(a, b bpf.Attachment) int {
		return cmp.Or(cmp.Compare(a.How, b.How), cmp.Compare(a.To, b.To))
	})
	slices.SortFunc(u.Holders, func(a, b bpf.Holder) int {
		return cmp.Or(cmp.Compare(a.PID, b.PID), cmp.Compare(a.By, b.By))
	})
	slices.Sort(u.Pins)
	u.Pins = slices.Compact(u.Pins)
}
