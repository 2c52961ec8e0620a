package h2

import (
	"math/rand/v2"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

// The table agrees with a map, whatever the ids and the order.
func TestStreamTable(t *testing.T) {
	for seed := range uint64(100) {
		rnd := rand.New(rand.NewPCG(seed, 5))
		var table streamTable
		model := map[uint32]*Stream{}
		next, step := uint32(1), uint32(2+2*rnd.IntN(40))
		for range 500 {
			if rnd.IntN(5) < 3 {
				s := &Stream{id: next}
				next += step
				table.put(s)
				model[s.id] = s
			} else {
				for id := range model {
					table.remove(id)
					delete(model, id)
					break
				}
			}
			testkit.Need(t, table.n == len(model), "seed %d: %d streams, want %d", seed, table.n, len(model))
		}
		for id := uint32(1); id < next; id += 2 {
			testkit.Need(t, table.get(id) == model[id], "seed %d: stream %d: got %v, want %v", seed, id, table.get(id), model[id])
		}
	}
}

// The list keeps the order of coming; a stream is in it once.
func TestStreamList(t *testing.T) {
	var list streamList
	a, b, c := &Stream{id: 1}, &Stream{id: 3}, &Stream{id: 5}
	for _, s := range []*Stream{a, b, c, a, c} {
		list.push(s)
	}
	list.remove(b)
	list.remove(b)
	list.push(b)
	var got []uint32
	for s := list.head; s != nil; s = s.next {
		got = append(got, s.id)
	}
	testkit.Want(t, len(got) == 3 && got[0] == 1 && got[1] == 5 && got[2] == 3 && list.tail == b, "got %v", got)
	for _, s := range []*Stream{a, b, c} {
		list.remove(s)
	}
	testkit.Want(t, list.head == nil && list.tail == nil, "the list is not empty")
}
