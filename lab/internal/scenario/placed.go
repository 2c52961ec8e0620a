package scenario

import "strings"

// examples stands in a file for the folder with the programs that come with the lab.
const examples = "{examples}"

// Places are what a file cannot know.
type Places struct {
	// Examples is the folder for {examples}: programs that come with the lab.
	Examples string
	// Cabrank is the program for {cabrank}: this one.
	Cabrank string
}

// NeedsExamples reports whether {examples} stands anywhere in the file.
func (s *Scenario) NeedsExamples() bool { return strings.Contains(s.Text, examples) }

// Placed returns the scenario with the places filled in: in commands and what is tried
// before them, in their folders and environment, in the flags of fronts, and in the
// names of .proto files and of their folders.
func (s *Scenario) Placed(p Places) *Scenario {
	fill := strings.NewReplacer(examples, p.Examples, "{cabrank}", p.Cabrank)
	each := func(texts []string) (filled []string) {
		for _, text := range texts {
			filled = append(filled, fill.Replace(text))
		}
		return filled
	}
	placed := *s
	placed.Proto, placed.Imports, placed.Arms = each(s.Proto), each(s.Imports), nil
	for _, a := range s.Arms {
		w := &a.Workers
		w.Command, w.Try, w.Env, w.Dir = each(w.Command), each(w.Try), each(w.Env), fill.Replace(w.Dir)
		a.Front.Flags, a.Front.Env = each(a.Front.Flags), each(a.Front.Env)
		g := &a.Gateway
		g.Command, g.Env, g.Dir = each(g.Command), each(g.Env), fill.Replace(g.Dir)
		placed.Arms = append(placed.Arms, a)
	}
	return &placed
}
