package flame

// Table is a table of a report, in a tab of its own.
type Table struct {
	Name    string        `json:"name"` // of the tab
	Note    string        `json:"note,omitempty"`
	Columns []TableColumn `json:"columns"`
	// Rows have a value for each column: a string, or a number by the column's kind.
	Rows [][]any `json:"rows"`
}

// TableColumn is a column of a Table.
type TableColumn struct {
	Name string     `json:"name"`
	Kind ColumnKind `json:"kind"`
}

// ColumnKind is the kind of a column's values.
type ColumnKind string

// The kinds of columns. A page is sorted by the first one of numbers, the largest first.
const (
	TextColumn        ColumnKind = "text"
	CountColumn       ColumnKind = "count"       // an integer
	NumberColumn      ColumnKind = "number"      // of a name: it is not added up or compared
	NanosecondsColumn ColumnKind = "nanoseconds" // may have a fraction
	ShareColumn       ColumnKind = "share"       // from 0 to 1, or more of several CPUs
)
