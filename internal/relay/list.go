package relay

// list is a doubly linked list through places in what it lists, so that to join and
// to leave it takes no memory and no search.
//
// Shape: the zero value is an empty list.
// Concurrency: guarded by whatever lock its owner is.
type list[T any] struct{ oldest, newest *place[T] }

// place is where something stands in a list. The zero value stands in none; it is in
// one list at most.
type place[T any] struct {
	of           *T
	in           *list[T]
	older, newer *place[T]
}

// listed reports whether the place is in a list.
func (p *place[T]) listed() bool { return p.in != nil }

// push puts x at the end of the list, by a place of its own that is in none.
func (l *list[T]) push(p *place[T], x *T) {
	*p = place[T]{of: x, in: l, older: l.newest}
	if l.newest != nil {
		l.newest.newer = p
	} else {
		l.oldest = p
	}
	l.newest = p
}

// leave takes a place out of its list, if it is in one.
func (p *place[T]) leave() {
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
	*p = place[T]{}
}

// first returns what has been in the list for longest, nil if it is empty.
func (l *list[T]) first() *T {
	if l.oldest == nil {
		return nil
	}
	return l.oldest.of
}

// last returns what came last, nil if the list is empty.
func (l *list[T]) last() *T {
	if l.newest == nil {
		return nil
	}
	return l.newest.of
}
