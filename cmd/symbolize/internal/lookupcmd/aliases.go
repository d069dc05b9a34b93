package lookupcmd

import (
	"github.com/spf13/pflag"

	"symbolize/analyze/lookup"
	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/ingest/texts"
)

// toolFlags are flags of addr2line and llvm-symbolizer, which their users and scripts type:
// lookup accepts them, with their letters, which mean other things elsewhere.
type toolFlags struct {
	functions string // -f, --functions[=linkage|none]
	inlines   bool   // -i, --inlines
	demangled bool   // -C
	mangled   bool   // --no-demangle
}

// otherNames are the names that tools have for flags of ours.
var otherNames = map[string]pflag.NormalizedName{
	"obj": "exe", "inlining": "inlines", "output-style": "style", "print-address": "addresses",
}

func (h *toolFlags) addFlags(fs *pflag.FlagSet, o *lookup.Options) {
	cli.AddGroup(fs, cli.GroupTools, func(fs *pflag.FlagSet) {
		fs.BoolVarP(&o.Basenames, "basenames", "s", false, "print file names without directories")
		fs.BoolVarP(&o.Layout.Addresses, "addresses", "a", false,
			"print each address before its frames")
		fs.BoolVarP(&o.Layout.Pretty, "pretty-print", "p", false, "print each frame on one line")
		fs.StringVarP(&h.functions, "functions", "f", "linkage",
			"print function names: `linkage` or none")
		fs.Lookup("functions").NoOptDefVal = "linkage"
		fs.BoolVarP(&h.inlines, "inlines", "i", true, "print inlined calls")
		fs.BoolVarP(&h.demangled, "demangled", "C", true, "demangle names")
		fs.BoolVar(&h.mangled, "no-demangle", false, "the same as --demangle none")
	})
	fs.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if ours, ok := otherNames[name]; ok {
			return ours
		}
		return pflag.NormalizedName(name)
	})
}

// apply sets the options of the aliases in use.
func (h *toolFlags) apply(o *lookupOptions) error {
	switch h.functions {
	case "linkage", "true":
	case "none", "false":
		o.Layout.Nameless = true
	case "short":
		return texts.WithHint(cli.Usagef("--functions=short: names without scope are not kept"),
			"--demangle=simple leaves out parameters and template arguments")
	default:
		return cli.Usagef("--functions %q: it is one of linkage, none", h.functions)
	}
	o.NoInlines = o.NoInlines || !h.inlines
	if !h.demangled || h.mangled {
		o.demangle = "none"
	}
	return nil
}
