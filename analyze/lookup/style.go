package lookup

import (
	"strconv"

	"symbolize/ingest/texts"
)

// Answer is the result for one address. Its texts are printed unchanged: callers demangle
// names and remove control characters.
type Answer struct {
	Input   string // the query, for one that is no address
	Valid   bool   // it is an address
	Address uint64
	Module  string // the file as the user named it
	Error   string // why the file cannot be read, "" if it can
	Frames  []Frame
	// First and Last are the numbers of the BPF instructions that became the code at the address, if
	// HasBPF. The form of llvm-symbolizer has no place for them.
	First, Last uint32
	HasBPF      bool
}

// Frame is one function activation of an Answer, innermost first. Unknown texts are "",
// unknown numbers 0.
type Frame struct {
	Function     string
	File         string
	Line, Column uint32

	StartFile    string
	StartLine    uint32
	StartAddress uint64
	HasStart     bool // StartAddress is known
}

// Layout selects the parts of a printed Answer.
type Layout struct {
	Addresses bool // print the address first
	Pretty    bool // one line a frame
	Nameless  bool // print no names of functions
}

// unknown replaces a missing name or file in the output of both tools.
const unknown = "??"

// AppendLLVM appends an answer as llvm-symbolizer 14 prints it: name and file:line:column in turn,
// innermost first, then an empty line. A query that is no address is returned unchanged.
func (s *Layout) AppendLLVM(b []byte, a *Answer) []byte {
	if !a.Valid {
		return append(append(b, a.Input...), '\n')
	}
	if s.Addresses {
		b = append(b, "0x"...)
		b = strconv.AppendUint(b, a.Address, 16)
		b = append(b, s.separator(": ")...)
	}
	frames := a.Frames
	if len(frames) == 0 {
		frames = []Frame{{}}
	}
	for i := range frames {
		f := &frames[i]
		if i > 0 && s.Pretty && !s.Nameless {
			b = append(b, " (inlined by) "...)
		}
		b = s.appendName(b, f.Function, " at ")
		b = appendOr(b, f.File, unknown)
		b = append(b, ':')
		b = strconv.AppendUint(b, uint64(f.Line), 10)
		b = append(b, ':')
		b = strconv.AppendUint(b, uint64(f.Column), 10)
		b = append(b, '\n')
	}
	return append(b, '\n')
}

// AppendGNU appends an answer as addr2line -f -i of binutils 2.40 prints it, without
// discriminators; BPF instructions are where these would be. A query that is no address is answered
// as an unknown address.
func (s *Layout) AppendGNU(b []byte, a *Answer) []byte {
	if s.Addresses {
		b = append(b, "0x"...)
		at := len(b)
		b = append(b, "0000000000000000"...)
		digits := strconv.AppendUint(nil, a.Address, 16)
		copy(b[at+16-len(digits):], digits)
		b = append(b, s.separator(": ")...)
	}
	if len(a.Frames) == 0 {
		return append(s.appendName(b, "", " "), "??:0\n"...)
	}
	for i := range a.Frames {
		f := &a.Frames[i]
		if i > 0 && s.Pretty {
			b = append(b, " (inlined by) "...)
		}
		b = s.appendName(b, f.Function, " at ")
		b = appendOr(b, f.File, unknown)
		b = append(b, ':')
		if f.Line > 0 {
			b = strconv.AppendUint(b, uint64(f.Line), 10)
		} else {
			b = append(b, '?')
		}
		if i == 0 && a.HasBPF {
			b = append(b, " (BPF instructions "...)
			b = strconv.AppendUint(b, uint64(a.First), 10)
			b = append(b, " to "...)
			b = append(strconv.AppendUint(b, uint64(a.Last), 10), ')')
		}
		b = append(b, '\n')
	}
	return b
}

// appendName appends a function's name and the separator before its line.
func (s *Layout) appendName(b []byte, name, pretty string) []byte {
	if s.Nameless {
		return b
	}
	return append(appendOr(b, name, unknown), s.separator(pretty)...)
}

// separator is a newline, or pretty where each frame is one line.
func (s *Layout) separator(pretty string) string {
	if s.Pretty {
		return pretty
	}
	return "\n"
}

func appendOr(b []byte, text, other string) []byte {
	if text == "" {
		text = other
	}
	return append(b, text...)
}

// AppendJSON appends an answer as an object of llvm-symbolizer's --output-style=JSON, without a
// newline. Discriminators are 0: tables have none.
func (s *Layout) AppendJSON(b []byte, a *Answer) []byte {
	if !a.Valid {
		b = append(b, `{"Error":{"Message":`...)
		b = texts.AppendJSONString(b, "unable to parse arguments: "+a.Input)
		b = append(b, `},"ModuleName":`...)
		return append(texts.AppendJSONString(b, a.Module), '}')
	}
	b = append(b, `{"Address":"0x`...)
	b = strconv.AppendUint(b, a.Address, 16)
	b = append(b, '"')
	if a.Error != "" {
		b = append(b, `,"Error":{"Message":`...)
		b = append(texts.AppendJSONString(b, a.Error), `},"ModuleName":`...)
		return append(texts.AppendJSONString(b, a.Module), '}')
	}
	if a.HasBPF {
		b = append(b, `,"BPFInstructions":[`...)
		b = strconv.AppendUint(b, uint64(a.First), 10)
		b = strconv.AppendUint(append(b, ','), uint64(a.Last), 10)
		b = append(b, ']')
	}
	b = append(b, `,"ModuleName":`...)
	b = texts.AppendJSONString(b, a.Module)
	b = append(b, `,"Symbol":[`...)
	frames := a.Frames
	if len(frames) == 0 {
		frames = []Frame{{}}
	}
	for i := range frames {
		if i > 0 {
			b = append(b, ',')
		}
		f := frames[i]
		if s.Nameless {
			f.Function = ""
		}
		b = appendJSONFrame(b, &f)
	}
	return append(b, "]}"...)
}

func appendJSONFrame(b []byte, f *Frame) []byte {
	b = append(b, `{"Column":`...)
	b = strconv.AppendUint(b, uint64(f.Column), 10)
	b = append(b, `,"Discriminator":0,"FileName":`...)
	b = texts.AppendJSONString(b, f.File)
	b = append(b, `,"FunctionName":`...)
	b = texts.AppendJSONString(b, f.Function)
	b = append(b, `,"Line":`...)
	b = strconv.AppendUint(b, uint64(f.Line), 10)
	b = append(b, `,"StartAddress":"`...)
	if f.HasStart {
		b = append(b, "0x"...)
		b = strconv.AppendUint(b, f.StartAddress, 16)
	}
	b = append(b, `","StartFileName":`...)
	b = texts.AppendJSONString(b, f.StartFile)
	b = append(b, `,"StartLine":`...)
	b = strconv.AppendUint(b, uint64(f.StartLine), 10)
	return append(b, '}')
}
