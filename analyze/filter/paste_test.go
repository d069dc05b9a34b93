package filter

import (
	"strings"
	"testing"

	"symbolize/buildid"
	"symbolize/ingest"
)

// Reports as programs print them, with the module that is indexed in place of theirs.
const (
	dumpHead = "Process 738465 (fixed) of user 1000 dumped core.\n\n"
	dumpList = "Module linux-vdso.so.1 with build-id 5d90781f8a5a7cfa89af4cfe67362f166a969137\n" +
		"                Module fixed with build-id ID\n" +
		"Module libzstd.so.1 without build-id.\nStack trace of thread 738465:\n"
	release   = "CPU: 3 UID: 0 PID: 7 Comm: kworker/u8:2 #2 Not tainted 6.12.3-amd64 #1  Debian 6.12.3-1\n"
	faultTail = " likely on CPU 12 (core 24, socket 0)\n"
	faultHead = "[  899.2] fixed[15246]: segfault at 1f ip 000000000040114e sp 00007fff090a0020" +
		" error 4 in "
)

// pasted is text of crash reports: a want of "" is the text as it is, ADD in a want is left out
// of the text. named is how many places get a name, left the reasons of the others.
var pasted = []struct {
	name, want string
	named      uint64
	left       []ingest.Reason
}{
	{"glibc, an executable at its address",
		"# 5 cpu/fixed() [0x401212]{ main+0x5f (" + callLine + ")}\n", 1, nil},
	{"glibc, offset in the file", "./fixed(+0x401212) [0x55d2e6b40212]{ main+0x5f (" + callLine + ")}\n",
		1, nil},
	{"glibc, symbol", "fixed(main+0x5f) [0x401212]{ (" + callLine + ")}\n", 1, nil},
	{"glibc, the first is a return address, too",
		"fixed(+0x401208) [0x401208]{ main+0x55 (/usr/include/x86_64-linux-gnu/bits/stdlib-float.h:27)}\n", 1, nil},
	{"glibc, written to a descriptor", "./fixed(+0x401212)[0x401212]{ main+0x5f (" + callLine + ")}\n" +
		"./fixed(main+0x5f)[0x401212]{ (" + callLine + ")}\n" +
		"./fixed[0x401212]{ main+0x5f (" + callLine + ")}\n", 3, nil},
	{"elements of arrays", "fixed[0x401212]\n./fixed[0x401212] = 3\n[0x401212]\n", 0, nil},
	{"glibc, offset in no segment", "./fixed(+0x1169) [0x55d2e6b40169]\n", 0,
		[]ingest.Reason{ingest.OutsideObject}},
	{"glibc, no executable at its address", "/usr/lib/fixed() [0x7f9bb7e3e8e0]\n", 0,
		[]ingest.Reason{ingest.OutsideObject}},
	{"glibc, symbol that is not there", "fixed(gone+0x5f) [0x401212]\n", 0,
		[]ingest.Reason{ingest.Stripped}},
	{"glibc, behind the symbol", "fixed(main+0x999) [0x401b4c]\n", 0,
		[]ingest.Reason{ingest.OutsideObject}},
	{"glibc, a file that is not known", "/usr/lib/libc.so.6(+0x3e8e0) [0x7f9bb7e3e8e0]\n", 0,
		[]ingest.Reason{ingest.NoBuildID}},
	{"glibc, several files", "two(+0x401212) [0x401212]\n", 0, []ingest.Reason{ingest.Ambiguous}},
	{"systemd", dumpHead + dumpList +
		"#0  0x000000000040114e n/a (fixed + 0x114e){ " + exactPlace + "}\n" +
		"          #1  0x0000000000401212 main (/srv/app/bin/fixed + 0x1212){ " + secondPlace + "}\n" +
		"#2  0x00007fc768b39153 n/a (linux-vdso.so.1 + 0x153)\n" +
		"#3  0x00007fc768b39153 n/a (libzstd.so.1 + 0x153)\n", 2,
		[]ingest.Reason{ingest.NotIndexed, ingest.NoBuildID}},
	{"systemd before 250", "Found module fixed with build-id: ID\n" +
		"#0  0x000000000040114e n/a (fixed + 0x114e){ " + exactPlace + "}\n", 1, nil},
	{"systemd, the next process", dumpHead + dumpList + dumpHead +
		"#0  0x000000000040114e n/a (libgone + 0x114e)\n" + strings.Replace(dumpList, "fixed", "lib2", 1) +
		"#0  0x000000000040114e n/a (lib2 + 0x114e){ " + exactPlace + "}\n", 1,
		[]ingest.Reason{ingest.NoBuildID}},
	{"systemd, no list: by name", "#0  0x000000000040114e n/a (/tmp/fixed + 0x114e){ " + exactPlace + "}\n",
		1, nil},
	{"systemd, two of a name", dumpList + "Module /opt/fixed with build-id " + nobodyID + "\n" +
		"#0  0x000000000040114e n/a (fixed + 0x114e)\n", 0, []ingest.Reason{ingest.Ambiguous}},
	{"systemd, offset in no segment", "#0  0x000000000040114e n/a (fixed + 0x40114e)\n", 0,
		[]ingest.Reason{ingest.OutsideObject}},
	{"kernel, file offset", faultHead + "fixed[114e,401000+1000]{ " + exactPlace + "}" + faultTail, 1, nil},
	{"kernel, trap", "traps: fixed[9] trap invalid opcode ip:40114e sp:7ffc error:0 in " +
		"fixed[114e,401000+1000]{ " + exactPlace + "}\n", 1, nil},
	{"kernel, start of the mapping alone", faultHead + "fixed[401000+1000]" + faultTail, 0,
		[]ingest.Reason{ingest.MapsNotSaved}},
	{"kernel, another address", faultHead + "fixed[114e,501000+1000]" + faultTail, 0, nil},
	{"kernel, an offset that does not fit", faultHead + "fixed[114f,401000+1000]" + faultTail, 0, nil},
	{"kernel, no address", "3 in fixed[114e,401000+1000]\n", 0, nil},
	{"Android", "11-17 A/DEBUG:       #26 pc 000000000040120d  /apex/lib64/libart.so " +
		"(art::Invoke(art::Thread*, char const*)+568) (BuildId: ID){ main+0x5a (" + callLine + ")}\n", 1, nil},
	{"Android, in an archive", "      #00 pc 0040114e  /data/app/base.apk!libx.so (offset 0x2d000) " +
		"(BuildId: ID){ " + exactPlace + "}\n", 1, nil},
	{"Android, no build ID", "#01 pc 0040114e  /vendor/bin/fixed\n", 0,
		[]ingest.Reason{ingest.NoBuildID}},
	{"gdb", "#1  0x00007ffff7a42bf0 in ?? () from /lib/x86_64-linux-gnu/libc.so.6\n" +
		"#2  0x0000000000401212 in main () at fixed.c:37\n#3  0x0000555555551212 in ?? ()\n", 0,
		[]ingest.Reason{ingest.MapsNotSaved, ingest.MapsNotSaved}},
	{"gdb, a program at its address", "#0  0x000000000040114e in ?? (){ " + exactPlace + "}\n" +
		"#1  0x0000000000401212 in ?? (){ " + secondPlace + "}\n" +
		"#2  0x0000000000401212 in ?? () from /lib/libc.so.6\n", 2,
		[]ingest.Reason{ingest.MapsNotSaved}},
	{"gdb, behind a signal", "#0  0x00007ffff7a42bf0 in raise () from /lib/libc.so.6\n" +
		"#1  <signal handler called>\n#2  0x000000000040114e in ?? (){ " + exactPlace + "}\n" +
		"#3  0x0000000000401212 in ?? (){ " + secondPlace + "}\n", 2, nil},
	{"gdb, mappings before it", "          Start Addr           End Addr       Size     Offset  Perms  objfile\n" +
		"      0x555555554000     0x555555555000     0x1000        0x0  r--p   /srv/my app/fixed\n" +
		"      0x555555555000     0x555555556000     0x1000     0x1000  r-xp   /srv/my app/fixed\n" +
		"#0  0x000055555555514e in ?? (){ " + exactPlace + "}\n" +
		"#1  0x0000555555555212 in ?? (){ " + secondPlace + "} from /srv/fixed\n" +
		"#2  0x0000555555555212 in ?? () from /lib/other.so\n#3  0x1212 in ?? ()\n", 2,
		[]ingest.Reason{ingest.MapsNotSaved, ingest.MapsNotSaved}},
	{"sanitizers", "    #1 0x55d0 in f (/srv/fixed+0x40120d){ main+0x5a (" + callLine + ")}\n" +
		"    #2 0x55d0  (/srv/fixed+0x40120d){ main+0x5a (" + callLine + ")}\n" +
		"    #3 f <null> (fixed+0x40120d){ main+0x5a (" + callLine + ")}\n", 3, nil},
	{"the number of a frame behind it", "(fixed+0x40120d) #0 0\n", 0, nil},
	{"LLVM's own stacks", " #1 0x000000000040120d (/srv/fixed+0x40120d)\n" +
		" #2 0x000000000040120d f(int) (/srv/fixed+0x40120d)\n", 0, nil},
	{"Go", "[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x40114e{ " + exactPlace + "}]\n" +
		"main.main()\n\t/srv/app/main.go:12 +0x1d\ncreated by main.f in goroutine 1\n" +
		"\t/srv/app/main.go:9 +0x1d fp=0xc00008e7e0 sp=0xc00008e7d8 pc=0x40114e\n", 1, nil},
	{"Go, a signal in C", "PC=0x40114e{ " + exactPlace + "} m=3 sigcode=1 addr=0x0\n" +
		"non-Go function\n\tpc=0x401212{ " + secondPlace + "}\nnon-Go function\n\tpc=0x401136\n" +
		"\tpc=0x401212\n", 2, []ingest.Reason{ingest.Ambiguous}},
	{"Rust", "   1:           0x401212 - <unknown>{ " + secondPlace + "}\n" +
		"   2: 0x401212 - main\n             at ./src/main.rs:3:5\n" +
		"   3:     0x55d2e6b40212 - <unknown>\n", 1, []ingest.Reason{ingest.MapsNotSaved}},
	{"mappings of /proc before it", "00400000-00401000 r--p 00000000 08:01 77   /tmp/gone\n" +
		"cut\n7f0000401000-7f0000402000 r-xp 00001000 08:01 77                         /srv/fixed\n" +
		"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n" +
		"   1:     0x7f0000401212 - <unknown>{ " + secondPlace + "}\n", 1, nil},
	{"an oops by its release", release + " collatz+0x18/0x48{ (" + loopLine + ")}\n", 1, nil},
	{"an oops, tainted", strings.Replace(release, "Not tainted", "Tainted: G        W  OE", 1) +
		" collatz+0x18/0x48{ (" + loopLine + ")}\n", 1, nil},
	{"an oops of another length", release + " collatz+0x8/0x10\n", 0, []ingest.Reason{ingest.Mismatch}},
	{"an oops of a kernel that is not known", strings.Replace(release, "6.12.3", "6.12.4", 1) +
		" collatz+0x18/0x48\n", 0, []ingest.Reason{ingest.NoBuildID}},
	{"a module of it", release + " collatz+0x18/0x48 [nfs]\n", 0, []ingest.Reason{ingest.NoBuildID}},
	{"no release", strings.Replace(release, "6.12.3", "x", 1) + " collatz+0x18/0x48\n", 0,
		[]ingest.Reason{ingest.NoBuildID}},
	{"cut", "./fixed(+0x401212) [0x\nfixed() [\n#0  0x1 n/a (fixed + 0x\n#00 pc \n# \n#1 0x1 in ?? (\n", 0, nil},
}

