package probe

import (
	"reflect"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	params := []Arg{{Var: "$params"}}
	for _, c := range []struct {
		text string
		want Query
	}{
		{"f", Query{Function: "f", Args: params}},
		{"f+16", Query{Function: "f", Offset: 16, Args: params}},
		{"f+0x10", Query{Function: "f", Offset: 16, Args: params}},
		{"f:3", Query{Function: "f", Line: 3, Relative: true, Args: params}},
		{"f:0", Query{Function: "f", Args: params}},
		{"f@dir/a.c:3", Query{Function: "f", File: "dir/a.c", Line: 3, Relative: true, Args: params}},
		{"f@a.c+8", Query{Function: "f", File: "a.c", Offset: 8, Args: params}},
		{"a.c:12", Query{File: "a.c", Line: 12, Args: params}},
		{"app::run:2", Query{Function: "app::run", Line: 2, Relative: true, Args: params}},
		{"app::{closure#0}", Query{Function: "app::{closure#0}", Args: params}},
		{"f.isra.0", Query{Function: "f.isra.0", Args: params}},
		{"0x1136", Query{Offset: 0x1136, Args: params}},
		{"f%return", Query{Function: "f", Return: true, Args: []Arg{{Var: "$retval", Raw: true}}}},
		{"g:e=f", Query{Group: "g", Event: "e", Function: "f", Args: params}},
		{"e=f%return $retval:s32", Query{Event: "e", Function: "f", Return: true,
			Args: []Arg{{Var: "$retval", Raw: true, Type: "s32"}}}},
		{"f a b->c.d[2]:x8 n=e[-1][0x2]@user", Query{Function: "f", Args: []Arg{{Var: "a"},
			{Var: "b", Type: "x8", Fields: []Field{{Name: "c", Arrow: true}, {Name: "d"}, {Index: 2}}},
			{Name: "n", Var: "e", User: true, Fields: []Field{{Index: -1}, {Index: 2}}}}}},
		{"f %di:u8 $stack1 \\5 +8(%sp):u32 @sym+4", Query{Function: "f", Args: []Arg{{Var: "%di", Raw: true, Type: "u8"},
			{Var: "$stack1", Raw: true}, {Var: "\\5", Raw: true}, {Var: "+8(%sp)", Raw: true, Type: "u32"},
			{Var: "@sym+4", Raw: true}}}},
		{"f a:b3@5/32", Query{Function: "f", Args: []Arg{{Var: "a", Type: "b3@5/32"}}}},
	} {
		got, err := Parse(c.text)
		if err != nil || !reflect.DeepEqual(*got, c.want) {
			t.Errorf("%s: %+v, %v; want %+v", c.text, got, err, c.want)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "no function"}, {"f;pattern*", "not by a pattern"}, {"f%entry", "only %return"},
		{"f+8%return", "no offset"}, {"f:3%return", "no offset"}, {"f $retval", "at a return only"},
		{"f%return a", "not known at a return"}, {"f%return $vars", "not known at a return"},
		{"f a:u7", "is none of"}, {"f a:", "no type"}, {"f a[x]", "an index"}, {"f a[1", "an index"}, {"f a.", "no name of a member"},
		{"f a-b", "does not lead"}, {"f 1=a", "no name of an argument"}, {"f a..b", "no name of a member"}, {"f 7", "no name of a variable"},
		{"f:99999999999", "not a number"}, {"f+99999999999999999999", "no offset"}, {"0xzz", "no address"}, {"%return", "no function"},
	} {
		if q, err := Parse(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %+v, %v; want an error with %q", c.text, q, err, c.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"f a->b[2].c:string", "g:e=a.c:12 $vars", "f@x.c+0x10 %di:u8", "f%return"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if q, err := Parse(s); err == nil && (len(q.Args) == 0 || q.Function == "" && q.File == "" && q.Offset == 0) {
			t.Errorf("%q: %+v", s, q)
		}
	})
}
