package dwarf

// foreignFile is a file number of another unit.
type foreignFile struct {
	u *unit
	n uint64
}

// fileTable reads the line table header of a unit and lists its files.
func (w *walker) fileTable(u *unit) {
	w.lines.version = 0
	w.lines.files = w.lines.files[:0]
	w.tableFiles, w.tableVersion = 0, 0
	if !u.hasLine {
		return
	}
	h, reason := &w.lines, ""
	if u.ownsLine {
		reason = h.parse(&w.d.sec, u.line, u.enc.addrSize)
	} else {
		var shared *lineHeader
		if shared, reason = w.d.lineTable(u); shared != nil {
			w.addFiles(shared)
			return
		}
	}
	if reason != "" {
		w.lose(".debug_line", u.line, reason)
		h.version = 0
	}
	w.addFiles(h)
}

func (w *walker) addFiles(h *lineHeader) {
	for i := range h.files {
		w.res.Files = append(w.res.Files, h.file(i, w.res.CompDir))
	}
	w.tableFiles = len(h.files)
	w.tableVersion = h.version
}

// fileNumber turns a file number of this unit into an index of Unit.Files.
func (w *walker) fileNumber(n uint64) uint32 {
	if n >= uint64(w.tableFiles) || n == 0 && w.tableVersion < 5 {
		return NoFile
	}
	return uint32(n)
}

// defineFile reads DW_LNE_define_file, which adds to the table.
func (w *walker) defineFile(r *buf) {
	e := fileEntry{r.cstring(), uint32(min(r.uleb(), maxFiles))}
	r.skipLEB()
	r.skipLEB()
	if r.bad || len(w.lines.files) >= maxFiles {
		return
	}
	w.lines.files = append(w.lines.files, e)
	w.res.Files = append(w.res.Files, w.lines.file(len(w.lines.files)-1, w.res.CompDir))
	w.tableFiles++
}

// fileOf turns a file number in an entry of any unit into an index of Unit.Files, to which files of
// other units are added.
func (w *walker) fileOf(c scope, n uint64) uint32 {
	if c.skel == w.cur.skel || c.main == w.d && c.skel.hasLine && w.cur.skel.hasLine &&
		c.skel.line == w.cur.skel.line {
		return w.fileNumber(n)
	}
	key := foreignFile{c.skel, n}
	if i, ok := w.files[key]; ok {
		return i
	}
	i := NoFile
	if h, _ := c.main.lineTable(c.skel); h != nil && n < uint64(len(h.files)) &&
		(n > 0 || h.version >= 5) {
		comp, _ := c.str(c.skel.compDir)
		i = uint32(len(w.res.Files))
		w.res.Files = append(w.res.Files, h.file(int(n), comp))
	}
	w.files[key] = i
	return i
}

// lineTable returns the files of a unit's line table from the cache, nil if there are none. Tables
// that overlap others are refused once they exceed a budget.
func (d *Data) lineTable(u *unit) (*lineHeader, string) {
	if !u.hasLine {
		return nil, ""
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if h, ok := d.lines[u.line]; ok {
		return h, ""
	}
	if d.lines == nil {
		d.lines = make(map[uint64]*lineHeader)
		d.linesLeft = sharedBudgetFactor*int64(len(d.sec.Line)) + sharedBudgetFloor
	}
	var h *lineHeader
	reason := "line tables overlap"
	if d.linesLeft >= 0 {
		h = new(lineHeader)
		if reason = h.parse(&d.sec, u.line, u.enc.addrSize); reason != "" {
			h = nil
		} else {
			d.linesLeft -= int64(h.program - u.line)
		}
	}
	d.lines[u.line] = h
	return h, reason
}