// files are those that a user named.
func files(name string) []buildid.ID {
	fixed, _ := buildid.Parse(fixedID)
	nobody, _ := buildid.Parse(nobodyID)
	switch name[strings.LastIndexByte(name, '/')+1:] {
	case "fixed", "vmlinux-6.12.3-amd64":
		return []buildid.ID{fixed}
	case "two":
		return []buildid.ID{nobody, fixed}
	}
	return nil
}

// programs are those that a user named: one is not there, one is position-independent.
func programs() (ids []buildid.ID) {
	for _, text := range []string{nobodyID, mixedID, fixedID} {
		id, _ := buildid.Parse(text)
		ids = append(ids, id)
	}
	return ids
}

// splitPasted returns a text of pasted and the text that it becomes.
func splitPasted(want string) (in, out string) {
	want = strings.ReplaceAll(want, "ID\n", fixedID+"\n")
	want = strings.ReplaceAll(want, "BuildId: ID", "BuildId: "+fixedID)
	out = strings.NewReplacer("{", "", "}", "").Replace(want)
	for {
		before, rest, found := strings.Cut(want, "{")
		in += before
		if !found {
			return in, out
		}
		_, want, _ = strings.Cut(rest, "}")
	}
}

// TestPasted: crash reports get the names that are certain; all else stays and is counted.
func TestPasted(t *testing.T) {
	view := newView(t)
	for _, c := range pasted {
		t.Run(c.name, func(t *testing.T) {
			in, want := splitPasted(c.want)
			got, st := rewrite(t, view, Options{Files: files, Programs: programs()}, in)
			if got != want {
				t.Errorf("%q becomes\n%q and not\n%q", in, got, want)
			}
			var left []ingest.Reason
			for _, l := range st.Sorted() {
				for range l.Places {
					left = append(left, l.Reason)
				}
				if l.Hint() == "" && l.Reason != ingest.OutsideObject {
					t.Errorf("no hint for %+v", l)
				}
			}
			if st.Named != c.named || len(left) != len(c.left) {
				t.Fatalf("%d named, not %d; left %v, not %v", st.Named, c.named, left, c.left)
			}
			for i := range left {
				if left[i] != c.left[i] {
					t.Errorf("left %v, not %v", left, c.left)
				}
			}
			for n := range in { // whatever is cut off
				out, _ := rewrite(t, view, Options{Files: files, Programs: programs()}, in[:n])
				if len(out) < n {
					t.Errorf("%q becomes %q", in[:n], out)
				}
			}
		})
	}
}

