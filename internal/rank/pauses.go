package rank

import (
	"slices"
	"time"
)

// pause is a number of slots of an endpoint that stay unused until an instant.
type pause struct {
	since    time.Duration // of a ghost: when its call was cancelled
	until    time.Duration
	endpoint *Endpoint
	slots    int
	ghostOf  *Account // of a ghost: whose cancelled call has the slot (R5)
	level    *level   // of that call
}

// pauses are all pauses, as a binary heap with the one that ends first on top.
//
// Cost: O(log n); O(n) to drop those of an endpoint.
type pauses []pause

func (p *pauses) push(x pause) {
	*p = append(*p, x)
	p.up(len(*p) - 1)
}

// pop takes out the pause that ends first.
func (p *pauses) pop() pause {
	h := *p
	first, last := h[0], len(h)-1
	h[0], h[last] = h[last], pause{}
	*p = h[:last]
	p.down(0)
	return first
}

// drop takes out all pauses of an endpoint, and calls gone for each before.
func (p *pauses) drop(e *Endpoint, gone func(pause)) {
	for _, x := range *p {
		if x.endpoint == e {
			gone(x)
		}
	}
	*p = slices.DeleteFunc(*p, func(x pause) bool { return x.endpoint == e })
	for i := len(*p)/2 - 1; i >= 0; i-- {
		p.down(i)
	}
}

func (p *pauses) up(i int) {
	h := *p
	for parent := (i - 1) / 2; i > 0 && h[i].until < h[parent].until; parent = (i - 1) / 2 {
		h[i], h[parent] = h[parent], h[i]
		i = parent
	}
}

func (p *pauses) down(i int) {
	h := *p
	for {
		first := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(h); child++ {
			if h[child].until < h[first].until {
				first = child
			}
		}
		if first == i {
			return
		}
		h[i], h[first] = h[first], h[i]
		i = first
	}
}
