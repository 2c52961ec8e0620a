// Package scenario reads what `cabrank lab run` runs: a YAML file that says which ways
// to do something are compared, at which loads, how often, and which claim decides.
//
// Parse reads a file strictly, and tells all that is wrong with it: the keys are those of
// tags (package strictyaml). Builtin and Names give the scenarios that come with the
// program; they are files like any other. Scenario.Quick makes the short form of one.
//
// The words of the file:
//
//   - An arm is one way to do it: workers, what stands before them (the front), and how
//     clients connect.
//   - A load is one point: a rate, a number of callers, or calls at once; with what
//     happens meanwhile (events).
//   - A block is one run of one arm at one load. A round is one block of each.
//   - A claim names a figure, a load and two arms. The primary one decides.
//
// It starts nothing, and reads no file but its own. docs/lab-run.md explains the keys.
package scenario
