package analyze

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"symbolize/analyze/resolve"
	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/sideband"
	"symbolize/store"
)

// Dependency is a question that reading a capture, or naming an object, asked of the store, and the
// answer: while the answer is the same, so is the result. One of ID, Path and File is set.
type Dependency struct {
	ID     buildid.ID            // the tables of an object in the store
	Unwind bool                  // with ID: only the layout and the rules for unwinding
	Calls  bool                  // with ID: only the layout and the calls
	Path   string                // the build ID of the file at a path
	File   *sideband.ObjectQuery // the build ID of a mapping recorded without one
	Host   string                // with File: the machine that asked, "" for one that is not known

	Lacking bool     // the store had nothing
	Answer  [16]byte // a digest; zero if the store could not be read, which equals no answer
}

// key identifies the question.
func (d *Dependency) key() string {
	file := ""
	if d.File != nil {
		file = fmt.Sprintf("%+v", *d.File)
	}
	return fmt.Sprintf("%s|%t|%t|%t|%s|%s|%s", d.ID, d.ID.Exact(), d.Unwind, d.Calls, d.Path, d.Host, file)
}

// Trace collects the questions that are asked of a session's store. Its methods may be called from
// several goroutines.
type Trace struct {
	session *Session
	mu      sync.Mutex
	asked   map[string]*Dependency
	spoiled bool
}

// Trace returns a view of the session, and the questions that will be asked of the store through it.
func (s *Session) Trace() (store.View, *Trace) {
	t := &Trace{session: s, asked: make(map[string]*Dependency)}
	return t.view(store.FormatNames), t
}

// view returns a view of the session that notes the questions to the store: only about tables of a
// format, about all for FormatNames.
func (t *Trace) view(only store.TableFormat) store.View {
	return store.Layer(t.session.overlay, &traced{View: t.session.stored, trace: t, only: only})
}

// traced is a View that notes which objects are requested. Path rows are noted by their users, as a
// directory has many others.
type traced struct {
	store.View
	trace *Trace
	only  store.TableFormat
}

// Find implements store.View.
func (v *traced) Find(id buildid.ID) ([]*store.Manifest, error) {
	list, err := v.View.Find(id)
	d := &Dependency{ID: id, Unwind: v.only == store.FormatUnwind, Calls: v.only == store.FormatCalls}
	d.found(list, err)
	v.trace.note(d)
	return list, err
}

// note adds a question. Of several answers the last one counts, for which tables were fetched.
func (t *Trace) note(d *Dependency) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.asked[d.key()] = d
}

// NotePath adds the question which file a path has. Without a Trace it does nothing.
func (t *Trace) NotePath(path string) {
	if t == nil {
		return
	}
	d := &Dependency{Path: path}
	t.session.ask(d)
	t.note(d)
}

// Spoil notes that a table could not be read: the result is not to be used again.
func (t *Trace) Spoil() {
	if t != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.spoiled = true
	}
}

// Dependencies returns the questions so far, sorted.
func (t *Trace) Dependencies() (list []Dependency) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(t.asked)) {
		d := *t.asked[key]
		if t.spoiled {
			d.Answer = [16]byte{}
		}
		list = append(list, d)
	}
	return list
}

// found sets the answer to a question about an object.
func (d *Dependency) found(list []*store.Manifest, err error) {
	if err != nil {
		return
	}
	h := sha256.New()
	d.Lacking = true
	for _, m := range list {
		if d.Unwind || d.Calls {
			m = &store.Manifest{ID: m.ID, Kind: m.Kind, Machine: m.Machine, Class: m.Class, Layout: m.Layout, OtherLayouts: m.OtherLayouts,
				Sections: m.Sections, RefSyms: m.RefSyms, Sources: d.sources(m)}
			d.Lacking = d.Lacking && len(m.Sources) == 0
		} else {
			d.Lacking = false
		}
		h.Write(store.EncodeManifest(m))
	}
	copy(d.Answer[:], h.Sum(nil))
}

// sources returns the sources of an object that a question about one format is about.
func (d *Dependency) sources(m *store.Manifest) []store.SourceInfo {
	format := store.FormatCalls
	if d.Unwind {
		format = store.FormatUnwind
	}
	return slices.DeleteFunc(slices.Clone(m.Sources), func(s store.SourceInfo) bool {
		return s.Kind.Format() != format
	})
}

// ask sets the answer that the store has now.
func (s *Session) ask(d *Dependency) {
	switch {
	case d.File != nil:
		opts := resolve.IdentifyOptions{TrustPaths: s.opts.TrustPaths, Hostname: d.Host}
		id, source := s.pulling.findVDSO(resolve.Identify(s.stored, opts))(*d.File)
		d.answerID(id, fmt.Sprint(source))
	case d.Path != "":
		d.answerID(resolve.PathID(s.stored, d.Path), "")
	default:
		d.found(s.stored.Find(d.ID))
	}
}

// answerID sets an answer that is a build ID.
func (d *Dependency) answerID(id buildid.ID, how string) {
	d.Lacking = id.IsZero()
	sum := sha256.Sum256([]byte(fmt.Sprintf("%s|%t|%s", id, id.Exact(), how)))
	copy(d.Answer[:], sum[:])
}

// Changed reports whether the store answers one of the questions differently now. What the store
// lacked is requested from Options.Remote first.
func (s *Session) Changed(ctx context.Context, list []Dependency) (bool, error) {
	var lacking []ingest.Object
	for i := range list {
		if d := &list[i]; d.Lacking && !d.ID.IsZero() {
			lacking = append(lacking, ingest.Object{ID: d.ID})
		}
	}
	if len(lacking) > 0 {
		if _, err := s.Need(ctx, lacking); err != nil {
			return false, err
		}
	}
	for i := range list {
		now := list[i]
		now.Answer = [16]byte{}
		if s.ask(&now); now.Answer != list[i].Answer || now.Answer == [16]byte{} {
			return true, nil
		}
	}
	return false, nil
}

// noteFiles has an identification note its questions, where the answer depends on the store.
func (t *Trace) noteFiles(known identification) identification {
	return func(q sideband.ObjectQuery) (buildid.ID, ingest.IDSource) {
		id, source := known(q)
		host := t.session.hostname()
		if q.Kind == ingest.VDSO || t.session.opts.TrustPaths || host != "" && q.Host == host {
			q.Segments, q.Namesakes = nil, false // of no use to the store
			d := &Dependency{File: &q, Host: host}
			d.File.File.Path = strings.Clone(q.File.Path)
			t.session.ask(d)
			t.note(d)
		}
		return id, source
	}
}

// identification finds the build ID of a mapping that was recorded without one.
type identification = func(sideband.ObjectQuery) (buildid.ID, ingest.IDSource)
