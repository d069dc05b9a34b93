// Package flame makes flame graphs of named Profiles: a page of HTML that needs nothing but a
// browser, a still picture as SVG, and files for other viewers (speedscope, the Firefox
// Profiler, folded stacks).
//
// The page shows one tree of calls for all events and all chosen labels, with weights by
// column: a column is one event and one combination of labels (comm, process). The tree is cut
// while it is built: of all frames at all places the heaviest are kept, as many as the page
// holds, so that 300,000 stacks of 30 frames become a page below 1.5 MB. Frames that are
// left out stay in the weight of their callers, and the page shows how much that is. A second
// tree, from the leaves of the stacks to their roots, is cut by itself, since the light leaves of
// the first are gone. The table of functions has exact weights.
//
// A differential graph has two sides as two events of one column each: the tree has the frames of
// both, drawn as wide as on the new side.
//
// The samples of one recording by time, of which the page makes graphs of ranges, have places in the
// same tree, and ticks as coarse as the size of the page asks for (rangeLevels).
//
// The data in the page are JSON, deflated, in base64; page/model.js reads them. Names reach the
// document as text only, and the page's Content-Security-Policy allows no script but its own.
package flame
