package ingest

import "strings"

// MainProgram returns the path of the program that the recorder ran, if Meta.Command names it and it
// has leaf samples, else of the file with most leaf samples, weighed by weigh, that is not named like
// a shared library; "" if there is none. The recorder itself is preferred to nothing only.
func (p *Profile) MainProgram(weigh func(*Sample) uint64) string {
	leaves := make([]uint64, len(p.Objects))
	for i := range p.Samples {
		if s := &p.Samples[i]; s.Stack != 0 {
			leaves[p.Locations[p.Leaves[s.Stack]].Object] += weigh(s)
		}
	}
	command := strings.Fields(p.Meta.Command)
	best, bestRank := -1, 0
	for i := range p.Objects {
		o := &p.Objects[i]
		base := BaseName(o.File.Path)
		if o.Kind != ELF || leaves[i] == 0 || IsLibraryName(base) || o.File.Path == VsyscallPath {
			continue
		}
		rank := commandRank(command, base)
		if best < 0 || rank > bestRank || rank == bestRank && leaves[i] > leaves[best] {
			best, bestRank = i, rank
		}
	}
	if best < 0 {
		return ""
	}
	return p.Objects[best].File.Path
}

// IsLibraryName reports whether a file is named like a shared library.
func IsLibraryName(path string) bool {
	base := BaseName(path)
	return strings.HasSuffix(base, ".so") || strings.Contains(base, ".so.")
}

// commandRank returns 2 for a program that the command line of a recorder runs, 0 for the recorder,
// and 1 for others. A recorder of all CPUs runs its command only to know when to stop.
func commandRank(command []string, base string) int {
	if len(command) == 0 {
		return 1
	}
	if base == BaseName(command[0]) {
		return 0
	}
	for _, word := range command[1:] {
		switch {
		case isAllCPUs(word):
			return 1
		case BaseName(word) == base:
			return 2
		}
	}
	return 1
}

// isAllCPUs reports whether an argument makes perf record record all CPUs, as -a and -ag do.
func isAllCPUs(word string) bool {
	flags, short := strings.CutPrefix(word, "-")
	return word == "--all-cpus" || short && strings.Contains(flags, "a") && strings.Trim(flags, "agqv") == ""
}

// AllCPUs reports whether the recorder recorded a whole machine, as far as its command line says.
func (m *Meta) AllCPUs() bool {
	for _, word := range strings.Fields(m.Command) {
		switch {
		case isAllCPUs(word):
			return true
		case word == "--" || BaseName(word) == BaseName(m.MainProgram):
			return false
		}
	}
	return false
}

// OmitArguments leaves only the names of programs in Meta.Command, as arguments may hold secrets:
// of "/usr/bin/perf record -F 99 -- /srv/app/bin/app --token x" it keeps "perf record app". The main
// program of the rest is the same.
func (p *Profile) OmitArguments() {
	command := strings.Fields(p.Meta.Command)
	if len(command) == 0 {
		return
	}
	main := BaseName(p.Meta.MainProgram)
	rank := commandRank(command, main)
	words := []string{BaseName(command[0])}
	if len(command) > 1 && command[1] == "record" && strings.Contains(words[0], "perf") {
		words = append(words, command[1])
		for _, word := range command[2:] {
			if isAllCPUs(word) {
				words = append(words, "-a")
				break
			}
			if rank > 1 && BaseName(word) == main {
				break
			}
		}
	}
	if rank > 1 {
		words = append(words, main)
	}
	p.Meta.Command = strings.Join(words, " ")
}