// TestByFile: names by the name of a file are counted, and nothing is named so unless the
// user named files.
func TestByFile(t *testing.T) {
	view := newView(t)
	in, _ := splitPasted(dumpList + "#0  0x1 n/a (fixed + 0x114e)\n./fixed() [0x401212]\n")
	if _, st := rewrite(t, view, Options{Files: files}, in); st.Named != 2 || st.ByFile != 1 {
		t.Errorf("%d named, %d by the name of a file", st.Named, st.ByFile)
	}
	if _, st := rewrite(t, view, Options{}, in); st.Named != 1 || st.ByFile != 0 ||
		st.Left[0].Object != "./fixed" || !st.Left[0].File {
		t.Errorf("no files: %+v", st)
	}
}

// TestPrograms: an address that two programs have code at is ambiguous.
func TestPrograms(t *testing.T) {
	view := newView(t)
	gone, err := buildid.Parse("e434d54570d1543816bd84296063fe6ad04790c7") // at 0x400000 to 0x400844
	if err != nil {
		t.Fatal(err)
	}
	const in = "1: 0x400700 - <unknown>\n"
	opts := Options{Programs: append(programs(), gone)}
	if out, st := rewrite(t, view, opts, in); st.Named != 1 {
		t.Errorf("one of two programs has it: %s", out)
	}
	opts.Programs = append(opts.Programs, gone)
	if out, st := rewrite(t, view, opts, in); out != in || st.Left[0].Reason != ingest.Ambiguous {
		t.Errorf("two have it: %s", out)
	}
}

// TestLongPasted: a long line of pasted forms takes time in proportion to its length.
func TestLongPasted(t *testing.T) {
	view := newView(t)
	for _, in := range []string{"#0 ", "#00 pc 0040114e ", "(+0x1) ", "f(+0x1) [0x1", "x() [0x1 ",
		" in x[1,2+3]", " + 0x1)", "odule a with build-id ", "#1 0x1 in ?? () from ", "[signal  pc=0x",
		"1: 0x1 - <unknown>", "1-2 r-xp "} {
		if _, st := rewrite(t, view, Options{Files: files}, strings.Repeat(in, 1<<14)); st.Named > 0 {
			t.Errorf("%d named: %q", st.Named, in)
		}
	}
}
