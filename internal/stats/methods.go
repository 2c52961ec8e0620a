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
// Concurrency: may be used from anywhere; its lock is taken before the rank's.
type Methods struct {
	rank   *rank.Rank
	shards int
	other  *Method                               // of all paths without a name
	named  atomic.Pointer[map[string]*Method]    // by path; replaced, not changed
	rules  atomic.Pointer[Patterns[*MethodRule]] // never nil

	mu       sync.Mutex // held while named or rules are replaced
	unproven int        // of named
	unnamed  unnamed
}

// NewMethods returns the table of a relay with so many shards.
func NewMethods(r *rank.Rank, shards int, rules []MethodRule) *Methods {
	t := &Methods{rank: r, shards: shards, other: newMethod(otherMethod, shards)}
	t.unnamed.seed = maphash.MakeSeed()
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

// Unnamed returns the rank's record of a path without a name.
func (t *Methods) Unnamed(path []byte) *rank.Method { return t.unnamed.of(path, t.rank) }

// Learn gives the method of a path its name, if there is room for another; nil: it has none.
// proven says that the answer was OK.
func (t *Methods) Learn(path []byte, proven bool) *Method {
	if !isName(path) {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	known := *t.named.Load()
	if m := known[string(path)]; m != nil || len(known) >= MaxMethods {
		return m
	}
	if !proven {
		if t.unproven >= MaxUnproven {
			return nil
		}
		t.unproven++
	}
	m := newMethod(string(path), t.shards)
	m.rule.Store(t.RuleOf(path))
	m.InRank = t.unnamed.name(path, m.Name, t.rank)
	next := make(map[string]*Method, len(known)+1)
	maps.Copy(next, known)
	next[m.Name] = m
	t.named.Store(&next)
	return m
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

// unnamed has the rank's record of methods that have no name yet: the rank tells them apart
// from the first call on, and keeps the record when a method gets its name. Each entry takes
// 700 bytes; paths that share an entry count as one method.
type unnamed struct {
	seed    maphash.Seed
	entries [1024]atomic.Pointer[unnamedMethod]
}

// unnamedMethod is the rank's record of the first path of an entry.
type unnamedMethod struct {
	hash   uint64 // of the path
	method *rank.Method
}

func (n *unnamed) entry(path []byte) (place *atomic.Pointer[unnamedMethod], hash uint64) {
	hash = maphash.Bytes(n.seed, path)
	return &n.entries[hash%uint64(len(n.entries))], hash
}

// of returns the rank's record of a path without a name.
func (n *unnamed) of(path []byte, r *rank.Rank) *rank.Method {
	place, hash := n.entry(path)
	for {
		if known := place.Load(); known != nil {
			return known.method
		}
		place.CompareAndSwap(nil, &unnamedMethod{hash, r.Unnamed()})
	}
}

// name removes a path and returns its record under the new name, or a new record if another
// path has the entry.
func (n *unnamed) name(path []byte, name string, r *rank.Rank) *rank.Method {
	place, hash := n.entry(path)
	known := place.Load()
	if known == nil || known.hash != hash || !place.CompareAndSwap(known, nil) {
		return r.Method(name)
	}
	r.Name(known.method, name)
	return known.method
}
