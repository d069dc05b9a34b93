package sideband

import (
	"cmp"
	"slices"
	"strings"

	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/fold/addrspace"
	"symbolize/ingest/object/kallsyms"
	"symbolize/ingest/regular"
)

// maxLoads bounds the mappings of one module that get names.
const maxLoads = 64

// nameModules names the functions of modules without a build ID by copies of /proc/kallsyms, if
// those are of the capture's boot: the kernel's reference symbol has the same address. A function
// counts where its module was mapped, from then on.
func (sb *State) nameModules(paths []string) {
	x := NewIdentifier(sb, ObjectQuery{}, nil)
	loads := make(map[string][]change) // by display name
	for _, e := range sb.changes {
		if e.kind != changeKernelMapping || e.layer != addrspace.Base {
			continue
		}
		if o := &sb.Objects.List[e.ref]; o.Kind == ingest.Module && o.ID.IsZero() &&
			x.module[o.File.Path].IsZero() && len(loads[o.File.Path]) < maxLoads {
			loads[o.File.Path] = append(loads[o.File.Path], e)
		}
	}
	if len(loads) == 0 || sb.Kernel.address == 0 {
		return
	}
	for _, path := range paths {
		if symbols := sb.listedFunctions(path, loads); symbols != nil {
			sb.addListed(symbols, loads)
		}
	}
}

// listedFunctions reads the symbols of modules from a list, by address; nil if the list is of
// another boot or cannot be read, which is reported where the kernel's own symbols are read.
func (sb *State) listedFunctions(path string, loads map[string][]change) []kallsyms.Symbol {
	f, err := regular.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	var symbols []kallsyms.Symbol
	sameBoot := false
	_ = kallsyms.Read(path, f, func(s kallsyms.Symbol) bool {
		switch {
		case s.Module == "":
			sameBoot = sameBoot || s.Name == sb.Kernel.symbol && s.Addr == sb.Kernel.address
		case loads["["+s.Module+"]"] != nil:
			symbols = append(symbols, s)
		}
		return true
	})
	if !sameBoot {
		return nil
	}
	slices.SortStableFunc(symbols, func(a, b kallsyms.Symbol) int { return cmp.Compare(a.Addr, b.Addr) })
	return symbols
}

// addListed maps functions over the modules that have them. Padding before a function belongs to
// it: an interrupt comes to its first byte, and a call returns to none.
func (sb *State) addListed(symbols []kallsyms.Symbol, loads map[string][]change) {
	for i := range symbols {
		s := &symbols[i]
		if !s.IsCode() || strings.HasPrefix(s.Name, kallsyms.Padding) ||
			i > 0 && symbols[i-1].Addr == s.Addr {
			continue
		}
		end := s.Addr + maxListed
		for j := i + 1; j < len(symbols); j++ {
			if symbols[j].Addr > s.Addr {
				end = min(end, symbols[j].Addr)
				break
			}
		}
		for _, e := range loads["["+s.Module+"]"] {
			if s.Addr < e.a || s.Addr >= e.b {
				continue // initialization, which is gone, or a load at another place
			}
			e.a, e.b, e.c, e.ref = s.Addr, min(end, e.b), 0, sb.Objects.listedCode(s)
			sb.insert(e.time, e)
		}
	}
}

// interrupted reports whether a kernel address that looks like a return address is where a listed
// function begins, before which no call is: padding, or the function of another module.
func (sb *State) interrupted(here, before *addrspace.Mapping, pc addr.PC) bool {
	if here.Start != pc {
		return false
	}
	o, b := &sb.Objects.List[here.Object], &sb.Objects.List[before.Object]
	return o.Kind == ingest.JIT || o.Kind == ingest.Module && o.Symbol != "" && b.Symbol == ""
}
