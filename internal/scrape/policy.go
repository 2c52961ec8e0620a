package scrape

import "path"

// Policy is what becomes of the gauges that several processes have under one name.
type Policy uint8

// What may become of them.
const (
	Sum  Policy = iota // what they have together
	Max                // the largest
	Min                // the smallest
	Avg                // the mean
	Last               // that of the process that was asked last
	Each               // one for each worker, with a label that names it
)

// String returns the word that configurations have for it.
func (p Policy) String() string { return [...]string{"sum", "max", "min", "avg", "last", "each"}[p] }

// Rule gives gauges whose names match a pattern a policy. The first that matches counts.
type Rule struct {
	Pattern string // a name, in which * stands for any letters
	Policy  Policy
}

func (r Rule) covers(name string) bool {
	ok, err := path.Match(r.Pattern, name)
	return ok && err == nil
}

// usualRules are behind those of the user: numbers about one process, and times of
// creation, of which the first counts.
func usualRules() []Rule {
	return []Rule{
		{"process_*", Each}, {"go_*", Each}, {"nodejs_*", Each}, {"*_info", Each}, {"*_created", Min},
	}
}

// policyOf returns what is done with a family. Counters and histograms always add up,
// but for those of one process.
func policyOf(rules []Rule, name string, k kind) Policy {
	switch k {
	case untyped, summary, info:
		return Each
	case counter, histogram:
		rules = usualRules()
	case gauge:
	}
	for _, rule := range rules {
		if rule.covers(name) {
			return rule.Policy
		}
	}
	return Sum
}
