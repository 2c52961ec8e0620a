// Package stats is what is counted and learned of gRPC methods, and their rules: how their
// calls ended and how long they took, how long their workers are silent, who speaks first,
// and how often calls may be sent again.
//
// Start from Methods, the one table of a relay's methods. It is handed times, codes and the
// number of a shard. It does not know calls, connections or HTTP/2, and decides nothing:
// package relay asks it.
package stats

import (
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cabrank/cabrank/internal/rank"
)

// The method label is bounded in number and length: callers choose it, and the metrics page
// repeats each name some forty times.
const (
	// MaxMethods is how many methods have a name. A worker must have answered them with
	// another code than UNIMPLEMENTED. All others are "other".
	MaxMethods = 200
	// MaxUnproven is how many of them may have their name from an answer other than OK.
	// Such an answer proves little: some servers check the method last, after interceptors
	// or the HTTP method.
	MaxUnproven = 100
	// maxName is the length of the longest name, octets.
	maxName = 200
)

// otherMethod is the label of everything without a name of its own.
const otherMethod = "other"

// Methods has the methods of a relay, by path.
//
// Concurrency: may be used from anywhere; its lock is a leaf.
type Methods struct {
	rank   *rank.Rank
	shards int
	other  *Method                               // of all paths without a name
	named  atomic.Pointer[map[string]*Method]    // by path; replaced, not changed
	rules  atomic.Pointer[Patterns[*MethodRule]] // never nil

	mu       sync.Mutex // held while named or rules are replaced
	unproven int        // of named

	// unnamed has the rank's record of methods that have no name yet: the rank tells them
	// apart from the first call on, and keeps the record when a method gets its name. Each
	// entry takes 700 bytes; paths that share an entry count as one method.
	unnamed [1024]atomic.Pointer[unnamed]
	seed    maphash.Seed
}

// unnamed is the rank's record of the first path of an entry.
type unnamed struct {
	hash   uint64 // of the path
	inRank *rank.Method
}

// NewMethods returns the table of a relay with so many shards.
func NewMethods(r *rank.Rank, shards int, rules []MethodRule) *Methods {
	t := &Methods{rank: r, shards: shards, other: newMethod(otherMethod, shards), seed: maphash.MakeSeed()}
	t.named.Store(new(map[string]*Method))
	t.SetRules(rules)
	return t
}

// SetRules replaces the rules, of patterns that occur once each.
func (t *Methods) SetRules(rules []MethodRule) {
	t.mu.Lock()
	defer t.mu.Unlock()
	next := rulesOf(rules)
	t.rules.Store(&next)
	for _, m := range *t.named.Load() {
		m.rule.Store(t.RuleOf([]byte(m.Name)))
	}
}

// RuleOf returns the rule for the method of a path; nil: its calls are sent once.
func (t *Methods) RuleOf(path []byte) *MethodRule {
	rule, _ := t.rules.Load().Find(path)
	return rule
}

// Find returns the method of a path; nil: it has no name.
func (t *Methods) Find(path []byte) *Method { return (*t.named.Load())[string(path)] }

// OrOther returns the method, or for nil the one that stands for all without a name.
func (t *Methods) OrOther(m *Method) *Method {
	if m == nil {
		return t.other
	}
	return m
}

// InRank returns the rank's record of a method, or for nil of a path without a name.
func (t *Methods) InRank(m *Method, path []byte) *rank.Method {
	if m != nil {
		return m.InRank
	}
	entry, hash := t.entry(path)
	for {
		if known := entry.Load(); known != nil {
			return known.inRank
		}
		entry.CompareAndSwap(nil, &unnamed{hash, t.rank.Unnamed()})
	}
}

func (t *Methods) entry(path []byte) (entry *atomic.Pointer[unnamed], hash uint64) {
	hash = maphash.Bytes(t.seed, path)
	return &t.unnamed[hash%uint64(len(t.unnamed))], hash
}

// Learn gives the method of a path its name, if there is room for another; nil: it has none.
// proven says that the answer was OK.
func (t *Methods) Learn(path []byte, proven bool) *Method {
	if !isName(path) {
		return nil
	}
	m, isNew := t.learn(path, proven)
	if isNew {
		t.rank.Name(m.InRank, m.Name)
	}
	return m
}

func (t *Methods) learn(path []byte, proven bool) (m *Method, isNew bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := *t.named.Load()
	if m = known[string(path)]; m != nil || len(known) >= MaxMethods {
		return m, false
	}
	if !proven {
		if t.unproven >= MaxUnproven {
			return nil, false
		}
		t.unproven++
	}
	m = newMethod(string(path), t.shards)
	m.rule.Store(t.RuleOf(path))
	entry, hash := t.entry(path)
	if of := entry.Load(); of != nil && of.hash == hash && entry.CompareAndSwap(of, nil) {
		m.InRank = of.inRank
	} else {
		m.InRank = t.rank.Unnamed() // another path has the entry
	}
	next := make(map[string]*Method, len(known)+1)
	maps.Copy(next, known)
	next[m.Name] = m
	t.named.Store(&next)
	return m, true
}

// isName reports whether a path may be a label: gRPC's methods are ASCII without spaces (Path
// in gRPC over HTTP/2).
func isName(path []byte) bool {
	for _, c := range path {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return len(path) <= maxName
}

// All returns all methods by name, behind the one that stands for those without.
func (t *Methods) All() []*Method {
	named := slices.SortedFunc(maps.Values(*t.named.Load()), func(a, b *Method) int { return strings.Compare(a.Name, b.Name) })
	return append([]*Method{t.other}, named...)
}
