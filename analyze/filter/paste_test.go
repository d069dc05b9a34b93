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

// fixedGUID is Breakpad's identifier of fixed.
const fixedGUID = "DEBED5258807470A17E27339B881F99C0"

// pasted is text of crash reports: a want of "" is the text as it is, ADD in a want is left out
// of the text. named is how many places get a name, left the reasons of the others.
var pasted = []struct {
	name, want string
	named      uint64
	left       []ingest.Reason
}{
	{name: "glibc, an executable at its address",
		want: "# 5 cpu/fixed() [0x401212]{ main+0x5f (" + callLine + ")}\n", named: 1},
	{name: "glibc, offset in the file",
		want:  "./fixed(+0x401212) [0x55d2e6b40212]{ main+0x5f (" + callLine + ")}\n",
		named: 1},
	{name: "glibc, symbol", want: "fixed(main+0x5f) [0x401212]{ (" + callLine + ")}\n", named: 1},
	{name: "glibc, the first is a return address, too",
		want:  "fixed(+0x401208) [0x401208]{ main+0x55 (/usr/include/x86_64-linux-gnu/bits/stdlib-float.h:27)}\n",
		named: 1},
	{name: "glibc, written to a descriptor",
		want: "./fixed(+0x401212)[0x401212]{ main+0x5f (" + callLine + ")}\n" +
			"./fixed(main+0x5f)[0x401212]{ (" + callLine + ")}\n" +
			"./fixed[0x401212]{ main+0x5f (" + callLine + ")}\n", named: 3},
	{name: "elements of arrays", want: "fixed[0x401212]\n./fixed[0x401212] = 3\n[0x401212]\n",
		named: 0},
	{name: "glibc, offset in no segment", want: "./fixed(+0x1169) [0x55d2e6b40169]\n", named: 0,
		left: []ingest.Reason{ingest.OutsideObject}},
	{name: "glibc, no executable at its address", want: "/usr/lib/fixed() [0x7f9bb7e3e8e0]\n",
		named: 0,
		left:  []ingest.Reason{ingest.OutsideObject}},
	{name: "glibc, symbol that is not there", want: "fixed(gone+0x5f) [0x401212]\n", named: 0,
		left: []ingest.Reason{ingest.Stripped}},
	{name: "glibc, behind the symbol", want: "fixed(main+0x999) [0x401b4c]\n", named: 0,
		left: []ingest.Reason{ingest.OutsideObject}},
	{name: "glibc, a file that is not known",
		want: "/usr/lib/libc.so.6(+0x3e8e0) [0x7f9bb7e3e8e0]\n", named: 0,
		left: []ingest.Reason{ingest.NoBuildID}},
	{name: "glibc, several files", want: "two(+0x401212) [0x401212]\n", named: 0,
		left: []ingest.Reason{ingest.Ambiguous}},
	{name: "systemd", want: dumpHead + dumpList +
		"#0  0x000000000040114e n/a (fixed + 0x114e){ " + exactPlace + "}\n" +
		"          #1  0x0000000000401212 main (/srv/app/bin/fixed + 0x1212){ " + secondPlace + "}\n" +
		"#2  0x00007fc768b39153 n/a (linux-vdso.so.1 + 0x153)\n" +
		"#3  0x00007fc768b39153 n/a (libzstd.so.1 + 0x153)\n", named: 2,
		left: []ingest.Reason{ingest.NotIndexed, ingest.NoBuildID}},
	{name: "systemd before 250", want: "Found module fixed with build-id: ID\n" +
		"#0  0x000000000040114e n/a (fixed + 0x114e){ " + exactPlace + "}\n", named: 1},
	{name: "systemd, the next process", want: dumpHead + dumpList + dumpHead +
		"#0  0x000000000040114e n/a (libgone + 0x114e)\n" + strings.Replace(dumpList, "fixed", "lib2", 1) +
		"#0  0x000000000040114e n/a (lib2 + 0x114e){ " + exactPlace + "}\n", named: 1,
		left: []ingest.Reason{ingest.NoBuildID}},
	{name: "systemd, no list: by name",
		want:  "#0  0x000000000040114e n/a (/tmp/fixed + 0x114e){ " + exactPlace + "}\n",
		named: 1},
	{name: "systemd, two of a name",
		want: dumpList + "Module /opt/fixed with build-id " + nobodyID + "\n" +
			"#0  0x000000000040114e n/a (fixed + 0x114e)\n", named: 0,
		left: []ingest.Reason{ingest.Ambiguous}},
	{name: "systemd, offset in no segment",
		want: "#0  0x000000000040114e n/a (fixed + 0x40114e)\n", named: 0,
		left: []ingest.Reason{ingest.OutsideObject}},
	{name: "JVM", want: "# C  [fixed+0x114e]{ " + exactPlace + "}  loop+0x4\n#\n" +
		"C  [fixed+0x114e]{ " + exactPlace + "}  loop+0x4\nC  [fixed+0x1212]{ " + secondPlace + "}\n" +
		"V  [libjvm.so+0x8c9a1]  JavaCalls::call_helper()+0x3a1\nj  Main.main()V+4\nx C  [fixed+0x114e]\n" +
		"C  [+0x114e]\nC  [fixed+0x114e\n", named: 3, left: []ingest.Reason{ingest.NoBuildID}},
	{name: "Breakpad", want: "Thread 0 (crashed)\n 0  fixed + 0x114e{ " + exactPlace + "}\n    rax = 0x1\n" +
		" 1  fixed!main [fixed.c : 37 + 0x5]\n 2  fixed!main + 0x12\n10  fixed + 0x1212{ " + secondPlace + "}\n" +
		" 3  gone.so + 0x1212\na 4  fixed + 0x114e\n 4 fixed + 0x114e\n 4  fixed + 0x114e x\n", named: 2,
		left: []ingest.Reason{ingest.NoBuildID}},
	{name: "Breakpad for machines", want: "Crash|SIGSEGV|0x0|0\nModule|/opt/fixed||fixed|" + fixedGUID + "|0x0|0xfff|1\n" +
		"Module|/lib/gone.so||gone.so|0123456789ABCDEF0123456789ABCDEF0|0x1000|0x1fff|0\n" +
		"Module|/a/two||two|" + fixedGUID + "|0x2000|0x2fff|0\n\n" +
		"0|0|fixed||||0x114e{ " + exactPlace + "}\n0|1|two||||0x1212{ " + secondPlace + "}\n" +
		"0|2|fixed|main|fixed.c|37|0x5\n0|3|gone.so||||0x1212\n0|5|||||0x1212\n", named: 2,
		left: []ingest.Reason{ingest.NoBuildID}},
	{name: "Breakpad, other builds", want: "Module|/a/fixed||fixed|0123456789ABCDEF0123456789ABCDEF0|0x0|0xfff|0\n\n" +
		"0|0|fixed||||0x1212\nModule|/a/two||two|" + fixedGUID + "|0x2000|0x2fff|0\n" +
		"Module|/b/two||two|0123456789ABCDEF0123456789ABCDEF0|0x3000|0x3fff|0\n0|0|two||||0x1212\n", named: 0,
		left: []ingest.Reason{ingest.Mismatch, ingest.Ambiguous}},
	{name: "perf script, offsets", want: "app 7 1.0: cpu-clock:\n" +
		"\t          40114e [unknown] (/srv/app/bin/fixed+0x114e){ " + exactPlace + "}\n" +
		"\t          401212 [unknown] (/srv/app/bin/fixed+0x1212){ " + secondPlace + "}\n" +
		"\tffffffff81000000 [unknown] ([kernel.kallsyms]+0x1000)\n\t7fff [unknown] ([unknown])\n" +
		"\tx [unknown] (/a+0x1)\n\t7f001000 [unknown] (/lib/gone.so+0x1000)\n", named: 2, left: []ingest.Reason{ingest.NoBuildID}},
	{name: "perf script, mappings before", want: "00401000-00402000 r-xp 00001000 08:01 9 /srv/app/bin/fixed\n" +
		"\t          40114e [unknown]{ " + exactPlace + "} (/srv/app/bin/fixed)\n" +
		"\t          401212 [unknown]{ " + secondPlace + "} (/srv/app/bin/fixed)\n", named: 2},
	{name: "perf script, without mappings", want: "\t7f001234 [unknown] (/lib/gone.so)\n", named: 0,
		left: []ingest.Reason{ingest.MapsNotSaved}},
	{name: "kernel, file offset",
		want: faultHead + "fixed[114e,401000+1000]{ " + exactPlace + "}" + faultTail, named: 1},
	{name: "kernel, trap",
		want: "traps: fixed[9] trap invalid opcode ip:40114e sp:7ffc error:0 in " +
			"fixed[114e,401000+1000]{ " + exactPlace + "}\n", named: 1},
	{name: "kernel, start of the mapping alone",
		want: faultHead + "fixed[401000+1000]" + faultTail, named: 0,
		left: []ingest.Reason{ingest.MapsNotSaved}},
	{name: "kernel, another address", want: faultHead + "fixed[114e,501000+1000]" + faultTail,
		named: 0},
	{name: "kernel, an offset that does not fit",
		want: faultHead + "fixed[114f,401000+1000]" + faultTail, named: 0},
	{name: "kernel, no address", want: "3 in fixed[114e,401000+1000]\n", named: 0},
	{name: "Android",
		want: "11-17 A/DEBUG:       #26 pc 000000000040120d  /apex/lib64/libart.so " +
			"(art::Invoke(art::Thread*, char const*)+568) (BuildId: ID){ main+0x5a (" + callLine + ")}\n",
		named: 1},
	{name: "Android, in an archive",
		want: "      #00 pc 0040114e  /data/app/base.apk!libx.so (offset 0x2d000) " +
			"(BuildId: ID){ " + exactPlace + "}\n", named: 1},
	{name: "Android, no build ID", want: "#01 pc 0040114e  /vendor/bin/fixed\n", named: 0,
		left: []ingest.Reason{ingest.NoBuildID}},
	{name: "gdb", want: "#1  0x00007ffff7a42bf0 in ?? () from /lib/x86_64-linux-gnu/libc.so.6\n" +
		"#2  0x0000000000401212 in main () at fixed.c:37\n#3  0x0000555555551212 in ?? ()\n",
		named: 0,
		left:  []ingest.Reason{ingest.MapsNotSaved, ingest.MapsNotSaved}},
	{name: "gdb, a program at its address",
		want: "#0  0x000000000040114e in ?? (){ " + exactPlace + "}\n" +
			"#1  0x0000000000401212 in ?? (){ " + secondPlace + "}\n" +
			"#2  0x0000000000401212 in ?? () from /lib/libc.so.6\n", named: 2,
		left: []ingest.Reason{ingest.MapsNotSaved}},
	{name: "gdb, behind a signal",
		want: "#0  0x00007ffff7a42bf0 in raise () from /lib/libc.so.6\n" +
			"#1  <signal handler called>\n#2  0x000000000040114e in ?? (){ " + exactPlace + "}\n" +
			"#3  0x0000000000401212 in ?? (){ " + secondPlace + "}\n", named: 2},
	{name: "gdb, mappings before it",
		want: "          Start Addr           End Addr       Size     Offset  Perms  objfile\n" +
			"      0x555555554000     0x555555555000     0x1000        0x0  r--p   /srv/my app/fixed\n" +
			"      0x555555555000     0x555555556000     0x1000     0x1000  r-xp   /srv/my app/fixed\n" +
			"#0  0x000055555555514e in ?? (){ " + exactPlace + "}\n" +
			"#1  0x0000555555555212 in ?? (){ " + secondPlace + "} from /srv/fixed\n" +
			"#2  0x0000555555555212 in ?? () from /lib/other.so\n#3  0x1212 in ?? ()\n", named: 2,
		left: []ingest.Reason{ingest.MapsNotSaved, ingest.MapsNotSaved}},
	{name: "mappings behind the stacks that they are of",
		want: "   1:     0x7f0000401212 - <unknown>\n" +
			"7f0000401000-7f0000402000 r-xp 00001000 08:01 77                         /srv/fixed\n" +
			"*** the next process, which has something else there\n" +
			"   1:     0x7f0000401212 - <unknown>\n", named: 0,
		left: []ingest.Reason{ingest.MapsNotSaved, ingest.MapsNotSaved}},
	{name: "sanitizers",
		want: "    #1 0x55d0 in f (/srv/fixed+0x40120d){ main+0x5a (" + callLine + ")}\n" +
			"    #2 0x55d0  (/srv/fixed+0x40120d){ main+0x5a (" + callLine + ")}\n" +
			"    #3 f <null> (fixed+0x40120d){ main+0x5a (" + callLine + ")}\n", named: 3},
	{name: "the number of a frame behind it", want: "(fixed+0x40120d) #0 0\n", named: 0},
	{name: "LLVM's own stacks", want: " #1 0x000000000040120d (/srv/fixed+0x40120d)\n" +
		" #2 0x000000000040120d f(int) (/srv/fixed+0x40120d)\n", named: 0},
	{name: "Go",
		want: "[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x40114e{ " + exactPlace + "}]\n" +
			"main.main()\n\t/srv/app/main.go:12 +0x1d\ncreated by main.f in goroutine 1\n" +
			"\t/srv/app/main.go:9 +0x1d fp=0xc00008e7e0 sp=0xc00008e7d8 pc=0x40114e\n", named: 1},
	{name: "Go, a signal in C", want: "PC=0x40114e{ " + exactPlace + "} m=3 sigcode=1 addr=0x0\n" +
		"non-Go function\n\tpc=0x401212{ " + secondPlace + "}\nnon-Go function\n\tpc=0x401136\n" +
		"\tpc=0x401212\n", named: 2, left: []ingest.Reason{ingest.Ambiguous}},
	{name: "Rust", want: "   1:           0x401212 - <unknown>{ " + secondPlace + "}\n" +
		"   2: 0x401212 - main\n             at ./src/main.rs:3:5\n" +
		"   3:     0x55d2e6b40212 - <unknown>\n", named: 1,
		left: []ingest.Reason{ingest.MapsNotSaved}},
	{name: "mappings of /proc before it",
		want: "00400000-00401000 r--p 00000000 08:01 77   /tmp/gone\n" +
			"cut\n7f0000401000-7f0000402000 r-xp 00001000 08:01 77                         /srv/fixed\n" +
			"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n" +
			"   1:     0x7f0000401212 - <unknown>{ " + secondPlace + "}\n", named: 1},
	{name: "an oops by its release", want: release + " collatz+0x18/0x48{ (" + loopLine + ")}\n",
		named: 1},
	{name: "an oops, tainted",
		want: strings.Replace(release, "Not tainted", "Tainted: G        W  OE", 1) +
			" collatz+0x18/0x48{ (" + loopLine + ")}\n", named: 1},
	{name: "an oops of another length", want: release + " collatz+0x8/0x10\n", named: 0,
		left: []ingest.Reason{ingest.Mismatch}},
	{name: "an oops of a kernel that is not known",
		want: strings.Replace(release, "6.12.3", "6.12.4", 1) +
			" collatz+0x18/0x48\n", named: 0, left: []ingest.Reason{ingest.NoBuildID}},
	{name: "a module of it", want: release + " collatz+0x18/0x48 [nfs]\n", named: 0,
		left: []ingest.Reason{ingest.NoBuildID}},
	{name: "no release",
		want: strings.Replace(release, "6.12.3", "x", 1) + " collatz+0x18/0x48\n", named: 0,
		left: []ingest.Reason{ingest.NoBuildID}},
	{name: "cut",
		want:  "./fixed(+0x401212) [0x\nfixed() [\n#0  0x1 n/a (fixed + 0x\n#00 pc \n# \n#1 0x1 in ?? (\n",
		named: 0},
}

// files are the files that a user named.
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

// programs are the programs that a user named: one is missing, one is position-independent.
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
