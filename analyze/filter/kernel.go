package filter

import "bytes"

// exactMarks precede exact addresses in lines of kernel stack traces: values of registers, and
// places of warnings.
var exactMarks = [...]string{"RIP: ", "EIP: ", "pc : ", "epc : ", "PC is at ", "NIP [", "NIP: ",
	"WARNING: "}

// exactBefore reports whether the line marks the address at i as exact.
func (s *scanner) exactBefore(i int) bool {
	if s.mark < 0 { // once per line: a line may have thousands of addresses
		s.mark = len(s.text)
		for _, mark := range exactMarks {
			if at := bytes.Index(s.text, []byte(mark)); at >= 0 {
				s.mark = min(s.mark, at+len(mark))
			}
		}
	}
	return s.mark <= i
}

// maxHead bounds the head of a stack trace, in bytes; lines of the kernel are shorter than 1,024.
const maxHead = 2048

// kernelLine reads "CPU: N PID: N Comm: NAME … VERSION ID", the head of a stack trace: the
// kernel's build ID follows its version (dump_stack_print_info in lib/dump_stack.c). A head
// without an ID may be of another kernel than the last one: its release leads to the file of that
// kernel, if exactly one is known.
func (s *scanner) kernelLine(i int) {
	rest := s.text[i:min(len(s.text), i+maxHead)]
	if !bytes.HasPrefix(rest, []byte("CPU: ")) {
		return
	}
	at := bytes.Index(rest, []byte(" Comm: "))
	if at < 0 || !bytes.Contains(rest[:at], []byte(" PID: ")) {
		return
	}
	s.kernel, s.image = s.unnamed, nil
	var before []byte
	for word := range bytes.FieldsSeq(rest[at:]) {
		switch {
		case len(word) == sha1Digits && hexLen(word) == len(word):
			s.kernel = parseID(word)
		case len(word) > 1 && word[0] == '#' && isDigit(word[1]) && isRelease(before):
			s.image = append([]byte(imagePrefix), before...)
		}
		before = word
	}
}

// imagePrefix precedes the release in the name of a kernel image with symbols.
const imagePrefix = "vmlinux-"

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// isRelease reports whether a word may be a kernel's release, as printed by uname -r. In heads the
// number of the build follows it: "6.1.0-18-amd64 #1".
func isRelease(word []byte) bool {
	return len(word) > 0 && len(word) <= 64 && isDigit(word[0]) &&
		bytes.IndexByte(word, '.') > 0 && bytes.IndexByte(word, '/') < 0
}
