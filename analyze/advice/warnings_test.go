package advice

import (
	"strings"
	"testing"

	"symbolize/fixtures/profilebuild"
	"symbolize/ingest"
	"symbolize/ingest/addr"
)

// TestAdvice: warnings come by their shares of the samples, and only from half a percent on.
func TestAdvice(t *testing.T) {
	for _, tt := range []struct { // numbers of samples
		alone, unnamed, made uint64 // of 1,000 samples
		want                 string
	}{
		{want: ""},
		{alone: 400, unnamed: 50, made: 100, want: "have no stack, without a name, as fun_1234"},
		{alone: 310, unnamed: 550, want: "without a name, have no stack"},
		{made: 5, want: "as fun_1234"},
		{made: 4, unnamed: 4, want: ""},
	} {
		b := profilebuild.New(profilebuild.Clock())
		place := func(path string, name string) profilebuild.Place {
			pl := profilebuild.Place{Object: b.Object(ingest.Object{File: ingest.FileRef{Path: path}}),
				Offset: addr.Offset(4)}
			if name != "" {
				b.Name(pl, 4, profilebuild.Frame{Name: name})
			}
			return pl
		}
		main := place("/bin/app", "main")
		row := func(n uint64, stack ...profilebuild.Place) {
			if n > 0 {
				b.Row(profilebuild.Row{PID: -1, TID: -1, CPU: -1, Count: n, Weight: n, Stack: stack})
			}
		}
		row(tt.alone, main)
		row(tt.unnamed, place("/lib/a.so", ""), main)
		row(tt.made, place("/lib/b.so", "fun_1234"), main)
		row(1000-tt.alone-tt.unnamed-tt.made, place("/bin/app", "work"), main)
		p := b.Profile()
		for l := range p.Names.Reasons {
			if frames := p.Names.At(ingest.LocationID(l)); len(frames) > 0 &&
				p.Names.Functions[frames[0].Func].SystemName == "fun_1234" {
				p.Names.Reasons[l] = ingest.Stripped
			}
		}
		var got []string
		for _, w := range Warnings(p, false) {
			for _, words := range []string{"have no stack", "without a name", "as fun_1234"} {
				if strings.Contains(w.Text, words) {
					got = append(got, words)
				}
			}
		}
		if text := strings.Join(got, ", "); text != tt.want {
			t.Errorf("%+v: %q, want %q", tt, text, tt.want)
		}
	}
}

// TestFromHost: the hint of a capture of another host leads to the files there.
func TestFromHost(t *testing.T) {
	for _, tt := range []struct {
		name      string
		reason    ingest.Reason
		elsewhere bool
		want      string
	}{
		{name: "this host", reason: ingest.NotIndexed,
			want: "`symbolize missing 'a b.data'` lists the reasons, and what gets the names"},
		{name: "another host", reason: ingest.NotIndexed, elsewhere: true,
			want: "on box: `symbolize store export --for 'a b.data' -o symbols.zst`, here: " +
				"`symbolize store import symbols.zst`"},
		{name: "no file would help", reason: ingest.AnonymousMemory, elsewhere: true,
			want: "`symbolize missing 'a b.data'` lists the reasons, and what gets the names"},
	} {
		b := profilebuild.New(profilebuild.Clock())
		place := func(at addr.Offset) profilebuild.Place {
			return profilebuild.Place{Object: b.Object(ingest.Object{File: ingest.FileRef{Path: "/lib/a.so"}}),
				Offset: at}
		}
		b.Name(place(8), 4, profilebuild.Frame{Name: "main"})
		b.Row(profilebuild.Row{PID: -1, TID: -1, CPU: -1, Count: 1, Weight: 1,
			Stack: []profilebuild.Place{place(4), place(8)}})
		p := b.Profile()
		p.Meta.Host, p.Meta.Captures = "box", []string{"a b.data"}
		for l := range p.Names.Reasons {
			p.Names.Reasons[l] = tt.reason
		}
		list := Warnings(p, tt.elsewhere)
		if len(list) == 0 || list[0].Hint != tt.want {
			t.Errorf("%s: %+v, want the hint %q", tt.name, list, tt.want)
		}
	}
}

func TestPackage(t *testing.T) {
	for path, want := range map[string]string{
		"/usr/lib/x86_64-linux-gnu/libc.so.6":          "apt install libc6-dbg",
		"/lib/aarch64-linux-gnu/ld-linux-aarch64.so.1": "apt install libc6-dbg",
		"/usr/lib64/libc.so.6":                         "dnf debuginfo-install glibc",
		"/usr/lib/x86_64-linux-gnu/libcrypto.so.3":     "", "/srv/libc.so.6": "", "": "",
	} {
		c := Case{Reason: ingest.Stripped, Object: &ingest.Object{File: ingest.FileRef{Path: path}}}
		if got := c.Package(); got != want {
			t.Errorf("%q: %q, want %q", path, got, want)
		}
		if c.Reason = ingest.NotIndexed; c.Package() != "" {
			t.Errorf("%q: the program itself is in no debug package", path)
		}
	}
}
