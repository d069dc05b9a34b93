package ingest

import (
	"slices"

	"symbolize/buildid"
)

// Kernels returns the build IDs of the kernels whose code the profile has.
func (p *Profile) Kernels() (kernels []buildid.ID) {
	for i := range p.Objects {
		o := &p.Objects[i]
		if o.Kind == Kernel && !o.ID.IsZero() && !slices.Contains(kernels, o.ID) {
			kernels = append(kernels, o.ID)
		}
	}
	return kernels
}
