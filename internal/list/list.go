// Package list is a list of things that know their places in it.
package list

// List is a doubly linked list through nodes inside its elements, so that Push and Leave
// need no memory and no search.
//
// Shape: the zero value is an empty list.
// Concurrency: guarded by the lock of its owner.
type List[T any] struct{ oldest, newest *Node[T] }

// Node is an element's place in a list, in one list at most. The zero value is in no list.
type Node[T any] struct {
	of           *T
	in           *List[T]
	older, newer *Node[T]
}

// Listed reports whether the node is in a list.
func (p *Node[T]) Listed() bool { return p.in != nil }

// Push puts x at the end of the list. p is a node of x that is in no list.
func (l *List[T]) Push(p *Node[T], x *T) {
	*p = Node[T]{of: x, in: l, older: l.newest}
	if l.newest != nil {
		l.newest.newer = p
	} else {
		l.oldest = p
	}
	l.newest = p
}

// Leave takes the node out of its list, if it is in one.
func (p *Node[T]) Leave() {
	l := p.in
	if l == nil {
		return
	}
	if p.older != nil {
		p.older.newer = p.newer
	} else {
		l.oldest = p.newer
	}
	if p.newer != nil {
		p.newer.older = p.older
	} else {
		l.newest = p.older
	}
	*p = Node[T]{}
}

// First returns the oldest element, nil if the list is empty.
func (l *List[T]) First() *T {
	if l.oldest == nil {
		return nil
	}
	return l.oldest.of
}

// Last returns the newest element, nil if the list is empty.
func (l *List[T]) Last() *T {
	if l.newest == nil {
		return nil
	}
	return l.newest.of
}
