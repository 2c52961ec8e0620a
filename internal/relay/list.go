package relay

// list is a doubly linked list through nodes inside its elements, so that push and leave
// need no memory and no search.
//
// Shape: the zero value is an empty list.
// Concurrency: guarded by the lock of its owner.
type list[T any] struct{ oldest, newest *node[T] }

// node is an element's place in a list, in one list at most. The zero value is in no list.
type node[T any] struct {
	of           *T
	in           *list[T]
	older, newer *node[T]
}

// listed reports whether the node is in a list.
func (p *node[T]) listed() bool { return p.in != nil }

// push puts x at the end of the list. p is a node of x that is in no list.
func (l *list[T]) push(p *node[T], x *T) {
	*p = node[T]{of: x, in: l, older: l.newest}
	if l.newest != nil {
		l.newest.newer = p
	} else {
		l.oldest = p
	}
	l.newest = p
}

// leave takes the node out of its list, if it is in one.
func (p *node[T]) leave() {
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
	*p = node[T]{}
}

// first returns the oldest element, nil if the list is empty.
func (l *list[T]) first() *T {
	if l.oldest == nil {
		return nil
	}
	return l.oldest.of
}

// last returns the newest element, nil if the list is empty.
func (l *list[T]) last() *T {
	if l.newest == nil {
		return nil
	}
	return l.newest.of
}
