package socket

import (
	"slices"
	"sync"
)

// directory finds sockets by their ids and by their users. A nil directory finds none.
//
// Concurrency: every method may be called from anywhere.
type directory struct {
	mu    sync.Mutex
	ids   map[string]*session
	users map[string][]*session // few each
}

func newDirectory() *directory {
	return &directory{ids: map[string]*session{}, users: map[string][]*session{}}
}

// add adds a socket, and lists it under its user if it has one.
func (d *directory) add(s *session, id, user string) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ids[id] = s
	d.enter(s, user)
}

// rename moves a known socket to another user.
func (d *directory) rename(s *session, id, before, user string) {
	if d == nil || before == user {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ids[id] == s {
		d.leave(s, before)
		d.enter(s, user)
	}
}

// remove forgets a socket.
func (d *directory) remove(s *session, id, user string) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.ids, id)
	d.leave(s, user)
}

func (d *directory) enter(s *session, user string) {
	if user != "" {
		d.users[user] = append(d.users[user], s)
	}
}

func (d *directory) leave(s *session, user string) {
	others := slices.DeleteFunc(d.users[user], func(other *session) bool { return other == s })
	if len(others) == 0 {
		delete(d.users, user)
	} else {
		d.users[user] = others
	}
}

// byID returns the socket with an id, if it is here.
func (d *directory) byID(id string) []*session {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.ids[id]; s != nil {
		return []*session{s}
	}
	return nil
}

// byUser returns the sockets of a user.
func (d *directory) byUser(user string) []*session {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.users[user])
}
